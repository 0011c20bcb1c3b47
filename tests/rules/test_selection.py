from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.control import Control
from memory.facts.fact import Fact
from memory.facts.profile import StoredSection
from memory.facts.rows import MemorySnapshot
from memory.injection.injected import Injected, render_block, render_deltas
from memory.injection.selection import (
    DELTA_SHARE,
    FITTING_TOKENS,
    QUIET_TOKENS,
    TurnConditions,
    choose_block,
    inject,
    needs_rebase,
    told,
)
from memory.message import iso_time
from memory.recall import Document, Hit
from memory.recall.user_index import LEAST_COVERAGE, Recalled

NOW = 1_760_000_000.0
TURN = TurnConditions(
    thread_id="t",
    message_id="m9",
    window=frozenset({"m8", "m9"}),
    now=NOW + 60,
    cache_ttl_seconds=300,
    will_summarize=False,
    budget=2000,
    count=len,
)


def fact(number: int, content: str = "", confidence: float = 0.8, *, written: float = NOW - 60, **fields: Any) -> Fact:
    made = Fact(
        id=f"fact_{number:08}",
        content=content or f"User likes thing number {number}",
        category="knowledge",
        confidence=confidence,
        created_at=iso_time(written),
        updated_at=iso_time(written),
    )
    return replace(made, **fields)


def known(*facts: Fact, **sections: StoredSection) -> MemorySnapshot:
    return MemorySnapshot(Control("e"), facts, {f"user.{name}": section for name, section in sections.items()})


def first(memory: MemorySnapshot, turn: TurnConditions = TURN) -> Injected:
    return inject(None, memory, replace(turn, now=NOW))


def test_what_was_said_in_this_thread_and_is_still_in_the_window_needs_no_delta() -> None:
    before = first(known(fact(1)))
    said_here = fact(2, written=NOW + 30, thread_id="t", message_ids=("m8",))
    left_the_window = fact(3, written=NOW + 30, thread_id="t", message_ids=("m1",))
    said_elsewhere = fact(4, written=NOW + 30, thread_id="u", message_ids=("m8",))

    after = inject(before, known(fact(1), said_here, left_the_window, said_elsewhere), TURN)

    assert [name for name, _ in after.deltas[0].facts] == ["fact_00000003", "fact_00000004"]


@pytest.mark.parametrize(
    ("memory", "is_stale"),
    [
        (known(), True),
        (known(fact(1, "User likes milk", revision=2)), True),
        (known(fact(1), fact(9)), False),
    ],
)
def test_a_corrected_edited_or_deleted_fact_makes_the_block_stale(memory: MemorySnapshot, is_stale: bool) -> None:
    before = first(known(fact(1)))

    after = inject(before, memory, TURN)

    assert needs_rebase(before, memory, TURN) == is_stale
    assert (after.since > before.since) == is_stale


def test_a_summary_brings_a_new_block_where_there_is_something_new_to_tell() -> None:
    before = first(known(fact(1), work=StoredSection("Nurse")))
    summarizing = replace(TURN, will_summarize=True)

    assert not needs_rebase(before, known(fact(1), work=StoredSection("Nurse")), summarizing)
    assert not needs_rebase(before, known(fact(1), fact(2), work=StoredSection("Nurse")), summarizing)
    arrived = known(fact(1), fact(2, written=NOW + 30), work=StoredSection("Nurse"))
    assert needs_rebase(before, arrived, summarizing)
    retold = known(fact(1), work=StoredSection("Nurse").changed("Doctor"))
    assert needs_rebase(before, retold, summarizing)


def said(number: int, text: str = "") -> Document:
    return Document(
        id=f"line-{number}",
        text=text or f"We spoke of thing number {number}",
        when="2025-10-01",
        kind="turn",
        entry=f"entry of line-{number}",
    )


def found(*documents: Document, coverage: float = 1.0) -> Recalled:
    return Recalled([Hit(each, 1.0) for each in documents], (), coverage)


def recalled_in(injected: Injected) -> set[str]:
    deltas = [delta for delta in injected.deltas if delta.message_id == "m9"]
    return {name for delta in deltas for name, _ in delta.facts} | {line for delta in deltas for _, line in delta.lines}


def test_a_message_that_is_about_nothing_known_is_shown_nothing() -> None:
    hits = (said(1), said(2))
    memory = known(fact(1))

    about = inject(first(memory), memory, replace(TURN, recalled=found(*hits, coverage=LEAST_COVERAGE)))
    else_ = inject(first(memory), memory, replace(TURN, recalled=found(*hits, coverage=LEAST_COVERAGE - 0.01)))

    assert recalled_in(about) == {"line-1", "line-2"}
    assert else_.deltas == ()


