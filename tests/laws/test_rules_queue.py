"""The queue that a program feeds: when what waits is processed, and that nothing of it is lost."""

import itertools
import subprocess
import sys
import threading
from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from palimpsest import ConversationContext, FactStore, MemoryConfig, MemoryUpdateQueue, MemoryUpdater
from tests.fakes import Clock, RecordingModel, Refused, learns
from tests.stores import FaultyStore, fail_at

CONFIG = MemoryConfig(debounce_seconds=30, max_wait_seconds=120, update_spacing_seconds=0.5)
PATIENCE = 60.0


def message(name: str) -> HumanMessage:
    return HumanMessage(f"text {name}", id=name)


def context(thread: str = "T", user: str = "ada", *names: str, **more: Any) -> ConversationContext:
    return ConversationContext(thread, user, messages=[message(name) for name in names], **more)


@dataclass
class Bench:
    """A queue whose clock a test advances and whose threads a test runs; nothing happens by itself."""

    config: MemoryConfig = CONFIG
    clock: Clock = field(default_factory=Clock)
    processed: list[tuple[float, ConversationContext]] = field(default_factory=list)
    started: list[tuple[str, Callable[[], None]]] = field(default_factory=list)
    again: list[float | None] = field(default_factory=list)
    holds: bool = False
    fails: int = 0
    error: type[BaseException] = OSError

    def __post_init__(self) -> None:
        self.queue = MemoryUpdateQueue(
            self.process, memory_config=lambda: self.config, clock=self.clock, start_thread=self.start
        )

    def process(self, context: ConversationContext) -> float | None:
        self.processed.append((self.clock(), context))
        if self.fails:
            self.fails -= 1
            raise self.error
        return self.again.pop(0) if self.again else None

    def start(self, name: str, target: Callable[[], None]) -> None:
        self.started.append((name, target))
        if name == "palimpsest-update" and not self.holds:
            target()

    def release(self) -> None:
        """Run the updates that were held back."""
        held = [target for name, target in self.started if name == "palimpsest-update"]
        self.started = [each for each in self.started if each[0] != "palimpsest-update"]
        for target in held:
            target()

    def advance(self, seconds: float, step: float = 0.5) -> None:
        for _ in range(round(seconds / step)):
            self.clock.advance(step)
            self.queue.tick()

    def threads(self) -> list[str]:
        return [context.thread_id for _, context in self.processed]


def test_B1_a_second_context_of_a_key_replaces_the_first() -> None:
    bench = Bench()
    bench.queue.add(context("T", "ada", "1", "2"))
    bench.queue.add(context("T", "ada", "2", "3"))
    (only,) = bench.queue.pending()
    assert only.messages == (message("2"), message("3"))
    assert only.carried_over == ()


def test_B1_the_key_is_thread_user_and_agent() -> None:
    bench = Bench()
    for thread, user, agent in [("T", "ada", "a"), ("U", "ada", "a"), ("T", "bob", "a"), ("T", "ada", "b")]:
        bench.queue.add(ConversationContext(thread, user, agent))
    assert len(bench.queue.pending()) == 4


def test_B1_what_left_by_a_summary_travels_along() -> None:
    bench = Bench()
    bench.queue.add(context("T", "ada", "1", "2", kind="cut"))
    bench.queue.add(context("T", "ada", "3", "4"))
    bench.queue.add(context("T", "ada", "4", "5"))
    (only,) = bench.queue.pending()
    assert only.messages == (message("4"), message("5"))
    assert only.carried_over == (message("1"), message("2"))


def test_B1_a_cut_after_a_turn_does_not_lose_the_turns_tail() -> None:
    bench = Bench()
    bench.queue.add(context("T", "ada", "1", "2", "3"))
    bench.queue.add_nowait(context("T", "ada", "1", "2", kind="cut"))
    (only,) = bench.queue.pending()
    assert only.messages == (message("1"), message("2"))
    assert only.carried_over == (message("3"),)


