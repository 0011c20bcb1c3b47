"""Memory's machinery on a store and a model that fail on order, under a clock that tests advance."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeVar

from memory.config import MemoryConfig
from memory.control import read_epoch
from memory.door import StoreEffects, run
from memory.facts.store import FactStore
from memory.journal.entry import JournalEntry
from memory.journal.journal import read_journal
from memory.message import StoredMessage, iso_time
from memory.namespaces import Owner
from memory.updates import outbox
from memory.updates.entry import Entry, EntryKind
from memory.updates.lease import Worker
from memory.updates.outbox import Queued
from memory.updates.transcript import ThreadView
from memory.updates.update import Drained
from memory.updates.updater import MemoryUpdater, ModelCalls
from tests.fakes import Clock, RecordingModel, learns
from tests.stores import FaultyStore

T = TypeVar("T")

ADA = Owner.of("ada")
CONFIG = MemoryConfig(retry_base_seconds=5, lease_seconds=180)


@dataclass
class MemoryBench:
    """One deployment; `restart` makes another process of it, on the same store."""

    config: MemoryConfig = CONFIG
    store: FaultyStore = field(default_factory=FaultyStore)
    clock: Clock = field(default_factory=Clock)
    model: RecordingModel = field(default_factory=lambda: RecordingModel(respond=learns))
    loaded: list[str] = field(default_factory=list)
    alive: set[int] = field(default_factory=set)
    processes: int = 0
    gate_clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Kill the process and start another."""
        self.alive.discard(self.processes)
        self.processes += 1
        self.alive.add(self.processes)
        self.updater = self.another_process(self.processes)

    def another_process(self, pid: int) -> MemoryUpdater:
        """A process that works beside this one; what it waits for its updates' starts passes at once."""
        self.alive.add(pid)
        return MemoryUpdater(
            self.store,
            self.load,
            config=self.config,
            clock=self.clock,
            worker=Worker("here", pid, self.alive.__contains__, set()),
            calls=ModelCalls(clock=self.gate_clock, sleep=self.gate_clock.advance),
        )

    def load(self, name: str) -> RecordingModel:
        self.loaded.append(name)
        return self.model

    def messages(self, *texts: str, begin: int = 1) -> tuple[StoredMessage, ...]:
        """What was said: the user's texts, each with a reply."""
        talk: list[StoredMessage] = []
        now = iso_time(self.clock())
        for number, text in enumerate(texts, begin):
            talk.append(StoredMessage(f"u{number}", "user", text, now))
            talk.append(StoredMessage(f"a{number}", "assistant", f"reply {number}", now))
        return tuple(talk)

    def record(
        self,
        messages: Sequence[StoredMessage],
        *,
        owner: Owner = ADA,
        kind: EntryKind = "turn",
        thread: str = "T",
        model: str = "",
        view: ThreadView | None = None,
    ) -> Queued:
        draft = self.draft(messages, owner=owner, kind=kind, thread=thread, model=model)
        recorded = run(self.store, outbox.record(draft, view))
        assert recorded is not None
        return recorded

    def draft(
        self,
        messages: Sequence[StoredMessage],
        *,
        owner: Owner = ADA,
        kind: EntryKind = "turn",
        thread: str = "T",
        model: str = "",
        epoch: str = "",
    ) -> Entry:
        """An update that is not written down yet."""
        now = self.clock()
        return Entry(
            kind=kind,
            owner=owner,
            thread_id=thread,
            epoch=epoch,
            created=now,
            due=now + self.config.max_wait_seconds,
            messages=tuple(messages),
            model=model,
        )

    def say(self, *texts: str, owner: Owner = ADA, begin: int = 1, thread: str = "T") -> Queued:
        return self.record(self.messages(*texts, begin=begin), owner=owner, thread=thread)

    def drain(self, owner: Owner = ADA) -> Drained:
        return self.updater.drain(owner)

    def drain_all(self, owner: Owner = ADA) -> None:
        """Drain until nothing is pending, letting the time pass that retries and leases need."""
        for _ in range(30):
            left = [entry for entry in self.entries(owner) if entry.state != "dead"]
            if not left:
                return
            self.clock.advance(self.config.retry_max_seconds)
            self.drain(owner)

    def facts(self, owner: Owner = ADA) -> list[str]:
        return sorted(fact.content for fact in FactStore(self.store, owner).list())

    def journal(self, owner: Owner = ADA) -> list[JournalEntry]:
        return run(self.store, read_journal(owner, self.epoch(owner)))

    def journaled(self, owner: Owner = ADA) -> list[str]:
        """Every line of the journal, with its thread."""
        return sorted(f"{entry.thread_id}: {one.text}" for entry in self.journal(owner) for one in entry.messages)

    def entries(self, owner: Owner = ADA) -> list[Entry]:
        return run(self.store, outbox.read_entries(owner))

    def markers(self) -> list[Owner]:
        return run(self.store, outbox.due_owners(inf))

    def epoch(self, owner: Owner = ADA) -> str:
        return run(self.store, read_epoch(owner))

    def everything_stored(self) -> str:
        """All that the store holds, as text."""
        return repr([(item.namespace, item.key, item.value) for item in self.store.items(())])


def going_on(effects: StoreEffects[T], results: list[Any]) -> StoreEffects[T]:
    """The rest of effects whose first batch was carried out already."""
    try:
        operations = effects.send(results)
        while True:
            operations = effects.send((yield operations))
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # typeshed has no type for it
