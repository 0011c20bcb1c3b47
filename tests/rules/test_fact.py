from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.config import CATEGORIES
from memory.facts.fact import Fact, Source, Status, from_item, is_fact_id, to_item

WRITTEN = "2026-01-01T00:00:00+00:00"
facts = st.builds(
    Fact,
    id=st.integers(0, 2**32 - 1).map(lambda number: f"fact_{number:08x}"),
    content=st.sampled_from(["Lives in Oslo", "Likes\ntea", "C++"]),
    category=st.sampled_from(CATEGORIES),
    confidence=st.floats(0, 1),
    created_at=st.just(WRITTEN),
    updated_at=st.just("2026-01-02T00:00:00+00:00"),
    source=st.sampled_from(get_args(Source)),
    status=st.sampled_from(get_args(Status)),
    pinned=st.booleans(),
    revision=st.integers(1, 99),
    thread_id=st.sampled_from(["", "t"]),
    message_ids=st.lists(st.sampled_from(["m1", "m2"]), max_size=2).map(tuple),
    replaced_by=st.sampled_from(["", "fact_00000001"]),
)


@given(facts)
def test_a_fact_comes_back_from_its_item_as_itself(fact: Fact) -> None:
    assert from_item(to_item(fact), created_at=WRITTEN) == fact


def test_what_a_hand_left_out_is_filled_in() -> None:
    fact = from_item({"content": "Has a dog", "category": "knowledge", "confidence": 1}, created_at=WRITTEN)

    assert (fact.id, fact.source, fact.status, fact.revision) == ("", "api", "active", 1)
    assert fact.created_at == fact.updated_at == WRITTEN


@pytest.mark.parametrize(
    "odd",
    [
        {"id": "fact_1"},
        {"createdAt": 5},
        {"pinned": "yes"},
        {"revision": -3},
        {"message_ids": "m1"},
        {"thread_id": None},
        {"why": "approval"},
    ],
)
def test_an_odd_detail_does_not_lose_the_fact(odd: dict[str, Any]) -> None:
    value = {"content": "Has a dog", "category": "knowledge", "confidence": 1, **odd}

    fact = from_item(value, created_at=WRITTEN)

    assert (fact.content, fact.revision) == ("Has a dog", 1)
    assert not fact.pinned
    assert fact.message_ids == ()
    assert fact.why == ""


@pytest.mark.parametrize("field", ["content", "category", "confidence", "status", "source"])
def test_what_decides_must_be_right(field: str) -> None:
    value = {"content": "Has a dog", "category": "knowledge", "confidence": 1, field: object()}

    with pytest.raises(ValueError, match=field):
        from_item(value, created_at=WRITTEN)


@given(st.text(max_size=14))
def test_only_fact_and_8_hex_digits_is_an_id(text: str) -> None:
    assert is_fact_id(f"fact_{text}") == (len(text) == 8 and set(text) <= set("0123456789abcdef"))