@pytest.mark.parametrize("field", ["thread_id", "user_id", "agent_name"])
def test_a_context_without_a_name_is_refused_with_the_fields_name(field: str) -> None:
    names: dict[str, Any] = {"thread_id": "T", "user_id": "ada", "agent_name": "default", field: ""}
    with pytest.raises(ValueError, match=field):
        ConversationContext(**names)


def test_B2_the_timer_restarts_with_each_new_item() -> None:
    bench = Bench()
    bench.queue.add(context())
    bench.advance(29)
    bench.queue.add(context())
    bench.advance(29.5)
    assert bench.processed == []
    bench.advance(0.5)
    assert bench.threads() == ["T"]
    assert bench.queue.pending() == ()


def test_B2_steady_traffic_waits_at_most_the_maximum() -> None:
    bench = Bench()
    begin = bench.clock()
    for _ in range(30):
        bench.queue.add(context())
        bench.advance(10)
    times = [time - begin for time, _ in bench.processed]
    assert times[0] == pytest.approx(120, abs=0.5)
    assert all(later - earlier <= 130.5 for earlier, later in itertools.pairwise(times))


def test_B2_twenty_users_faster_than_the_debounce_for_ten_windows_are_all_flushed_by_their_maximum_wait() -> None:
    bench = Bench()
    added: dict[str, float] = {}
    waits: dict[str, list[float]] = {}
    for step in range(600):
        for number in range(20):
            if (step + number) % 10 == 0:
                added.setdefault(f"user{number}", bench.clock())
                bench.queue.add(context(f"T{number}", f"user{number}"))
        seen = len(bench.processed)
        bench.advance(0.5)
        for time, done in bench.processed[seen:]:
            waits.setdefault(done.user_id, []).append(time - added.pop(done.user_id))
    assert len(waits) == 20
    # twenty keys may fall due together, half a second apart
    assert max(wait for each in waits.values() for wait in each) <= 120 + 20 * 0.5
    assert all(len(each) >= 2 for each in waits.values())


def test_B2_one_busy_thread_delays_no_other_users_memory() -> None:
    bench = Bench()
    bench.queue.add(context("quiet", "bob"))
    for _ in range(7):
        bench.queue.add(context("busy", "ada"))
        bench.advance(5)
    assert bench.threads() == ["quiet"]


def test_B3_add_nowait_starts_at_once() -> None:
    bench = Bench()
    bench.queue.add_nowait(context())
    bench.queue.tick()
    assert bench.threads() == ["T"]


def test_B3_a_later_add_does_not_put_off_what_is_due() -> None:
    bench = Bench()
    bench.queue.add_nowait(context("T", "ada", "1"))
    bench.queue.add(context("T", "ada", "2"))
    bench.queue.tick()
    assert bench.threads() == ["T"]


def test_B4_updates_and_scheduler_run_on_daemon_threads() -> None:
    done = threading.Event()
    seen: list[bool] = []

    def process(_: ConversationContext) -> None:
        seen.append(threading.current_thread().daemon)
        done.set()

    queue = MemoryUpdateQueue(process, memory_config=CONFIG)
    before = set(threading.enumerate())
    queue.add_nowait(context())
    assert done.wait(PATIENCE)
    assert seen == [True]
    assert [thread.daemon for thread in set(threading.enumerate()) - before if "scheduler" in thread.name] == [True]
    assert queue.close(PATIENCE)


def test_B4_one_scheduler_serves_all_adds() -> None:
    bench = Bench()
    for number in range(50):
        bench.queue.add(context(f"T{number}"))
    assert [name for name, _ in bench.started] == ["palimpsest-scheduler"]


