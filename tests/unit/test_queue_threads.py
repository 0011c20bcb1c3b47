"""A process that can have no further thread keeps what waits and goes on once it can."""

import subprocess
import sys
from collections.abc import Callable

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from memory.config import MemoryConfig
from memory.namespaces import Owner
from memory.queue.schedule import ConversationContext, Pending, put_back
from memory.queue.update_queue import MemoryUpdateQueue
from tests.fakes import Clock
from tests.memory_bench import MemoryBench
from tests.stores import fail_at

PATIENCE = 60.0


class Threads:
    """Runs updates at once, and refuses threads of these names as Python does."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.started: list[str] = []

    def __call__(self, name: str, target: Callable[[], None]) -> None:
        if name in self.refused:
            raise RuntimeError("can't start new thread")
        self.started.append(name)
        if name == "palimpsest-update":
            target()


class Bench:
    """A queue on a clock that the test advances."""

    def __init__(self) -> None:
        self.clock, self.threads = Clock(), Threads()
        self.processed: list[str] = []
        self.queue = MemoryUpdateQueue(
            lambda context: self.processed.append(context.thread_id),
            memory_config=MemoryConfig(update_spacing_seconds=0),
            clock=self.clock,
            start_thread=self.threads,
        )

    def tick(self, seconds: float = 0) -> float | None:
        self.clock.advance(seconds)
        return self.queue.tick()


def test_an_update_that_gets_no_thread_waits_and_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.threads.refused.add("palimpsest-update")
    bench.queue.add_nowait(ConversationContext("T1", "ada"))
    bench.queue.add_nowait(ConversationContext("T2", "bob"))
    pause = bench.tick()
    assert pause is not None
    assert pause > 0
    assert sorted(context.thread_id for context in bench.queue.pending()) == ["T1", "T2"]
    assert caplog.text.count("could not be started") == 1
    bench.threads.refused.clear()
    assert bench.tick() == pause
    assert bench.processed == []
    assert bench.tick(pause) is None
    assert sorted(bench.processed) == ["T1", "T2"]


def test_what_came_for_a_conversation_meanwhile_takes_the_place_of_what_is_put_back() -> None:
    older = Pending(ConversationContext("T", "ada", messages=(), kind="cut"), first=1, due=5)
    newer = Pending(ConversationContext("T", "ada"), first=6, due=30)
    assert put_back(older, None) == older
    assert put_back(older, newer) == Pending(newer.context, first=1, due=5)


def test_an_add_whose_scheduler_gets_no_thread_fails_no_turn_and_the_next_one_starts_it() -> None:
    bench = Bench()
    bench.threads.refused.add("palimpsest-scheduler")
    bench.queue.add(ConversationContext("T1", "ada"))
    assert bench.threads.started == []
    bench.threads.refused.clear()
    bench.queue.add(ConversationContext("T2", "ada"))
    assert bench.threads.started == ["palimpsest-scheduler"]
    assert len(bench.queue.pending()) == 2


def test_a_process_without_threads_loses_no_update_once_it_has_some_again() -> None:
    program = """
import resource, threading
from memory.config import MemoryConfig
from memory.queue.update_queue import ConversationContext, MemoryUpdateQueue

GIB = 2**30
seen, done = [], threading.Event()

def process(context):
    seen.append(context.thread_id)
    if len(seen) == 2:
        done.set()

queue = MemoryUpdateQueue(process, memory_config=MemoryConfig(update_spacing_seconds=0))
resource.setrlimit(resource.RLIMIT_AS, (8 * GIB, resource.RLIM_INFINITY))
threading.stack_size(16 * GIB)
queue.add_nowait(ConversationContext("T1", "ada"))
threading.stack_size(0)
queue.add_nowait(ConversationContext("T2", "ada"))
assert done.wait(100), seen
print(sorted(seen))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "['T1', 'T2']\n"
    assert "palimpsest-scheduler could not be started" in done.stderr


def test_in_a_program_of_ones_own_a_store_that_fails_for_a_while_loses_nothing() -> None:
    for n in range(1, 30):
        bench, threads = MemoryBench(), Threads()
        config = MemoryConfig(update_spacing_seconds=0)
        process, clock = bench.updater.process, bench.clock
        queue = MemoryUpdateQueue(process, memory_config=config, clock=clock, start_thread=threads)
        bench.store.fault = fail_at(n)
        said = [HumanMessage("I like figs", id="u1"), AIMessage("Noted", id="a1")]
        queue.add_nowait(ConversationContext("T", "ada", messages=said))
        while (pause := queue.tick()) is not None:
            bench.clock.advance(pause)
        bench.store.fault = lambda _: None
        assert (bench.facts(), bench.entries(), queue.pending()) == (["Likes figs"], [], ()), n


def test_a_context_says_whose_memory_it_is_by_an_identity_or_by_the_owner_alone() -> None:
    ada = Owner.of("ada", "coach")
    assert ConversationContext("T", "ada", "coach").owner == ada
    alone = ConversationContext.of(ada, "T", InMemoryStore())
    assert (alone.owner, alone.thread_id) == (ada, "T")
    assert alone.replacing(ConversationContext.of(ada, "T", InMemoryStore())).owner == ada
