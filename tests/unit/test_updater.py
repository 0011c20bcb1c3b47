import threading
from contextlib import suppress
from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from memory.config import MemoryConfig
from memory.core.store import FactStore
from memory.erase import erase_user
from memory.message import iso_time
from memory.namespaces import Owner
from memory.storage import PAGE, run
from memory.updates import outbox
from memory.updates.conversation import ConversationContext
from memory.updates.dead_letters import dead_letters, discard_dead, retry_dead
from memory.updates.records import MAX_RECEIPTS, read_receipts, read_seen
from memory.updates.update_queue import MemoryUpdateQueue
from tests.fakes import Responder, learns
from tests.memory_bench import ADA, CONFIG, MemoryBench
from tests.stores import FaultyStore, Killed, fail_at

BOB = Owner.of("bob")


class Refused(Exception):
    status_code = 401


class TooMany(Exception):
    status_code = 429


def test_an_update_makes_facts_and_leaves_nothing_pending() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    assert bench.markers() == [ADA]
    drained = bench.drain()
    assert bench.facts() == ["Likes figs"]
    assert (bench.entries(), bench.markers()) == ([], [])
    assert drained.due is None
    (receipt,) = run(bench.store, read_receipts(ADA, bench.epoch()))
    assert receipt == drained.receipts[0]
    assert receipt["messages"] == ["u1", "a1"]
    assert [fact.id for fact in FactStore.of_owner(bench.store, ADA).list()] == receipt["created"]


async def test_an_update_on_an_event_loop_does_the_same() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    drained = await bench.updater.adrain(ADA)
    assert (bench.facts(), bench.entries(), len(drained.receipts)) == (["Likes figs"], [], 1)


def test_entries_of_one_conversation_are_merged_into_one_model_call() -> None:
    bench = MemoryBench()
    first, second = bench.messages("I like figs"), bench.messages("I like plums", begin=2)
    bench.record(first)
    bench.record(second)
    bench.record(first, kind="cut")
    bench.drain()
    assert len(bench.model.prompts) == 1
    assert bench.facts() == ["Likes figs", "Likes plums"]
    assert bench.model.prompts[0][-1].text.count("I like figs") == 1


def test_a_long_backlog_is_read_in_portions() -> None:
    bench = MemoryBench()
    for number in range(1, 11):
        bench.say(f"I like figs{number}. " + "x" * 6000, begin=number)
    bench.drain()
    assert len(bench.model.prompts) == 4
    assert len(bench.facts()) == 10


def test_each_assistants_choice_of_a_model_is_kept() -> None:
    bench = MemoryBench()
    bench.record(bench.messages("I like figs"), model="local")
    bench.record(bench.messages("I like plums", begin=2), model="openai:x")
    bench.drain()
    assert sorted(bench.loaded) == ["local", "openai:x"]
    prompts = [prompt[-1].text for prompt in bench.model.prompts]
    assert not any(
        "figs" in prompt.split("Messages:")[1] and "plums" in prompt.split("Messages:")[1] for prompt in prompts
    )


def test_B6_flushed_messages_ask_no_model_again() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.drain()
    bench.record(bench.messages("I like figs"), kind="cut")
    bench.drain()
    assert len(bench.model.prompts) == 1
    assert bench.entries() == []


def test_B6_a_hash_is_remembered_only_after_success() -> None:
    bench = MemoryBench()
    bench.model.replies.append(TooMany("later"))
    bench.say("I like figs")
    bench.drain()
    assert run(bench.store, read_seen(ADA, "T", bench.epoch())) == {}
    bench.drain_all()
    assert bench.facts() == ["Likes figs"]
    assert len(run(bench.store, read_seen(ADA, "T", bench.epoch()))) == 2


def test_B6_hashes_are_those_of_one_user_and_thread() -> None:
    bench = MemoryBench()
    for owner, thread in [(ADA, "T"), (BOB, "T"), (ADA, "U")]:
        bench.say("I like figs", owner=owner, thread=thread)
        bench.drain(owner)
    assert len(bench.model.prompts) == 3
    assert bench.facts(BOB) == ["Likes figs"]


def test_B6_so_many_hashes_are_kept_and_no_more() -> None:
    bench = MemoryBench(config=replace(CONFIG, seen_limit=4))
    for number in range(1, 5):
        bench.say(f"I like figs{number}", begin=number)
        bench.drain()
    assert len(run(bench.store, read_seen(ADA, "T", bench.epoch()))) == 4