def test_B4_the_scheduler_wakes_for_what_is_due_before_it_meant_to() -> None:
    done = threading.Event()
    queue = MemoryUpdateQueue(
        lambda one: done.set() if one.thread_id == "now" else None,
        memory_config=MemoryConfig(debounce_seconds=3600, max_wait_seconds=3600),
    )
    queue.add(context("later", "bob"))
    queue.add_nowait(context("now", "ada"))
    assert done.wait(PATIENCE)
    queue.close(0)


def test_B8_disabled_is_a_full_no_op() -> None:
    bench = Bench(config=MemoryConfig(enabled=False))
    bench.queue.add(context())
    bench.queue.add_nowait(context())
    bench.advance(300, step=10)
    assert (bench.queue.pending(), bench.started, bench.processed) == ((), [], [])


def test_B8_the_switch_is_read_at_every_add_and_tick() -> None:
    bench = Bench()
    bench.queue.add(context())
    bench.config = MemoryConfig(enabled=False)
    bench.advance(60)
    assert (bench.queue.pending(), bench.processed) == ((), [])
    bench.config = MemoryConfig(debounce_seconds=1)
    bench.queue.add(context())
    bench.advance(1)
    assert bench.threads() == ["T"]


def test_B9_updates_start_half_a_second_apart_and_none_waits_after_the_last() -> None:
    bench = Bench()
    for number in range(4):
        bench.queue.add_nowait(context(f"T{number}", f"user{number}"))
    begin = bench.clock()
    assert bench.queue.tick() == 0.5
    bench.advance(1.5, step=0.25)
    assert [time - begin for time, _ in bench.processed] == [0, 0.5, 1.0, 1.5]
    assert bench.queue.tick() is None


def test_updates_of_one_user_follow_each_other_and_of_different_users_run_side_by_side() -> None:
    bench = Bench(holds=True)
    for thread, user in [("T1", "ada"), ("T2", "ada"), ("T3", "bob")]:
        bench.queue.add_nowait(context(thread, user))
    bench.advance(5)
    assert len([name for name, _ in bench.started if name == "palimpsest-update"]) == 2
    bench.release()
    assert bench.threads() == ["T1", "T3"]
    bench.advance(1)
    bench.release()
    assert bench.threads() == ["T1", "T3", "T2"]


def test_a_context_added_while_its_update_runs_gets_an_update_of_its_own() -> None:
    bench = Bench(holds=True)
    bench.queue.add_nowait(context("T", "ada", "1"))
    bench.queue.tick()
    bench.queue.add(context("T", "ada", "2"))
    bench.release()
    bench.holds = False
    bench.advance(30)
    assert [one.messages for _, one in bench.processed] == [(message("1"),), (message("2"),)]


def test_a_failing_update_stops_nobody() -> None:
    bench = Bench()

    def process(one: ConversationContext) -> None:
        if one.user_id == "ada":
            raise RuntimeError("secret text")
        bench.process(one)

    queue = MemoryUpdateQueue(process, memory_config=CONFIG, clock=bench.clock, start_thread=bench.start)
    queue.add_nowait(context("T1", "ada"))
    queue.add_nowait(context("T2", "bob"))
    queue.tick()
    bench.clock.advance(1)
    queue.tick()
    assert bench.threads() == ["T2"]


@pytest.mark.parametrize("bound", [{"retry_max_seconds": 10}, {"sweep_seconds": 10}])
def test_what_failed_is_tried_again_with_growing_bounded_delays_until_it_is_processed(bound: dict[str, Any]) -> None:
    bench = Bench(config=replace(CONFIG, retry_base_seconds=4, **bound), fails=4)
    bench.queue.add_nowait(context("T", "ada", "1"))
    bench.queue.tick()
    (waiting,) = bench.queue.pending()
    assert waiting == context("T", "ada", "1")
    bench.advance(60)
    times = [time for time, _ in bench.processed]
    assert [after - before for before, after in pairwise(times)] == [4, 8, 10, 10]
    assert bench.queue.pending() == ()


