import pytest
from langchain_core.messages import BaseMessage

from memory.effects import run
from memory.erase import aerase_thread, erase_thread
from memory.facts.fact import FactNotFound
from memory.facts.store import FactStore
from memory.namespaces import THREADS_ROOT, Owner
from memory.outbox.outbox import read_owners, record, write
from tests.fakes import learns
from tests.forgetting import aerase_fact, aerase_user, erase_fact, erase_user
from tests.memory_bench import ADA, MemoryBench, going_on

BOB = Owner.of("bob")


def learned(*texts: str) -> MemoryBench:
    """A deployment where ada said each text in a thread of its own, and bob one, all learned and journaled."""
    bench = MemoryBench()
    for number, text in enumerate(texts):
        bench.record(bench.messages(text), kind="cut", thread=f"T{number}")
    bench.drain()
    bench.record(bench.messages("I like pears"), kind="cut", thread="B", owner=BOB)
    bench.drain(BOB)
    return bench


def test_erasing_a_user_leaves_nothing_of_them_and_all_of_others() -> None:
    bench = learned("I like figs", "I like plums")
    bench.say("I like kiwis", thread="T9")
    assert erase_user(bench.store, "ada") > 5
    assert bench.facts() == []
    stored = bench.everything_stored()
    for word in ("figs", "plums", "kiwis"):
        assert word not in stored
    left = [item.namespace for item in bench.store.items(()) if ADA.segment in str(item.namespace) + item.key]
    assert left == [ADA.control]
    assert run(bench.store, read_owners("T0")) == []
    assert bench.facts(BOB) == ["Likes pears"]
    assert run(bench.store, read_owners("B")) == [BOB]


def test_erasing_covers_every_agent_of_the_user() -> None:
    bench = MemoryBench()
    other = Owner.of("ada", "tutor")
    bench.say("I like figs", owner=other)
    bench.drain(other)
    erase_user(bench.store, "ada")
    assert bench.facts(other) == []


def test_erasing_a_thread_cancels_what_is_queued_of_it() -> None:
    bench = MemoryBench()
    bench.say("I like figs", thread="A")
    bench.say("I like plums", thread="B")
    erase_thread(bench.store, "A", clock=bench.clock)
    bench.drain()
    assert bench.facts() == ["Likes plums"]


def test_erasing_an_unknown_thread_is_no_error() -> None:
    bench = learned("I like figs")
    assert erase_thread(bench.store, "never seen") == 0
    assert bench.facts() == ["Likes figs"]


def test_a_thread_of_several_agents_is_erased_for_each() -> None:
    bench = MemoryBench()
    tutor = Owner.of("ada", "tutor")
    for owner in (ADA, tutor):
        bench.say("I like figs", owner=owner)
        bench.drain(owner)
    erase_thread(bench.store, "T", clock=bench.clock)
    assert (bench.facts(), bench.facts(tutor)) == ([], [])


def test_a_thread_that_is_erased_during_its_extraction_stays_erased() -> None:
    bench = MemoryBench()
    bench.say("I like figs")

    def respond(messages: list[BaseMessage]) -> str:
        erase_thread(bench.store, "T", clock=bench.clock)
        return learns(messages)

    bench.model.respond = respond
    bench.drain()
    assert bench.facts() == []
    assert "figs" not in bench.everything_stored()


@pytest.mark.parametrize("step", [-10.0, -0.001, 10.0])
def test_erasing_a_thread_needs_no_clock(step: float) -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    (before,) = bench.entries()
    bench.clock.advance(step)
    erase_thread(bench.store, "T", clock=bench.clock)
    assert bench.entries() == []
    run(bench.store, write([before]))  # as a worker does that was at work on it
    bench.clock.advance(step)
    bench.say("I like plums", begin=2)
    assert bench.drain().cancelled == 1
    assert bench.facts() == ["Likes plums"]


def test_what_is_said_again_in_an_erased_thread_under_the_same_ids_is_learned() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    (before,) = bench.entries()
    erase_thread(bench.store, "T", clock=bench.clock)
    run(bench.store, write([before]))
    bench.say("I like figs")
    bench.drain()
    assert bench.facts() == ["Likes figs"]


def test_an_erased_fact_does_not_come_back_from_old_messages_but_from_new_ones() -> None:
    bench = learned("I like figs")
    bench.record(bench.messages("I like figs", begin=8), thread="T5")
    bench.clock.advance(1)
    (fact,) = FactStore.of_owner(bench.store, ADA, clock=bench.clock).list()
    erase_fact(bench.store, ADA, fact.id, clock=bench.clock)
    bench.drain()
    assert bench.facts() == []
    assert "I like figs" not in str(bench.store.values(ADA.namespace("journal")))
    bench.clock.advance(1)
    bench.say("I like figs", begin=9, thread="T6")
    bench.drain()
    assert bench.facts() == ["Likes figs"]