def test_B7_scheduled_turns_reach_no_model_and_no_journal() -> None:
    bench = MemoryBench()
    bench.record(bench.messages("[SCHEDULED] I like reports", "I like figs"), kind="cut")
    bench.drain()
    assert "reports" not in bench.model.prompts[0][-1].text
    assert bench.facts() == ["Likes figs"]
    assert "reports" not in bench.everything_stored()


def test_B7_a_scheduled_turn_alone_asks_no_model() -> None:
    bench = MemoryBench()
    bench.say("[SCHEDULED] I like reports")
    bench.drain()
    assert (bench.model.prompts, bench.entries()) == ([], [])


def test_B8_disabled_memory_processes_nothing() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    off = MemoryBench(config=MemoryConfig(enabled=False), store=bench.store, model=bench.model)
    off.drain()
    assert (bench.model.prompts, len(bench.entries())) == ([], 1)


def test_C5_what_was_cut_makes_facts_and_journal_lines() -> None:
    bench = MemoryBench()
    bench.record(bench.messages("I like figs"), kind="cut")
    bench.drain()
    assert bench.facts() == ["Likes figs"]
    (line,) = bench.store.values(ADA.namespace("journal"))
    assert (line["thread_id"], line["message_ids"]) == ("T", ["u1", "a1"])
    assert line["messages"][0]["text"] == "I like figs"


def test_C5_a_journal_line_has_the_time_at_which_it_was_said() -> None:
    bench = MemoryBench()
    said = iso_time(bench.clock())
    bench.say("I like figs")
    bench.drain()
    bench.clock.advance(86_400)
    bench.record(bench.messages("I like figs"), kind="cut")
    bench.drain()
    (line,) = bench.store.values(ADA.namespace("journal"))
    assert line["from"] == said


@pytest.mark.parametrize("error", [TooMany("x"), TimeoutError(), ConnectionError(), ValueError("no JSON")])
def test_a_failing_model_is_tried_again_with_growing_delays(error: Exception) -> None:
    bench = MemoryBench()
    bench.model.replies.extend([error] * 3)
    bench.say("I like figs")
    delays = []
    for _ in range(3):
        drained = bench.drain()
        assert drained.failed == 1
        assert drained.due is not None
        delays.append(drained.due - bench.clock())
        assert bench.drain().receipts == ()
        bench.clock.advance(delays[-1])
    assert delays == [5, 10, 20]
    bench.drain()
    assert bench.facts() == ["Likes figs"]


def test_what_fails_for_good_is_kept_and_can_be_retried_or_discarded() -> None:
    bench = MemoryBench(config=replace(CONFIG, max_attempts=3))
    bench.model.replies.extend([TooMany("secret")] * 3)
    bench.say("I like figs")
    bench.drain_all()
    (dead,) = run(bench.store, dead_letters(ADA))
    assert (dead.state, dead.attempts, dead.error) == ("dead", 3, "TooMany")
    assert bench.markers() == []
    assert run(bench.store, retry_dead(ADA, bench.clock(), [dead.key])) == 1
    assert bench.markers() == [ADA]
    bench.drain()
    assert bench.facts() == ["Likes figs"]


def test_a_dead_letter_can_be_discarded() -> None:
    bench = MemoryBench()
    bench.model.replies.append(Refused())
    bench.say("I like figs")
    bench.drain()
    assert run(bench.store, discard_dead(ADA)) == 1
    assert bench.entries() == []


def test_a_wrong_api_key_is_not_tried_again() -> None:
    bench = MemoryBench()
    bench.model.replies.append(Refused())
    bench.say("I like figs")
    bench.drain_all()
    assert len(bench.model.prompts) == 1
    assert [entry.state for entry in bench.entries()] == ["dead"]


def test_a_model_that_cannot_be_loaded_fails_the_update_only() -> None:
    bench = MemoryBench()

    def load(name: str) -> None:
        raise ImportError(name)

    bench.load = load  # type: ignore[assignment, method-assign]
    bench.restart()
    bench.say("I like figs")
    assert bench.drain().failed == 1
    assert [entry.error for entry in bench.entries()] == ["ImportError"]