def test_what_comes_for_a_conversation_that_failed_takes_its_place_and_what_it_carried_over_along() -> None:
    bench = Bench(fails=1)
    bench.queue.add_nowait(context("T", "ada", "1", kind="cut"))
    bench.queue.tick()
    bench.queue.add(context("T", "ada", "2"))
    bench.advance(60)
    ((_, taken),) = bench.processed[1:]
    assert taken.carried_over == (message("1"),)


def test_a_flush_gives_up_on_what_fails_and_leaves_it_for_later() -> None:
    bench = Bench(config=MemoryConfig(update_spacing_seconds=0), fails=1)
    bench.queue.add(context("T", "ada", "1"))
    assert not bench.queue.flush(PATIENCE)
    assert len(bench.queue.pending()) == 1
    assert bench.queue.flush(PATIENCE)
    assert len(bench.processed) == 2


@pytest.mark.parametrize("error", [CancelledError, SystemExit, KeyboardInterrupt])
def test_a_user_whose_thread_is_made_to_end_is_free_again(error: type[BaseException]) -> None:
    bench = Bench(fails=1, error=error)
    bench.queue.add_nowait(context("T1", "ada"))
    with pytest.raises(error):
        bench.queue.tick()
    bench.queue.add_nowait(context("T2", "ada"))
    bench.advance(60)
    assert bench.threads() == ["T1", "T2", "T1"]


def test_what_fails_when_the_queue_is_closed_is_not_kept() -> None:
    bench = Bench(holds=True, fails=1)
    bench.queue.add_nowait(context("T", "ada"))
    bench.queue.tick()
    assert not bench.queue.close(0)
    bench.release()
    assert bench.queue.pending() == ()


