import logging
import re
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.config import CATEGORIES, MemoryConfig
from memory.facts import rules
from memory.facts.fact import Fact, FactNotFound, MemoryFull, fact_ids, is_protected
from memory.facts.fact_set import MAX_HELD, FactSet
from memory.namespaces import Owner

ADA = Owner.of("ada")
T0 = "2026-01-01T00:00:00+00:00"
T1 = "2026-01-02T00:00:00+00:00"
DEFAULTS = MemoryConfig()


def draft(content: str, confidence: float = 0.8, **fields: Any) -> Fact:
    made = Fact(id="", content=content, category="knowledge", confidence=confidence, created_at=T0, updated_at=T0)
    return replace(made, **fields)


def fact_set_of(*facts: Fact, config: MemoryConfig = DEFAULTS) -> FactSet:
    """Return what a transaction reads that follows those in which these facts were written one by one."""
    rows: dict[str, Fact] = {}
    for fact in facts:
        fact_set = FactSet(ADA, rows, config=config, now=T1)
        rules.write(fact_set, fact)
        rows = fact_set.rows
    return FactSet(ADA, rows, config=config, now=T1)


def id_of(content: str, n: int = 0) -> str:
    return next(islice(fact_ids(ADA.due_key, content), n, None))


def contents_of(fact_set: FactSet) -> set[str]:
    return {fact.content for fact in fact_set.rows.values()}


confidences = st.floats(0, 1)
drafts = st.builds(
    lambda content, confidence, pinned, source: draft(content, confidence, pinned=pinned, source=source),
    st.sampled_from([f"fact {n}" for n in range(30)]),
    confidences,
    st.booleans(),
    st.sampled_from(["library", "conversation", "page", "api", "cli"]),
)


def test_F4_a_new_fact_gets_an_id_of_8_hex_digits() -> None:
    fact_set = FactSet(ADA)
    fact = rules.write(fact_set, draft("Lives in Oslo"))

    assert re.fullmatch("fact_[0-9a-f]{8}", fact.id)
    assert fact_set.rows == {fact.id: fact}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("Lives in Oslo.", "lives in  oslo"),
    ],
)
def test_F7_variants_of_case_space_form_and_trailing_punctuation_are_one_fact(one: str, other: str) -> None:
    fact_set = fact_set_of(draft(one))
    (first,) = fact_set.rows.values()

    assert rules.write(fact_set, draft(other, 0.3, category="goal")) == first
    assert fact_set.rows == {first.id: first}
    assert fact_set.said[first.id].times == (T0,)


def test_F7_a_skipped_duplicate_is_logged_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    fact_set = fact_set_of(draft("Lives in Oslo"))
    (first,) = fact_set.rows
    with caplog.at_level(logging.INFO):
        rules.write(fact_set, draft("lives in  OSLO."))

    assert f"skipped a duplicate of {first}" in caplog.text
    assert "oslo" not in caplog.text.casefold()


def test_F8_of_equally_sure_facts_the_oldest_goes() -> None:
    config = MemoryConfig(max_facts=2)
    fact_set = fact_set_of(draft("young", created_at=T1), draft("old"), draft("new"), config=config)

    assert contents_of(fact_set) == {"young", "new"}


def test_what_two_rows_say_is_known_while_one_of_them_is_there() -> None:
    one, two = (draft("Lives in Oslo", id=each) for each in ("fact_00000001", "fact_00000002"))
    for gone in (one, two):
        fact_set = FactSet(ADA, {one.id: one, two.id: two}, now=T1)
        assert fact_set.saying("Lives in Oslo") in (one, two)

        fact_set.archive(gone.id, "ended")

        assert fact_set.saying("Lives in Oslo") in ({one, two} - {gone})
        assert fact_set.over() == []


def test_F8_a_protected_category_is_spared_only_when_the_configuration_names_it() -> None:
    facts = (draft("goal", 0.1, category="goal"), draft("other", 0.9), draft("new", 0.5))
    named = MemoryConfig(max_facts=2, protected_categories=frozenset({"goal"}))

    assert contents_of(fact_set_of(*facts, config=named)) == {"goal", "new"}
    assert contents_of(fact_set_of(*facts, config=MemoryConfig(max_facts=2))) == {"other", "new"}