def test_one_conversations_failure_does_not_stop_the_next() -> None:
    bench = MemoryBench()
    bench.model.replies.append(TooMany())
    bench.say("I like figs", thread="A")
    bench.say("I like plums", thread="B")
    drained = bench.drain()
    assert (drained.failed, len(bench.facts())) == (1, 1)


async def test_one_users_failure_does_not_stop_a_sweep() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.say("I like plums", owner=BOB)
    calls = bench.store.calls
    bench.store.fault = fail_at(calls + 1, error=lambda: OSError("gone"))
    await bench.updater.asweep([ADA, BOB])
    assert bench.facts(BOB) == ["Likes plums"]


def test_the_extraction_is_journaled_before_it_is_applied() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    journaled: list[bool] = []

    def fault(n: int) -> None:
        if not bench.store.items(ADA.namespace("facts")):
            journaled.append(any(value["extracted"] for value in bench.store.values(ADA.namespace("outbox"))))

    bench.store.fault = fault
    bench.drain()
    assert journaled[-1]


@pytest.mark.parametrize("applies_first", [False, True])
def test_killed_at_any_write_the_next_worker_ends_in_the_same_place(applies_first: bool) -> None:
    total = _calls_of_a_whole_update()
    assert total > 15
    for n in range(1, total + 1):
        bench = MemoryBench()
        bench.store.applies_first = applies_first
        bench.store.fault = fail_at(n, error=Killed)
        _until_killed(bench)
        bench.store.fault = lambda _: None
        bench.restart()
        if bench.entries() or n > 3:
            _converse(bench)
            bench.drain()
        assert bench.entries() == [], n
        assert bench.facts() in (["Likes figs", "Likes plums"], []), n
        assert len(bench.model.prompts) <= 2, n
        assert bench.markers() == [], n


def _converse(bench: MemoryBench) -> None:
    bench.say("I like figs")
    bench.record(bench.messages("I like plums", begin=2), kind="cut")


def _until_killed(bench: MemoryBench) -> None:
    with suppress(Killed):
        _converse(bench)
        bench.drain()


def _calls_of_a_whole_update() -> int:
    bench = MemoryBench()
    _until_killed(bench)
    assert bench.facts() == ["Likes figs", "Likes plums"]
    return bench.store.calls


def test_after_a_crash_the_model_is_not_asked_again_for_what_was_journaled() -> None:
    bench = MemoryBench()
    bench.say("I like figs")

    def fault(_: int) -> BaseException | None:
        journaled = any(value["extracted"] for value in bench.store.values(ADA.namespace("outbox")))
        return Killed() if journaled else None

    bench.store.fault = fault
    with pytest.raises(Killed):
        bench.drain()
    bench.store.fault = lambda _: None
    bench.restart()
    bench.say("I like plums", begin=2)
    bench.drain()
    assert bench.facts() == ["Likes figs", "Likes plums"]
    assert len(bench.model.prompts) == 2
    assert "figs" not in bench.model.prompts[1][-1].text.split("Messages:")[1]


@pytest.mark.parametrize("applies_first", [False, True])
def test_any_store_call_may_fail_once_and_nothing_is_lost_or_doubled(applies_first: bool) -> None:
    for n in range(1, _calls_of_a_whole_update() + 1):
        bench = MemoryBench()
        bench.store.applies_first = applies_first
        bench.store.fault = fail_at(n)
        try:
            _converse(bench)
        except OSError:
            _converse(bench)
        with suppress(OSError):
            bench.drain()
        bench.store.fault = lambda _: None
        bench.drain_all()
        bench.drain()
        assert bench.facts() == ["Likes figs", "Likes plums"], n
        assert (bench.entries(), bench.markers()) == ([], []), n


def test_any_model_call_may_fail_once_and_nothing_is_lost_or_doubled() -> None:
    for n in range(4):
        bench = MemoryBench()
        bench.model.replies.extend(["not JSON"] if n == 0 else [])
        for number in range(4):
            if number == n:
                bench.model.replies.append(TooMany())
            bench.say(f"I like figs{number}", begin=number)
            bench.drain()
        bench.drain_all()
        assert bench.facts() == [f"Likes figs{number}" for number in range(4)]