def test_the_log_of_a_failure_holds_no_text(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()

    def process(_: ConversationContext) -> None:
        raise RuntimeError("secret text")

    queue = MemoryUpdateQueue(process, memory_config=CONFIG, clock=bench.clock, start_thread=bench.start)
    queue.add_nowait(context())
    queue.tick()
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


def test_an_update_that_asks_for_another_gets_it_in_time() -> None:
    bench = Bench(again=[5.0])
    bench.queue.add_nowait(context())
    bench.queue.tick()
    bench.advance(4.5)
    assert len(bench.processed) == 1
    bench.advance(0.5)
    assert len(bench.processed) == 2


def test_flush_processes_all_without_the_quiet_period() -> None:
    bench = Bench(config=MemoryConfig(update_spacing_seconds=0))
    for number in range(3):
        bench.queue.add(context(f"T{number}"))
    assert bench.queue.flush(PATIENCE)
    assert sorted(bench.threads()) == ["T0", "T1", "T2"]


def test_flush_and_close_give_up_in_time_on_a_hung_update() -> None:
    hung = threading.Event()
    queue = MemoryUpdateQueue(lambda _: hung.wait(PATIENCE) and None, memory_config=CONFIG)
    queue.add_nowait(context())
    assert not queue.flush(0.05)
    assert not queue.close(0.05)
    hung.set()


def test_a_queue_that_is_closed_at_once_starts_nothing_of_what_waits() -> None:
    bench = Bench()
    bench.queue.add_nowait(context())
    assert not bench.queue.close(0)
    assert [name for name, _ in bench.started] == ["palimpsest-scheduler"]
    assert bench.processed == []


def test_a_closed_queue_takes_nothing_more_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    assert bench.queue.close(0)
    assert caplog.messages == []
    bench.queue.add_nowait(context())
    bench.queue.add(context())
    assert caplog.messages == ["the update queue was closed: nothing is learned in this process any more"]
    assert bench.queue.pending() == ()
    assert bench.started == []


def test_adds_from_many_threads_are_all_processed_once() -> None:
    config = MemoryConfig(update_spacing_seconds=0, debounce_seconds=0)
    lock, seen = threading.Lock(), list[str]()

    def process(one: ConversationContext) -> None:
        with lock:
            seen.append(one.thread_id)

    queue = MemoryUpdateQueue(process, memory_config=config)

    def add_many(user: int) -> None:
        for number in range(25):
            queue.add(context(f"T{user}-{number}", f"user{user}"))

    threads = [threading.Thread(target=add_many, args=(user,)) for user in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert queue.close(PATIENCE)
    assert sorted(seen) == sorted(f"T{user}-{number}" for user in range(8) for number in range(25))


def test_what_gets_no_thread_waits_and_is_tried_again_and_no_add_fails(caplog: pytest.LogCaptureFixture) -> None:
    refused = {"palimpsest-update", "palimpsest-scheduler"}
    bench = Bench(config=replace(CONFIG, update_spacing_seconds=0))
    begin = bench.start

    def start(name: str, target: Callable[[], None]) -> None:
        if name in refused:
            raise RuntimeError("can't start new thread")
        begin(name, target)

    bench.start = start  # type: ignore[method-assign]
    bench.__post_init__()
    bench.queue.add_nowait(context("T1", "ada"))
    bench.queue.add_nowait(context("T2", "bob"))
    pause = bench.queue.tick()
    assert pause is not None
    assert pause > 0
    assert sorted(one.thread_id for one in bench.queue.pending()) == ["T1", "T2"]
    assert "could not be started" in caplog.text
    refused.clear()
    bench.queue.add(context("T3", "ada"))
    assert bench.started[0][0] == "palimpsest-scheduler"
    assert bench.queue.tick() == pause
    assert bench.processed == []
    bench.advance(30)
    assert sorted(bench.threads()) == ["T1", "T2", "T3"]


def test_a_process_without_threads_loses_no_update_once_it_has_some_again() -> None:
    program = """
import resource, threading
from palimpsest import ConversationContext, FactStore, MemoryConfig, MemoryUpdater, MemoryUpdateQueue

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


def test_a_process_that_is_forked_learns_what_is_said_in_it() -> None:
    program = """
import os, threading
from palimpsest import ConversationContext, MemoryUpdateQueue

done = threading.Event()
queue = MemoryUpdateQueue(lambda _: done.set())
queue.add_nowait(ConversationContext("T", "ada"))
assert done.wait(100)
done.clear()
child = os.fork()
queue.add_nowait(ConversationContext("T", "eve"))
assert done.wait(20)
assert not child or os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", program], timeout=120, check=True)


def test_in_a_program_of_ones_own_a_store_that_fails_for_a_while_loses_nothing() -> None:
    model, config = RecordingModel(respond=learns), MemoryConfig(update_spacing_seconds=0)
    for n in range(1, 30):
        store, bench = FaultyStore(), Bench()
        updater = MemoryUpdater(store, lambda _: model, config=config, clock=bench.clock)
        queue = MemoryUpdateQueue(updater.process, memory_config=config, clock=bench.clock, start_thread=bench.start)
        store.fault = fail_at(n)
        said = [HumanMessage("I like figs", id="u1"), AIMessage("Noted", id="a1")]
        queue.add_nowait(ConversationContext("T", "ada", messages=said))
        while (pause := queue.tick()) is not None:
            bench.clock.advance(pause)
        store.fault = lambda _: None
        assert [fact.content for fact in FactStore(store, "ada").list()] == ["Likes figs"], n
        assert queue.pending() == (), n


def test_a_wrong_key_is_not_tried_again() -> None:
    model = RecordingModel(respond=lambda _: Refused(401))
    updater = MemoryUpdater(InMemoryStore(), lambda _: model)
    said = [HumanMessage("I like figs", id="u1")]
    assert updater.process(ConversationContext("T", "ada", messages=said)) is None
    assert len(model.prompts) == 1
    model.respond = lambda _: TimeoutError()
    assert updater.process(ConversationContext("U", "ada", messages=said))
