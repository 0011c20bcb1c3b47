"""Memory's machinery on a store in memory, with a model that finds likes, under a clock that tests advance."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from memory.config import MemoryConfig
from memory.door import run
from memory.facts.store import FactStore
from memory.journal.entry import JournalEntry
from memory.journal.journal import read_journal
from memory.message import StoredMessage, iso_time
from memory.namespaces import Owner
from memory.updates import outbox
from memory.updates.entry import Entry, EntryKind
from memory.updates.update import Drain
from memory.updates.updater import MemoryUpdater, ModelCalls
from tests.fakes import Clock, RecordingModel, learns
from tests.stores import FaultyStore

ADA = Owner.of("ada")


@dataclass
class MemoryBench:
    """Ada's memory in one process; what waits for its updates' starts passes at once."""

    config: MemoryConfig = field(default_factory=MemoryConfig)
    store: FaultyStore = field(default_factory=FaultyStore)
    clock: Clock = field(default_factory=Clock)
    model: RecordingModel = field(default_factory=lambda: RecordingModel(respond=learns))

    def __post_init__(self) -> None:
        gate = Clock()
        self.updater = MemoryUpdater(
            self.store,
            lambda _: self.model,
            config=self.config,
            clock=self.clock,
            calls=ModelCalls(clock=gate, sleep=gate.advance),
        )

    def messages(self, *texts: str, begin: int = 1) -> tuple[StoredMessage, ...]:
        """What was said: the user's texts, each with a reply."""
        talk: list[StoredMessage] = []
        now = iso_time(self.clock())
        for number, text in enumerate(texts, begin):
            talk.append(StoredMessage(f"u{number}", "user", text, now))
            talk.append(StoredMessage(f"a{number}", "assistant", f"reply {number}", now))
        return tuple(talk)

    def record(self, messages: Sequence[StoredMessage], *, kind: EntryKind = "turn", thread: str = "T") -> None:
        now = self.clock()
        due = now + self.config.max_wait_seconds
        draft = Entry(kind=kind, owner=ADA, thread_id=thread, epoch="", created=now, due=due, messages=tuple(messages))
        assert run(self.store, outbox.record(draft))

    def say(self, *texts: str, begin: int = 1, thread: str = "T") -> None:
        self.record(self.messages(*texts, begin=begin), thread=thread)

    def drain(self) -> Drain:
        return self.updater.drain(ADA)

    def drain_all(self) -> None:
        """Drain until nothing is pending, letting the time pass that retries and leases need."""
        for _ in range(30):
            if not self.entries():
                return
            self.clock.advance(self.config.retry_max_seconds)
            self.drain()

    def facts(self) -> list[str]:
        return sorted(fact.content for fact in FactStore(self.store, ADA).list())

    def journal(self) -> list[JournalEntry]:
        return run(self.store, read_journal(ADA))

    def journaled(self) -> list[str]:
        """Every line of the journal, with its thread."""
        return sorted(f"{entry.thread_id}: {one.text}" for entry in self.journal() for one in entry.messages)

    def entries(self) -> list[Entry]:
        return run(self.store, outbox.read_entries(ADA))