def test_a_thread_that_begins_with_a_message_about_nothing_known_shows_what_always_holds_and_little_more() -> None:
    answers = [fact(n, f"Wants answers without bullet {n}", category="preference") for n in range(20)]
    memory, hits = known(*answers, *(fact(n, confidence=0.9) for n in range(20, 60))), (said(1), said(2))

    about = first(memory, replace(TURN, recalled=found(*hits)))
    else_ = first(memory, replace(TURN, recalled=found(*hits, coverage=LEAST_COVERAGE - 0.01)))
    few = first(known(*memory.facts[20:]), replace(TURN, recalled=found(*hits, coverage=0.0)))

    assert recalled_in(about) == {"line-1", "line-2"}
    assert else_.deltas == few.deltas == ()
    assert {name for name, _ in else_.block} == {each.id for each in answers}
    assert 0 < len(render_block(few, memory, TURN.budget, len)) <= QUIET_TOKENS


def test_a_thread_that_begins_where_few_facts_are_known_tells_of_past_turns_in_the_room_that_they_leave() -> None:
    hits = [said(number, f"{number} " + "word " * 30) for number in range(20)]
    few, many = known(fact(1)), known(*(fact(number) for number in range(80)))

    shown, beside = (recalled_in(first(memory, replace(TURN, recalled=found(*hits)))) for memory in (few, many))

    assert len(shown) > 1.5 * len(beside) > 0


@given(
    sizes=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 300), st.booleans()), max_size=8),
    room=st.integers(0, 4_000),
)
def test_all_deltas_together_keep_their_room(sizes: list[tuple[int, int, bool]], room: int) -> None:
    memory, injected = known(fact(1)), first(known(fact(1)))
    for number, (count, length, will_summarize) in enumerate(sizes):
        recalled = found(*(said(100 * number + each, "x" * length) for each in range(count)))
        turn = replace(
            TURN, room=room, message_id=f"m{number}", now=NOW + number, recalled=recalled, will_summarize=will_summarize
        )
        after = inject(injected, memory, turn)
        memory = told(after, memory, recalled)
        assert sum(map(len, render_deltas(after, memory).values())) <= max(room, TURN.budget // 2)
        assert after.block == injected.block
        injected = after


def test_a_message_for_which_earlier_deltas_have_to_go_is_told_no_more_than_keeping_all_would_cost() -> None:
    memory, room = known(fact(1)), TURN.budget // 2
    injected, sizes = first(memory), list[int]()
    for number in range(3):
        recalled = found(*(said(100 * number + each, "x" * 40) for each in range(60)))
        injected = inject(injected, memory, replace(TURN, message_id=f"m{number}", recalled=recalled))
        memory = told(injected, memory, recalled)
        sizes += [len(text) for text in render_deltas(injected, memory).values()]
    assert room - 100 < sizes[0] <= room
    assert all(FITTING_TOKENS - 100 < each <= FITTING_TOKENS for each in sizes[1:])


def test_one_delta_is_bounded_and_what_it_leaves_comes_later() -> None:
    before = first(known(fact(1)))
    many = known(fact(1), *(fact(n, written=NOW + 30) for n in range(2, 40)))

    then = inject(before, many, TURN)
    later = inject(then, many, replace(TURN, message_id="m10"))

    (text,) = render_deltas(then, many).values()
    assert len(text) <= TURN.budget // DELTA_SHARE
    assert len(later.deltas) == 2
    assert not set(later.deltas[0].facts) & set(later.deltas[1].facts)


def test_the_block_holds_protected_facts_first_then_standing_instructions_then_the_strongest() -> None:
    facts = (
        fact(1, "Strong knowledge", 0.99),
        fact(2, "A wish about answers", 0.6, category="preference"),
        fact(3, "Pinned", 0.1, pinned=True),
        fact(4, "Weak knowledge", 0.5),
        fact(5, "A correction", 0.7, category="correction"),
    )

    def chosen(budget: int) -> set[str]:
        turn = replace(TURN, budget=budget)
        return {name for name, _ in choose_block(known(*facts), turn)}

    sizes = {len(chosen(budget)): chosen(budget) for budget in range(0, 500, 5)}
    order = [sizes[n] - sizes[n - 1] for n in range(1, 6)]
    assert order == [{f"fact_{n:08}"} for n in (3, 5, 2, 1, 4)]


@pytest.mark.parametrize(
    "state",
    [None, {}, [], {"basis": None}, {"basis": [["a"]]}, {"basis": [], "deltas": [{}]}, {"basis": [], "at": "x"}],
)
def test_a_state_that_cannot_be_read_counts_as_none(state: Any) -> None:
    assert Injected.from_state(state) is None