def test_F8_a_memory_full_of_protected_facts_refuses_the_new_one() -> None:
    config = MemoryConfig(max_facts=2)
    fact_set = fact_set_of(draft("a", pinned=True), draft("b", source="page"), config=config)

    with pytest.raises(MemoryFull, match="all 2 facts are protected"):
        rules.write(fact_set, draft("c", 1.0, pinned=True))


@given(st.lists(drafts, max_size=40), st.integers(1, 6))
def test_F8_never_more_than_the_limit_and_only_the_weakest_unprotected_one_goes(facts: list[Fact], most: int) -> None:
    config = MemoryConfig(max_facts=most)
    fact_set = FactSet(ADA)
    for each in facts:
        before = set(fact_set.rows.values())
        fact_set = FactSet(ADA, fact_set.rows, config=config)
        try:
            fact = rules.write(fact_set, each)
        except MemoryFull:
            assert len(before) == most
            assert all(map(is_protected, before))
            continue
        assert fact in fact_set.rows.values()
        assert len(fact_set.rows) <= most
        evicted = before - set(fact_set.rows.values())
        assert len(evicted) <= 1
        for gone in evicted:
            assert not is_protected(gone)
            assert gone.confidence == min(kept.confidence for kept in before if not is_protected(kept))


@given(
    st.lists(
        st.tuples(st.sampled_from(["create", "update", "delete"]), st.integers(0, 12), st.integers(0, 12)), max_size=40
    )
)
def test_F4_ids_are_unique_and_creation_times_stay(operations: list[tuple[str, int, int]]) -> None:
    config = MemoryConfig(max_facts=8)
    fact_set = FactSet(ADA)
    created: dict[str, str] = {}
    for at, (operation, number, which) in enumerate(operations):
        fact_set = FactSet(ADA, fact_set.rows, config=config, now=T1)
        ids = sorted(created)
        chosen = ids[which % len(ids)] if ids else ""
        if operation == "create":
            moment = f"2026-01-01T00:00:{at:02}+00:00"
            fact = rules.write(fact_set, draft(f"fact {number}", created_at=moment))
            created.setdefault(fact.id, fact.created_at)
        elif operation == "update" and chosen and f"fact {number}" not in contents_of(fact_set):
            rules.update(fact_set, chosen, content=f"fact {number}")
        elif operation == "delete" and chosen:
            fact_set.drop(chosen)
        ids_now = [fact.id for fact in fact_set.rows.values()]
        assert len(set(ids_now)) == len(ids_now)
        assert all(created[fact.id] == fact.created_at for fact in fact_set.rows.values())
        created = {fact_id: moment for fact_id, moment in created.items() if fact_id in ids_now}


def test_F4_an_id_that_another_fact_has_or_had_is_not_given_again() -> None:
    first = id_of("Lives in Oslo")
    taken = FactSet(ADA, {first: draft("Something else", id=first)})
    had = FactSet(ADA)
    had.past = [draft("Lives in Oslo", id=first, status="ended")]

    for fact_set in (taken, had):
        assert rules.write(fact_set, draft("Lives in Oslo")).id == id_of("Lives in Oslo", 1)


def test_F6_update_changes_only_what_is_given_and_archives_what_was() -> None:
    fact_set = fact_set_of(draft("Lives in Oslo", source="page"))
    (old,) = fact_set.rows.values()

    new = rules.update(fact_set, old.id, confidence=0.4)

    assert new == replace(old, confidence=0.4, updated_at=T1, revision=2)
    assert fact_set.archived == [replace(old, status="superseded", replaced_by=old.id)]
    assert fact_set.rows == {old.id: new}


def test_F6_an_update_that_changes_nothing_writes_nothing() -> None:
    fact_set = fact_set_of(draft("Lives in Oslo"))
    (old,) = fact_set.rows.values()

    assert rules.update(fact_set, old.id, content="Lives in Oslo", confidence=0.8) == old
    assert fact_set.writes() == []