def test_two_workers_ask_the_model_once() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    other = bench.another_process(99)

    def respond(messages: list[BaseMessage]) -> str:
        assert other.drain(ADA).receipts == ()
        return learns(messages)

    bench.model.respond = respond
    bench.drain()
    assert (len(bench.model.prompts), bench.facts()) == (1, ["Likes figs"])


def test_a_dead_workers_lease_is_void_at_once_and_a_living_ones_runs_out() -> None:
    for kill, waits in [(True, 0.0), (False, CONFIG.lease_seconds)]:
        bench = MemoryBench()
        bench.say("I like figs")
        bench.model.respond = _raises(Killed)
        with pytest.raises(Killed):
            bench.drain()
        bench.model.respond = learns
        if kill:
            bench.restart()
        other = bench.updater if kill else bench.another_process(99)
        if waits:
            assert other.drain(ADA).receipts == ()
        bench.clock.advance(waits)
        other.drain(ADA)
        assert bench.facts() == ["Likes figs"]


def _raises(error: type[BaseException]) -> Responder:
    def respond(messages: list[BaseMessage]) -> str:
        raise error

    return respond


def test_a_worker_that_lost_its_lease_does_not_apply_what_it_found() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    other = bench.another_process(99)

    def respond(messages: list[BaseMessage]) -> str:
        bench.model.respond = learns
        bench.clock.advance(CONFIG.lease_seconds)
        other.drain(ADA)
        return learns(messages).replace("Likes figs", "Is fond of figs")

    bench.model.respond = respond
    bench.drain()
    assert bench.facts() == ["Likes figs"]
    assert bench.entries() == []


def test_erasing_cancels_what_is_queued() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    erase_user(bench.store, "ada")
    assert bench.entries() == []
    bench.drain()
    assert (bench.facts(), bench.model.prompts) == ([], [])


def test_erasing_wins_over_an_extraction_in_flight_at_every_point() -> None:
    total = _calls_of_a_whole_update()
    for n in range(1, total + 1):
        bench = MemoryBench()
        state = {"erased": False}

        def fault(call: int, bench: MemoryBench = bench, n: int = n, state: dict[str, bool] = state) -> None:
            if call >= n and not state["erased"]:
                state["erased"] = True
                erase_user(FaultyStore(bench.store.inner), "ada")

        _converse(bench)
        start = bench.store.calls
        bench.store.fault = lambda call, fault=fault, start=start: fault(call - start)  # type: ignore[misc]
        bench.drain()
        bench.drain()
        if state["erased"]:
            assert bench.facts() == [], n
            stored = bench.everything_stored()
            assert "figs" not in stored, n
            assert "plums" not in stored, n


def test_after_an_erase_what_is_cut_from_older_messages_does_not_come_back() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.drain()
    erase_user(bench.store, "ada")
    bench.say("I like plums", begin=2)
    bench.record(bench.messages("I like figs", "I like plums"), kind="cut")
    bench.drain()
    assert bench.facts() == ["Likes plums"]
    assert "figs" not in bench.everything_stored()


def test_the_cap_holds_after_a_drain() -> None:
    bench = MemoryBench(config=replace(CONFIG, max_facts=3))
    bench.say(*(f"I like figs{number}" for number in range(8)))
    bench.drain()
    assert len(bench.facts()) == 3


def test_a_marker_is_right_whatever_another_worker_does_between_the_look_and_the_writing() -> None:
    for entries_before, entries_after in [(1, 0), (0, 1)]:
        bench = MemoryBench()
        if entries_before:
            bench.say("I like figs")
        settling = outbox.settle(ADA)
        operations = settling.send(bench.store.batch(next(settling)))  # it has looked, and is about to write
        if entries_after:
            bench.say("I like figs")
        else:
            bench.another_process(99).drain(ADA)
        with suppress(StopIteration):
            while True:
                operations = settling.send(bench.store.batch(operations))
        assert len(bench.markers()) == len(bench.entries()) == entries_after


def test_receipts_are_bounded() -> None:
    bench = MemoryBench()
    for number in range(MAX_RECEIPTS):
        bench.store.put(ADA.namespace("receipts"), f"{number}", {"time": f"2000-01-01T00:{number:04}"})
    bench.say("I like figs")
    bench.drain()
    kept = bench.store.values(ADA.namespace("receipts"))
    assert len(kept) == MAX_RECEIPTS
    assert "2000-01-01T00:0000" not in [receipt["time"] for receipt in kept]
    assert kept[-1]["created"]


