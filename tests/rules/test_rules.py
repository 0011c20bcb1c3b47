from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.config import CATEGORIES, MemoryConfig
from memory.facts.fact import Fact, FactNotFound, MemoryFull, fact_id, fact_key, is_protected
from memory.facts.rules import (
    MAX_HELD,
    Confirmation,
    FactSet,
    adopt,
    create,
    find,
    insert,
    limit,
    remove,
    retire,
    unite,
    update,
)
from memory.facts.waiting import release

SALT = "u_0123/default"
T0 = "2026-01-01T00:00:00+00:00"
T1 = "2026-01-02T00:00:00+00:00"
DEFAULTS = MemoryConfig()


def draft(content: str, confidence: float = 0.8, **fields: Any) -> Fact:
    made = Fact(id="", content=content, category="knowledge", confidence=confidence, created_at=T0, updated_at=T0)
    return replace(made, **fields)


def fact_set_of(*facts: Fact, config: MemoryConfig = DEFAULTS) -> FactSet:
    fact_set = FactSet(SALT)
    for fact in facts:
        fact_set, _ = create(fact_set, fact, config, evidence="test")
    return fact_set


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


def test_F4_a_new_fact_gets_an_id_of_8_hex_digits_under_a_key_made_of_its_content() -> None:
    fact_set, fact = create(FactSet(SALT), draft("Lives in Oslo"), DEFAULTS, evidence="e")

    assert fact.id == fact_id(SALT, "lives in oslo")
    assert fact.id.startswith("fact_")
    assert int(fact.id[5:], 16) < 2**32
    assert len(fact.id) == 13
    assert dict(fact_set.rows) == {fact_key("Lives in Oslo."): fact}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("Lives in Oslo.", "lives in  oslo"),
        ("Café", "Cafe\u0301"),
        ("Likes tea", "likes tea!?"),
        ("\ufb01ne", "fine"),
        ("Likes\ttea", "Likes tea"),
    ],
)
def test_F7_variants_of_case_space_form_and_trailing_punctuation_are_one_fact(one: str, other: str) -> None:
    fact_set, first = create(FactSet(SALT), draft(one), DEFAULTS, evidence="1")
    again, second = create(fact_set, draft(other, 0.3, category="goal"), DEFAULTS, evidence="2")

    assert second == first
    assert again.rows == fact_set.rows
    assert again.confirmations == (Confirmation(first.id, "2", T0),)


def test_F7_different_facts_are_different() -> None:
    assert len(fact_set_of(draft("Lives in Oslo"), draft("Lives in Oslo Town")).rows) == 2


def test_F8_the_new_fact_takes_the_place_of_the_weakest_that_was_there_even_when_it_is_weaker() -> None:
    config = MemoryConfig(max_facts=3)
    fact_set = fact_set_of(draft("a", 0.9), draft("b", 0.7), draft("c", 0.8), draft("d", 0.1), config=config)

    assert contents_of(fact_set) == {"a", "c", "d"}


def test_F8_of_equally_sure_facts_the_oldest_goes() -> None:
    config = MemoryConfig(max_facts=2)
    fact_set = fact_set_of(draft("young", created_at=T1), draft("old"), draft("new"), config=config)

    assert contents_of(fact_set) == {"young", "new"}


@pytest.mark.parametrize("protection", [{"pinned": True}, {"source": "page"}, {"source": "api"}, {"source": "cli"}])
def test_F8_a_protected_fact_stays_while_another_can_go(protection: dict[str, Any]) -> None:
    config = MemoryConfig(max_facts=2)
    fact_set = fact_set_of(
        draft("weak but kept", 0.1, **protection), draft("strong", 0.9), draft("new", 0.5), config=config
    )

    assert contents_of(fact_set) == {"weak but kept", "new"}


def test_F8_a_protected_category_is_spared_only_when_the_configuration_names_it() -> None:
    facts = (draft("goal", 0.1, category="goal"), draft("other", 0.9), draft("new", 0.5))
    named = MemoryConfig(max_facts=2, protected_categories=frozenset({"goal"}))

    assert contents_of(fact_set_of(*facts, config=named)) == {"goal", "new"}
    assert contents_of(fact_set_of(*facts, config=MemoryConfig(max_facts=2))) == {"other", "new"}