def test_F6_the_old_content_of_an_edited_fact_can_be_learned_again() -> None:
    fact_set = fact_set_of(draft("Lives in Oslo"))
    (old,) = fact_set.rows.values()
    edited = rules.update(fact_set, old.id, content="Lives in Bergen")
    again = rules.write(fact_set, draft("Lives in Oslo"))

    assert edited.id == old.id != again.id
    assert contents_of(fact_set) == {"Lives in Oslo", "Lives in Bergen"}


def test_F6_an_update_cannot_make_two_facts_say_the_same() -> None:
    fact_set = fact_set_of(draft("Lives in Oslo"), draft("Lives in Bergen"))

    with pytest.raises(ValueError, match=r"content: fact_\w+ already says this"):
        rules.update(fact_set, id_of("Lives in Oslo"), content="lives in bergen.")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", " \n"),
        ("content", "x" * 10_001),
        ("content", 7),
        ("category", "hobby"),
        ("confidence", 7.5),
        pytest.param("confidence", 10**5000, id="more digits than Python writes"),
    ],
)
def test_F6_invalid_values_are_refused_with_the_field_s_name(field: str, value: Any) -> None:
    fact_set = fact_set_of(draft("Lives in Oslo"))

    with pytest.raises(ValueError, match=f"^{field} must"):
        rules.update(fact_set, id_of("Lives in Oslo"), **{field: value})


@pytest.mark.parametrize(
    "operation",
    [
        lambda fact_set, wanted: fact_set.archive(wanted, "ended"),
        lambda fact_set, wanted: rules.update(fact_set, wanted, confidence=0.1),
    ],
)
def test_F5_F6_an_unknown_id_is_a_key_error_that_tells_it(operation: Any) -> None:
    with pytest.raises(KeyError) as error:
        operation(fact_set_of(draft("Lives in Oslo")), "fact_00000000")

    assert isinstance(error.value, FactNotFound)
    assert error.value.fact_id == "fact_00000000"
    assert str(error.value) == "no fact has the id 'fact_00000000'"


def test_a_retired_fact_leaves_the_rows_and_its_id_is_never_given_again() -> None:
    fact_set = fact_set_of(draft("Lives in Oslo"))
    (old,) = fact_set.rows

    fact_set.archive(old, "superseded", replaced_by="fact_11111111")
    again = rules.write(fact_set, draft("Lives in Oslo"))

    assert [(fact.status, fact.replaced_by) for fact in fact_set.archived] == [("superseded", "fact_11111111")]
    assert again.id != old


def test_what_was_deleted_is_in_the_bin_and_comes_back_as_it_was() -> None:
    fact_set = fact_set_of(draft("Lives in Oslo", pinned=True), draft("Likes figs"))
    oslo = id_of("Lives in Oslo")
    rules.retire(fact_set, oslo)
    assert [fact.content for fact in fact_set.gone()] == ["Lives in Oslo"]
    back = rules.restore(fact_set, oslo)
    assert (back.id, back.status, back.pinned, fact_set.gone()) == (oslo, "active", True, [])
    assert contents_of(fact_set) == {"Lives in Oslo", "Likes figs"}
    with pytest.raises(FactNotFound):
        rules.restore(fact_set, oslo)


def test_what_was_replaced_takes_its_place_again_and_what_replaced_it_comes_back_likewise() -> None:
    fact_set = fact_set_of(draft("Lives in Oslo"))
    oslo, bergen = id_of("Lives in Oslo"), rules.write(fact_set, draft("Lives in Bergen"))
    fact_set.supersede(fact_set.rows[oslo], bergen)
    rules.restore(fact_set, oslo)
    assert contents_of(fact_set) == {"Lives in Oslo"}
    assert [fact.content for fact in fact_set.gone()] == ["Lives in Bergen"]
    rules.restore(fact_set, bergen.id)
    assert contents_of(fact_set) == {"Lives in Bergen"}
    # Also what was replaced again meanwhile, by what is spared at the limit.
    fact_set.supersede(fact_set.rows[bergen.id], rules.write(fact_set, draft("Lives in Narvik", pinned=True)))
    fact_set.config = MemoryConfig(max_facts=1)
    rules.restore(fact_set, oslo)
    assert contents_of(fact_set) == {"Lives in Oslo"}


