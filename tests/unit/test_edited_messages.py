"""A user edits what they said: the newest words count, and what is no longer there is not learned."""

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from memory.effects import run
from memory.facts.changes import Extraction
from memory.message import StoredMessage
from memory.outbox.entry import Entry, ExtractionProgress, Lease, Worker
from memory.outbox.outbox import retry_dead, write
from memory.outbox.transcript import ThreadView, edited_away
from tests.fakes import learns
from tests.memory_bench import ADA, MemoryBench
from tests.stores import Killed, fail_at


class Refused(Exception):
    status_code = 401


def ids(*messages: StoredMessage) -> frozenset[str]:
    return frozenset(message.id for message in messages)


def edit(bench: MemoryBench) -> None:
    """Say "figs", "plums", then go back and say "kiwis" instead of "plums", under a new id."""
    figs, plums, kiwis = (
        bench.messages(f"I like {what}", begin=n) for n, what in enumerate(["figs", "plums", "kiwis"], 1)
    )
    context = tuple(replace(one, seen=True) for one in figs[-1:])
    bench.record(figs, view=ThreadView(ids(*figs)))
    bench.record((*context, *plums), view=ThreadView(ids(*figs, *plums)))
    bench.record((*context, *kiwis), view=ThreadView(ids(*figs, *kiwis)))


def test_what_is_back_in_the_thread_while_an_update_without_it_asks_the_model_is_learned() -> None:
    bench = MemoryBench()
    edit(bench)
    told = (*bench.messages("I like figs", "I like plums"), *bench.messages("I like dates", begin=4))

    def respond(messages: list[BaseMessage]) -> str:
        bench.model.respond = learns
        bench.record(told[4:], view=ThreadView(ids(*told)))
        return learns(messages)

    bench.model.respond = respond
    bench.drain()
    bench.clock.advance(60)
    bench.drain_all()
    assert {"Likes dates", "Likes figs", "Likes plums"} <= set(bench.facts())


@pytest.mark.parametrize("applies_first", [False, True])
def test_killed_at_any_write_of_an_edit_the_next_turn_ends_in_the_same_place(applies_first: bool) -> None:
    counting = MemoryBench()
    edit(counting)
    for n in range(1, counting.store.calls + 1):
        bench = MemoryBench()
        bench.store.applies_first = applies_first
        bench.store.fault = fail_at(n, error=Killed)
        with suppress(Killed):
            edit(bench)
        bench.store.fault = lambda _: None
        edit(bench)
        bench.drain()
        assert bench.facts() == ["Likes figs", "Likes kiwis"], n
        assert (bench.entries(), bench.markers()) == ([], []), n
        assert len(bench.model.prompts) == 1, n


def test_part_of_a_turn_may_be_edited_away_and_a_kill_in_between_doubles_nothing() -> None:
    for n in range(1, 20):
        bench = MemoryBench()
        turn = bench.messages("I like figs")
        again = (turn[0], replace(turn[1], id="another answer"))
        bench.record(turn)
        bench.store.fault = fail_at(bench.store.calls + n, error=Killed)
        with suppress(Killed):
            bench.record(again, view=ThreadView(ids(*again)))
        bench.store.fault = lambda _: None
        bench.record(again, view=ThreadView(ids(*again)))
        assert ids(*(message for entry in bench.entries() for message in entry.to_learn)) == ids(*again), n
        bench.drain()
        assert bench.facts() == ["Likes figs"], n


def test_a_kill_in_the_middle_of_an_edit_loses_nothing_that_the_thread_still_has() -> None:
    for n in range(1, 20):
        bench = MemoryBench()
        bench.say("I like figs", "I like plums")
        bench.store.fault = fail_at(bench.store.calls + n, error=Killed)
        with suppress(Killed):
            bench.record(bench.messages("I like kiwis", begin=3), view=ThreadView({"u1", "a1", "u3", "a3"}))
        bench.store.fault = lambda _: None
        bench.drain()
        assert "Likes figs" in bench.facts(), n


@pytest.mark.parametrize(
    "progress",
    [
        {"lease": Lease(Worker("elsewhere", 1, "p", "u"), 9e12), "state": "running"},
        {"extracted": ExtractionProgress(entries=(), portions=0, size=20, result=Extraction())},
    ],
    ids=["leased", "extracted"],
)
def test_what_is_worked_on_is_left_to_its_worker(progress: dict[str, Any]) -> None:
    bench = MemoryBench()
    plums = bench.messages("I like plums")
    bench.record(plums)
    (entry,) = bench.entries()
    run(bench.store, write([replace(entry, **progress)]))
    bench.record(bench.messages("I like kiwis", begin=2), view=ThreadView({"u2", "a2"}))
    assert plums in [entry.messages for entry in bench.entries()]