def test_erasing_a_fact_that_is_not_there_says_so() -> None:
    with pytest.raises(FactNotFound):
        erase_fact(MemoryBench().store, ADA, "fact_00000000")


async def test_the_asynchronous_doors_do_the_same() -> None:
    bench = learned("I like figs", "I like plums", "I like kiwis")
    figs = next(fact for fact in FactStore.of_owner(bench.store, ADA).list() if "figs" in fact.content)
    await aerase_fact(bench.store, ADA, figs.id)
    assert bench.facts() == ["Likes kiwis", "Likes plums"]
    await aerase_thread(bench.store, "T1", clock=bench.clock)
    assert bench.facts() == ["Likes kiwis"]
    await aerase_user(bench.store, "ada")
    assert bench.facts() == []
    assert [item.key for item in bench.store.items((THREADS_ROOT,))] == [BOB.due_key]


def test_two_owners_who_write_a_threads_first_turn_down_at_once_are_both_found() -> None:
    bench = MemoryBench()
    tutor = Owner.of("ada", "tutor")
    ours, theirs = (record(bench.draft(bench.messages("I like figs"), owner=owner)) for owner in (ADA, tutor))
    read, also_read = bench.store.batch(next(ours)), bench.store.batch(next(theirs))  # before either has written
    run(bench.store, going_on(ours, read))
    run(bench.store, going_on(theirs, also_read))
    assert {*run(bench.store, read_owners("T"))} == {ADA, tutor}
    erase_thread(bench.store, "T", clock=bench.clock)
    assert "figs" not in bench.everything_stored()
    assert bench.store.items((THREADS_ROOT,)) == []


def test_erasing_a_user_takes_the_notes_of_threads_that_were_only_pending() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    erase_user(bench.store, "ada")
    assert bench.store.items((THREADS_ROOT,)) == []


def test_a_turn_that_began_before_an_erase_is_not_written_down() -> None:
    bench = MemoryBench()
    draft = bench.draft(bench.messages("I like figs"), epoch=bench.epoch())
    erase_user(bench.store, "ada")
    assert run(bench.store, record(draft)) is None
    assert [item.namespace for item in bench.store.items(())] == [ADA.control]


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("knows_epoch", [True, False])
def test_an_erase_while_a_turn_is_written_down_leaves_nothing_of_it(batch: int, knows_epoch: bool) -> None:
    bench = MemoryBench()
    draft = bench.draft(bench.messages("I like figs"), epoch=bench.epoch() if knows_epoch else "")
    begun = bench.store.calls

    def erase_before(call: int) -> None:
        if call == begun + batch:
            erase_user(bench.store, "ada")

    bench.store.fault = erase_before
    recorded = run(bench.store, record(draft))
    if batch == 1 and not knows_epoch:  # said after the erase, then
        assert recorded is not None
    else:
        assert recorded is None
        assert [item.namespace for item in bench.store.items(())] == [ADA.control]


def test_what_is_said_again_after_an_erase_is_not_taken_back_with_it() -> None:
    bench = MemoryBench()
    messages = bench.messages("I like figs")
    stale = record(bench.draft(messages))
    read = bench.store.batch(next(stale))
    erase_user(bench.store, "ada")

    def say_again(call: int) -> None:
        if call == begun + 2:  # between the entry and the look at the epoch
            bench.record(messages)

    begun = bench.store.calls
    bench.store.fault = say_again
    assert run(bench.store, going_on(stale, read)) is None
    assert [entry.epoch for entry in bench.entries()] == [bench.epoch()]
    assert run(bench.store, read_owners("T")) == [ADA]


def test_a_turn_written_down_while_its_thread_is_erased_is_found_by_the_next_erase() -> None:
    bench = MemoryBench()
    bench.say("I like figs")

    def fault(_: int) -> None:
        if bench.store.items(ADA.control):  # the new epoch is written
            bench.store.fault = lambda _: None
            bench.say("I like plums", begin=2)

    bench.store.fault = fault
    erase_thread(bench.store, "T", clock=bench.clock)
    assert len(bench.entries()) == 1
    erase_thread(bench.store, "T", clock=bench.clock)
    assert bench.entries() == []
    assert bench.store.items((THREADS_ROOT,)) == []