def test_what_comes_back_from_the_bin_has_no_end_that_is_over_and_keeps_to_the_limit() -> None:
    config = MemoryConfig(max_facts=1)
    fact_set = fact_set_of(draft("Rents a boat", 0.6, valid_to="2020"), config=config)
    boat = id_of("Rents a boat")
    rules.retire(fact_set, boat)
    weak = rules.write(fact_set, draft("Likes figs", 0.9, valid_to="2999"))
    fact_set = FactSet(ADA, fact_set.rows, config=config, now=T1, past=fact_set.past)  # the next transaction
    assert rules.restore(fact_set, boat).valid_to == ""
    assert contents_of(fact_set) == {"Rents a boat"}
    assert [fact.id for fact in fact_set.gone()] == [weak.id]
    fact_set = FactSet(ADA, fact_set.rows, config=config, now=T1, past=fact_set.past)
    assert rules.restore(fact_set, weak.id).valid_to == "2999"
    rules.update(fact_set, weak.id, pinned=True)
    with pytest.raises(MemoryFull):
        rules.restore(fact_set, boat)


def test_nothing_that_was_said_no_to_is_in_the_bin_though_it_was_edited_before() -> None:
    fact_set = fact_set_of(draft("Has asthma", status="waiting"))
    asthma = id_of("Has asthma")
    rules.update(fact_set, asthma, content="Has a cold")
    rules.retire(fact_set, asthma)
    assert (fact_set.gone(), fact_set.rows) == ([], {})


def test_the_order_in_which_facts_stay_does_not_depend_on_the_order_of_rows() -> None:
    facts = [draft(f"fact {n}", 0.5, pinned=n == 3) for n in range(6)]
    rows = fact_set_of(*facts).rows
    config = MemoryConfig(max_facts=2)

    forward = FactSet(ADA, rows, config=config)
    backward = FactSet(ADA, dict(reversed(list(rows.items()))), config=config)
    forward.limit()
    backward.limit()

    assert set(forward.rows) == set(backward.rows)
    assert len(forward.rows) == 2
    assert "fact 3" in contents_of(forward)


def test_a_quarantined_fact_counts_neither_as_duplicate_nor_for_the_limit_until_it_is_released() -> None:
    config = MemoryConfig(max_facts=1)
    fact_set = fact_set_of(draft("Obey", status="quarantined"), draft("Likes tea"), config=config)
    held = id_of("Obey")
    assert len(fact_set.rows) == 2

    fact = rules.release(fact_set, held)

    assert (fact.id, fact.status, fact.revision) == (held, "active", 2)
    assert fact_set.find(held) == fact
    with pytest.raises(FactNotFound):
        rules.release(fact_set, held)


def test_a_fact_waits_for_the_same_reason_in_other_words_and_after_its_release_for_what_the_new_ones_are() -> None:
    fact_set = fact_set_of(draft("Has 4 cats", status="quarantined", why="number"))
    held = id_of("Has 4 cats")

    assert rules.update(fact_set, held, content="Has 5 cats").held == "number"
    assert rules.release(fact_set, held).why == ""
    assert rules.update(fact_set, held, content="The password is hunter2!x").held == "secret"


def test_quarantined_facts_stay_until_a_person_answers_and_where_many_wait_an_import_brings_no_more() -> None:
    drafts = [draft(f"Obey {n}", status="quarantined") for n in range(MAX_HELD + 5)]
    fact_set = FactSet(ADA)
    done = [fact_set.add(each) for each in drafts]

    assert done[MAX_HELD:] == ["full"] * 5
    assert [fact.content for fact in fact_set.rows.values()] == [each.content for each in drafts[:MAX_HELD]]


def test_F2_the_six_categories() -> None:
    assert set(CATEGORIES) == {"preference", "knowledge", "context", "behavior", "goal", "correction"}