def test_an_edit_while_the_model_is_asked_loses_nothing_and_doubles_nothing() -> None:
    bench = MemoryBench()
    figs, kiwis = bench.messages("I like figs"), bench.messages("I like kiwis", begin=2)
    bench.record(figs)

    def respond(messages: list[BaseMessage]) -> str:
        bench.model.respond = learns
        bench.record(kiwis, view=ThreadView(ids(*kiwis)))
        return learns(messages)

    bench.model.respond = respond
    bench.drain()
    bench.drain()
    assert bench.facts() == ["Likes figs", "Likes kiwis"]
    assert bench.entries() == []


def test_another_threads_messages_and_later_turns_stay() -> None:
    bench = MemoryBench()
    bench.say("I like figs", thread="other")
    late = bench.messages("I like plums", begin=2)
    bench.clock.advance(10)
    bench.record(late)
    bench.clock.advance(-10)
    bench.record(bench.messages("I like kiwis", begin=3), view=ThreadView({"u3", "a3"}))
    bench.drain()
    assert bench.facts() == ["Likes figs", "Likes kiwis", "Likes plums"]


def test_a_turn_that_is_written_down_again_takes_away_what_was_said_in_between() -> None:
    bench = MemoryBench()
    figs, plums = bench.messages("I like figs"), bench.messages("I like plums", begin=2)
    for turn in (figs, plums, figs):
        bench.record(turn, view=ThreadView(ids(*figs, *(plums if turn is plums else ()))))
        bench.clock.advance(1)
    bench.drain()
    assert bench.facts() == ["Likes figs"]


def test_a_dead_letter_that_is_tried_again_does_not_bring_back_what_was_edited_away() -> None:
    bench = MemoryBench()
    bench.model.replies.append(Refused())
    bench.say("I like plums")
    bench.drain()
    bench.record(bench.messages("I like kiwis", begin=2), view=ThreadView({"u2", "a2"}))
    run(bench.store, retry_dead(ADA, bench.clock()))
    bench.drain()
    assert bench.facts() == ["Likes kiwis"]


names = st.lists(st.sampled_from("abcdefgh"), max_size=4, unique=True)
kinds = st.sampled_from(["turn", "turn", "turn", "cut"])


def entries_of(written: list[tuple[Any, list[str]]], *aside: str) -> list[Entry]:
    return [
        Entry(
            kind=kind,
            owner=ADA,
            thread_id="T",
            epoch="",
            created=at,
            due=at,
            messages=tuple(StoredMessage(name, "user", name, "") for name in said),
            edited_away=aside,
        )
        for at, (kind, said) in enumerate(written)
    ]


@given(st.lists(st.tuples(kinds, names), max_size=5), st.sets(st.sampled_from("abcdefgh")), st.booleans())
def test_nothing_that_the_thread_or_a_cut_has_or_goes_on_from_and_nothing_a_summary_may_have_is_edited_away(
    written: list[tuple[Any, list[str]]], held: set[str], is_complete: bool
) -> None:
    cut = {name for kind, said in written if kind == "cut" for name in said}
    turns = [said for kind, said in written if kind == "turn"]
    in_turns = [name for said in turns for name in said]
    gone = edited_away(entries_of(written), ThreadView(held, is_complete))
    assert gone <= {*in_turns} - held - cut
    for said in turns:
        for before, after in pairwise(said):
            assert before not in gone or after not in held | cut
            assert after not in gone or before in held | cut | gone
    if not is_complete:
        known = [at for at, name in enumerate(in_turns) if name in held | cut]
        assert gone <= ({*in_turns[known[0] :]} if known else set())


@given(names, st.sets(st.sampled_from("abcdefgh")))
def test_what_follows_what_the_thread_has_is_edited_away_and_stays_so_until_it_is_back(
    said: list[str], held: set[str]
) -> None:
    last = max((at for at, name in enumerate(said) if name in held), default=-1)
    written: list[tuple[Any, list[str]]] = [("turn", said)]
    assert edited_away(entries_of(written), ThreadView(held)) == {*said[last + 1 :]}
    assert edited_away(entries_of(written, *said), ThreadView(held, is_complete=False)) == {*said[last + 1 :]}