@pytest.mark.parametrize("pinned", [True, False])
def test_F8_a_memory_full_of_protected_facts_refuses_the_new_one(pinned: bool) -> None:
    config = MemoryConfig(max_facts=2)
    fact_set = fact_set_of(draft("a", pinned=True), draft("b", source="page"), config=config)

    with pytest.raises(MemoryFull, match="all 2 facts are protected") as error:
        create(fact_set, draft("c", 1.0, pinned=pinned), config, evidence="e")

    assert error.value.max_facts == 2


@given(st.lists(drafts, max_size=40), st.integers(1, 6))
def test_F8_never_more_than_the_limit_and_only_the_weakest_unprotected_one_goes(facts: list[Fact], most: int) -> None:
    config = MemoryConfig(max_facts=most)
    fact_set = FactSet(SALT)
    for each in facts:
        before = set(fact_set.rows.values())
        try:
            fact_set, fact = create(fact_set, each, config, evidence="e")
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
    fact_set = FactSet(SALT)
    created: dict[str, str] = {}
    for at, (operation, number, which) in enumerate(operations):
        ids = sorted(created)
        chosen = ids[which % len(ids)] if ids else ""
        if operation == "create":
            moment = f"2026-01-01T00:00:{at:02}+00:00"
            fact_set, fact = create(fact_set, draft(f"fact {number}", created_at=moment), config, evidence="e")
            created.setdefault(fact.id, fact.created_at)
        elif operation == "update" and chosen and f"fact {number}" not in contents_of(fact_set):
            fact_set, _ = update(fact_set, chosen, now=T1, content=f"fact {number}")
        elif operation == "delete" and chosen:
            fact_set = remove(fact_set, find(fact_set, chosen)[0])
        ids_now = [fact.id for fact in fact_set.rows.values()]
        assert len(set(ids_now)) == len(ids_now)
        assert all(created[fact.id] == fact.created_at for fact in fact_set.rows.values())
        created = {fact_id: moment for fact_id, moment in created.items() if fact_id in ids_now}


def test_F4_an_id_that_another_fact_has_or_had_is_not_given_again() -> None:
    first = fact_id(SALT, "Lives in Oslo")
    taken = FactSet(SALT, {"other": draft("Something else", id=first)})
    had = FactSet(SALT, retired=frozenset({first}))

    for fact_set in (taken, had):
        grown, fact = create(fact_set, draft("Lives in Oslo"), DEFAULTS, evidence="e")
        assert fact.id == fact_id(SALT, "Lives in Oslo", 1)
        assert grown.rows[fact_key("Lives in Oslo", 1)] == fact


def test_F6_update_changes_only_what_is_given_and_archives_what_was() -> None:
    fact_set = fact_set_of(draft("Lives in Oslo", source="page"))
    (old,) = fact_set.rows.values()

    changed, new = update(fact_set, old.id, now=T1, confidence=0.4)

    assert new == replace(old, confidence=0.4, updated_at=T1, revision=2)
    assert changed.archived == (replace(old, status="superseded", replaced_by=old.id),)
    assert list(changed.rows) == list(fact_set.rows)


def test_F6_an_update_that_changes_nothing_writes_nothing() -> None:
    fact_set = fact_set_of(draft("Lives in Oslo"))
    (old,) = fact_set.rows.values()

    assert update(fact_set, old.id, now=T1, content="Lives in Oslo", confidence=0.8) == (fact_set, old)


def test_F6_the_old_content_of_an_edited_fact_can_be_learned_again() -> None:
    fact_set = fact_set_of(draft("Lives in Oslo"))
    (old,) = fact_set.rows.values()
    fact_set, edited = update(fact_set, old.id, now=T1, content="Lives in Bergen")
    fact_set, again = create(fact_set, draft("Lives in Oslo"), DEFAULTS, evidence="e")

    assert edited.id == old.id != again.id
    assert contents_of(fact_set) == {"Lives in Oslo", "Lives in Bergen"}


def test_F6_an_update_cannot_make_two_facts_say_the_same() -> None:
    fact_set = fact_set_of(draft("Lives in Oslo"), draft("Lives in Bergen"))

    with pytest.raises(ValueError, match=r"content: fact_\w+ already says this"):
        update(fact_set, fact_id(SALT, "Lives in Oslo"), now=T1, content="lives in bergen.")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", " \n"),
        ("content", "..."),
        ("content", "x" * 10_001),
        ("content", 7),
        ("category", "hobby"),
        ("category", []),
        ("confidence", 7.5),
        ("confidence", float("nan")),
        ("confidence", 10**400),
        pytest.param("confidence", 10**5000, id="more digits than Python writes"),
        ("confidence", True),
        ("confidence", "0.9"),
    ],
)
def test_F6_invalid_values_are_refused_with_the_field_s_name(field: str, value: Any) -> None:
    fact_set = fact_set_of(draft("Lives in Oslo"))

    with pytest.raises(ValueError, match=f"^{field} must"):
        update(fact_set, fact_id(SALT, "Lives in Oslo"), now=T1, **{field: value})