def test_a_garbled_entry_is_left_alone_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    (value,) = bench.store.values(ADA.namespace("outbox"))
    bench.store.put(ADA.namespace("outbox"), "moved", value)
    bench.store.put(ADA.namespace("outbox"), "garbled", {"kind": "turn", "messages": "I like secrets"})
    bench.drain()
    assert bench.facts() == ["Likes figs"]
    assert bench.markers() == []
    assert len(bench.store.items(ADA.namespace("outbox"))) == 2
    assert "secrets" not in caplog.text


@pytest.mark.parametrize("garbage", ["x", ["x"], {}, {"entries": "x", "portions": 1}, {"entries": [], "portions": "x"}])
def test_a_garbled_journal_of_an_extraction_asks_the_model_again(garbage: object) -> None:
    bench = MemoryBench()
    key = bench.say("I like figs").key
    (value,) = bench.store.values(ADA.namespace("outbox"))
    bench.store.put(ADA.namespace("outbox"), key, {**value, "extracted": garbage})
    bench.drain()
    assert bench.facts() == ["Likes figs"]


def test_what_an_erase_cancels_in_the_middle_of_a_drain_reaches_no_model() -> None:
    bench = MemoryBench()
    bench.say("I like figs", thread="A")
    bench.say("I like plums", thread="B")

    def respond(messages: list[BaseMessage]) -> str:
        erase_user(bench.store, "ada")
        return learns(messages)

    bench.model.respond = respond
    bench.drain()
    assert len(bench.model.prompts) == 1
    assert bench.entries() == []


def test_a_hung_model_call_is_given_up_after_its_deadline() -> None:
    bench = MemoryBench(config=replace(CONFIG, model_timeout_seconds=0.05))
    hung = threading.Event()

    def respond(messages: list[BaseMessage]) -> str:
        hung.wait(30)
        return learns(messages)

    bench.model.respond = respond
    bench.say("I like figs")
    assert bench.drain().failed == 1
    assert [entry.error for entry in bench.entries()] == ["TimeoutError"]
    hung.set()


def test_a_backlog_of_more_than_one_page_is_drained_whole() -> None:
    bench = MemoryBench()
    for number in range(PAGE + 50):
        bench.record(bench.messages("[SCHEDULED] report", begin=number)[:1])
    bench.drain()
    assert bench.entries() == []


def test_a_long_cut_is_read_in_portions_and_a_crash_between_them_asks_for_none_twice() -> None:
    bench = MemoryBench()
    bench.record(bench.messages(*(f"I like figs{number}" for number in range(25))), kind="cut")

    def respond(messages: list[BaseMessage]) -> str:
        if len(bench.model.prompts) == 2:
            raise Killed
        return learns(messages)

    bench.model.respond = respond
    with pytest.raises(Killed):
        bench.drain()
    bench.restart()
    bench.drain()
    assert len(bench.facts()) == 25
    assert len(bench.model.prompts) == 4


def test_however_much_was_said_no_fact_is_too_many() -> None:
    bench = MemoryBench()
    for number in range(60):
        bench.say(f"I like figs{number}", begin=number)
    bench.drain()
    assert len(bench.facts()) == 60


def test_a_program_of_ones_own_gives_the_updater_to_the_queue() -> None:
    bench = MemoryBench()
    queue = MemoryUpdateQueue(
        bench.updater.process,
        memory_config=bench.config,
        clock=bench.clock,
        start_thread=lambda name, target: target() if name == "palimpsest-update" else None,
    )
    queue.add(ConversationContext("T", "ada", messages=[HumanMessage("I like figs", id="1")], kind="cut"))
    queue.add(ConversationContext("T", "ada", messages=[HumanMessage("I like plums", id="2"), AIMessage("ok", id="3")]))
    bench.clock.advance(bench.config.debounce_seconds)
    queue.tick()
    assert bench.facts() == ["Likes figs", "Likes plums"]
    assert bench.entries() == []
    assert len(bench.store.values(ADA.namespace("journal"))) == 1


def test_a_failing_update_in_a_program_of_ones_own_is_tried_again_by_the_queue() -> None:
    bench = MemoryBench()
    bench.model.replies.append(TooMany())
    assert bench.updater.process(ConversationContext("T", "ada", messages=bench.messages("I like figs"))) == 5
