"""Whatever order turns, triggers, crashes, restarts and erases come in: nothing is lost, doubled or comes back."""

from contextlib import suppress
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from memory.erase import erase_thread
from memory.message import StoredMessage
from memory.outbox.transcript import ThreadView
from memory.queue.schedule import ConversationContext
from memory.queue.update_queue import MemoryUpdateQueue
from tests.forgetting import erase_user
from tests.memory_bench import ADA, CONFIG, MemoryBench
from tests.stores import Killed, fail_at

THREADS = st.sampled_from(["T", "U"])
MAX_FACTS = 6


class Updates(RuleBasedStateMachine):
    """One user, two threads, and a process that dies and comes back."""

    @initialize()
    def begin(self) -> None:
        self.bench = MemoryBench(config=replace(CONFIG, max_facts=MAX_FACTS, retry_base_seconds=1))
        self.said = 0
        self.expected: dict[str, str] = {}
        self.gone: set[str] = set()
        self.maybe: dict[str, str] = {}
        self.cut_ids: set[str] = set()
        self.history: dict[str, list[str]] = {"T": [], "U": []}
        self.start_process()

    def start_process(self) -> None:
        self.bench.restart()
        self.queue = MemoryUpdateQueue(
            self.process,
            memory_config=self.bench.config,
            clock=self.bench.clock,
            start_thread=lambda name, target: target() if name == "palimpsest-update" else None,
        )

    def process(self, context: ConversationContext) -> float | None:
        due = self.bench.updater.drain(ADA, context.thread_id).due
        return None if due is None else max(due - self.bench.clock(), 1.0)

    def turn(self, thread: str) -> None:
        """A turn that may be cut short by a crash: only what was written down has to be remembered."""
        self.said += 1
        text = f"I like thing{self.said}"
        self.history[thread].append(text)
        held = {one.id for said in self.history[thread] for one in self.messages_of(said)}
        self.bench.record(self.messages_of(text), thread=thread, view=ThreadView(held | self.cut_ids))
        self.expected[f"Likes thing{self.said}"] = thread

    def messages_of(self, text: str) -> tuple[StoredMessage, ...]:
        return self.bench.messages(text, begin=self.number(text))

    @rule(thread=THREADS)
    def add(self, thread: str) -> None:
        self.turn(thread)
        self.queue.add(ConversationContext(thread, "ada"))

    @rule(thread=THREADS)
    def add_nowait(self, thread: str) -> None:
        self.turn(thread)
        self.queue.add_nowait(ConversationContext(thread, "ada"))

    @rule(thread=THREADS, newest=st.integers(1, 3))
    def cut(self, thread: str, newest: int) -> None:
        """A summary takes away the thread's oldest messages, which are written down once more."""
        if texts := self.history[thread][:newest]:
            messages = [one for text in texts for one in self.messages_of(text)]
            self.bench.record(messages, kind="cut", thread=thread)
            self.cut_ids |= {one.id for one in messages}
            self.history[thread] = self.history[thread][newest:]

    @rule(thread=THREADS)
    def edit(self, thread: str) -> None:
        """The user goes back and says something else: what nobody began to learn is not learned any more."""
        if self.history[thread]:
            text = self.history[thread].pop()
            fact, (asked, _) = f"Likes thing{self.number(text)}", self.messages_of(text)
            holding = [entry for entry in self.bench.entries() if asked.id in [one.id for one in entry.messages]]
            has_begun = fact in self.bench.facts() or any(entry.lease or entry.extracted for entry in holding)
            if self.expected.pop(fact, None) and has_begun:
                self.maybe[fact] = thread
            elif not has_begun:
                self.gone.add(fact)
            self.turn(thread)

    def number(self, text: str) -> int:
        return int(text.removeprefix("I like thing"))

    @rule(seconds=st.sampled_from([0.5, 10.0, 31.0, 200.0]))
    def tick(self, seconds: float) -> None:
        self.bench.clock.advance(seconds)
        self.queue.tick()

    @rule()
    def duplicate_trigger(self) -> None:
        self.bench.drain()

    @rule()
    def another_process_drains(self) -> None:
        self.bench.another_process(1000).drain(ADA)

    @rule(calls=st.integers(1, 40), applies_first=st.booleans())
    def crash(self, calls: int, applies_first: bool) -> None:
        self.bench.store.applies_first = applies_first
        self.bench.store.fault = fail_at(self.bench.store.calls + calls, error=Killed)
        with suppress(Killed):
            self.bench.drain()
        self.bench.store.fault = lambda _: None
        self.start_process()

    @rule(calls=st.integers(1, 40))
    def a_store_call_fails(self, calls: int) -> None:
        self.bench.store.fault = fail_at(self.bench.store.calls + calls)
        with suppress(OSError):
            self.bench.drain()
        self.bench.store.fault = lambda _: None

    @rule()
    def the_model_fails(self) -> None:
        self.bench.model.replies.append(TimeoutError())
        self.bench.drain()
        self.bench.model.replies.clear()

    @rule()
    def restart(self) -> None:
        self.start_process()

    @rule()
    def erase(self) -> None:
        erase_user(self.bench.store, "ada")
        self.gone |= {*self.expected, *self.maybe}
        self.expected.clear()
        self.maybe.clear()

    @rule(thread=THREADS)
    def delete_thread(self, thread: str) -> None:
        self.bench.clock.advance(1)
        erase_thread(self.bench.store, thread, clock=self.bench.clock)
        self.bench.clock.advance(1)
        mine = {content for content, where in (self.expected | self.maybe).items() if where == thread}
        self.gone |= mine
        self.expected = {content: where for content, where in self.expected.items() if content not in mine}
        self.maybe = {content: where for content, where in self.maybe.items() if content not in mine}
        self.history[thread] = []

    @invariant()
    def nothing_is_doubled_over_the_cap_or_back(self) -> None:
        facts = self.bench.facts()
        assert len(facts) == len(set(facts))
        assert len(facts) <= MAX_FACTS + 1  # a kill between two writes may leave one too many until the next drain
        assert not self.gone & set(facts)
        journaled = self.bench.journaled()
        assert len(journaled) == len(set(journaled))
        assert not set(map(self.line, self.gone)) & {line.partition(": ")[2] for line in journaled}

    def line(self, fact: str) -> str:
        return fact.replace("Likes", "I like")

    def teardown(self) -> None:
        if not hasattr(self, "bench"):
            return
        self.start_process()
        self.bench.drain_all()
        self.bench.drain()
        assert (self.bench.entries(), self.bench.markers()) == ([], [])
        facts = set(self.bench.facts())
        assert len(facts) <= MAX_FACTS
        assert not self.gone & facts
        assert facts <= {*self.expected, *self.maybe}
        if len(self.expected) + len(self.maybe) <= MAX_FACTS:
            assert facts >= set(self.expected)
        # The limit of facts is none of the journal: whatever was learned is told there, once.
        lines = {line for line in self.bench.journaled() if "reply" not in line}
        assert lines >= {f"{thread}: {self.line(fact)}" for fact, thread in self.expected.items()}
        assert lines <= {f"{thread}: {self.line(fact)}" for fact, thread in (self.expected | self.maybe).items()}


TestUpdates = Updates.TestCase
TestUpdates.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