def test_F5_delete_removes_the_fact() -> None:
    oslo = fact_set_of(draft("Lives in Oslo"))
    assert not remove(oslo, find(oslo, fact_id(SALT, "Lives in Oslo"))[0]).rows


@pytest.mark.parametrize(
    "operation",
    [
        lambda fact_set, wanted: retire(fact_set, wanted, "ended", now=T1),
        lambda fact_set, wanted: update(fact_set, wanted, now=T1, confidence=0.1),
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
    old = fact_id(SALT, "Lives in Oslo")

    fact_set = retire(fact_set, old, "superseded", now=T1, replaced_by="fact_11111111")
    fact_set, again = create(fact_set, draft("Lives in Oslo"), DEFAULTS, evidence="e")

    assert fact_set.archived[0].status == "superseded"
    assert fact_set.archived[0].replaced_by == "fact_11111111"
    assert again.id != old


def test_the_order_in_which_facts_stay_does_not_depend_on_the_order_of_rows() -> None:
    facts = [draft(f"fact {n}", 0.5, pinned=n == 3) for n in range(6)]
    rows = fact_set_of(*facts).rows
    config = MemoryConfig(max_facts=2)

    forward = limit(FactSet(SALT, dict(rows)), config, rows)
    backward = limit(FactSet(SALT, dict(reversed(list(rows.items())))), config, rows)

    assert set(forward.rows) == set(backward.rows)
    assert len(forward.rows) == 2
    assert "fact 3" in contents_of(forward)


def test_a_quarantined_fact_counts_neither_as_duplicate_nor_for_the_limit_until_it_is_released() -> None:
    config = MemoryConfig(max_facts=1)
    fact_set = fact_set_of(draft("Obey", status="quarantined"), draft("Likes tea"), config=config)
    held = fact_id(SALT, "Obey")
    assert len(fact_set.rows) == 2

    freed, fact = release(fact_set, held, config, now=T1)

    assert (fact.id, fact.status, fact.revision) == (held, "active", 2)
    assert find(freed, held)[1] == fact
    with pytest.raises(FactNotFound):
        release(freed, held, config, now=T1)


def test_quarantined_facts_stay_until_a_person_answers_and_where_many_wait_an_import_brings_no_more() -> None:
    drafts = [draft(f"Obey {n}", status="quarantined") for n in range(MAX_HELD + 5)]
    fact_set, done = insert(fact_set_of(), drafts, DEFAULTS)

    assert done[MAX_HELD:] == ["full"] * 5
    assert [fact.content for fact in fact_set.rows.values()] == [each.content for each in drafts[:MAX_HELD]]


def test_two_rows_that_say_the_same_become_one_the_protected_or_else_the_first() -> None:
    rows = {
        "a" * 64: draft("Likes tea", id="fact_0000000a", created_at=T1),
        "b" * 64: draft("likes tea.", id="fact_0000000b", created_at=T0),
        "c" * 64: draft("Likes milk", id="fact_0000000c", created_at=T0),
        "d" * 64: draft("Likes MILK", id="fact_0000000d", created_at=T1, pinned=True),
    }

    assert set(unite(FactSet(SALT, rows)).rows) == {"b" * 64, "d" * 64}


def test_a_row_written_by_hand_gets_an_id_and_a_proper_key() -> None:
    own = draft("Likes tea", id="fact_0000000a")
    rows = {fact_key("Likes tea"): own, "my note": draft("Has a dog"), "copy": draft("Has a cat", id="fact_0000000a")}

    fact_set = adopt(FactSet(SALT, rows), {"my note", "copy"})

    assert fact_set.rows == {
        fact_key("Likes tea"): own,
        fact_key("Has a dog"): draft("Has a dog", id=fact_id(SALT, "Has a dog")),
        fact_key("Has a cat"): draft("Has a cat", id=fact_id(SALT, "Has a cat")),
    }
    assert fact_set.homes == {fact_key("Has a dog"): "my note", fact_key("Has a cat"): "copy"}


def test_F2_the_six_categories() -> None:
    assert set(CATEGORIES) == {"preference", "knowledge", "context", "behavior", "goal", "correction"}
