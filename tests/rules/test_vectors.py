"""Vectors as they are kept and ranked: two bytes a number in the store, one in memory, and numpy for the ranking."""

import math
import struct
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.vectors import QueryVector, VectorIndex, packed, unit

pytest.importorskip("numpy")
NUMBERS = st.lists(st.floats(-10, 10, allow_subnormal=False), min_size=8, max_size=8).filter(
    lambda values: math.hypot(*values) > 0.1
)


@given(NUMBERS)
def test_a_kept_vector_has_unit_length_and_two_bytes_a_number(values: list[float]) -> None:
    vector = packed(values)
    assert len(vector) == 2 * len(values)
    assert math.hypot(*struct.unpack(f"<{len(values)}e", vector)) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("values", [[], [0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_what_has_no_direction_is_no_vector(values: list[float]) -> None:
    with pytest.raises(ValueError, match="length"):
        packed(values)


@given(st.dictionaries(st.text(min_size=1, max_size=3), NUMBERS, min_size=1, max_size=80), NUMBERS, st.data())
def test_the_index_tells_the_cosine_beyond_what_all_have_in_common_of_what_was_put_and_not_removed(
    documents: dict[str, list[float]], question: list[float], data: st.DataObject
) -> None:
    index = VectorIndex("e", {each: packed(values) for each, values in documents.items()})
    gone = data.draw(st.sets(st.sampled_from(sorted(documents))))
    index.remove(gone | {"never there"})
    known = {each: unit(values) for each, values in documents.items()}
    common = [sum(column) / 100 for column in zip(*known.values(), strict=True)]

    def own(values: list[float]) -> list[float]:
        return unit([a - b for a, b in zip(unit(values), common, strict=True)])

    cosine = {each: sum(map(mul, own(question), own(known[each]))) for each in known.keys() - gone}
    found = index.similarity(QueryVector.of("e", question)) or {}
    assert {name for name, close in cosine.items() if close > 0.13} <= found.keys() <= cosine.keys()
    assert found == pytest.approx({name: cosine[name] for name in found}, abs=0.03)


def test_texts_that_all_say_the_same_are_like_nothing() -> None:
    index = VectorIndex("e", {str(number): packed([1.0, 0.0]) for number in range(100)})
    assert index.similarity(QueryVector.of("e", [0.0, 1.0])) == {}


def test_vectors_of_another_embedder_or_length_are_not_compared() -> None:
    index = VectorIndex("one", {"a": packed([1.0, 0.0])})
    assert index.similarity(None) is None
    assert index.similarity(QueryVector.of("other", [1.0, 0.0])) is None
    assert index.similarity(QueryVector.of("one", [1.0, 0.0, 0.0])) is None
    assert index.similarity(QueryVector.of("one", [1.0, 0.0])) == pytest.approx({"a": 1.0}, abs=0.01)


@pytest.mark.parametrize("garbled", [b"", b"odd", packed([1.0] * 3), struct.pack("<2e", math.nan, 1.0), bytes(4)])
def test_bytes_that_are_no_vector_of_the_index_are_refused(garbled: bytes) -> None:
    with pytest.raises(ValueError, match="a vector must"):
        VectorIndex("e", {"a": packed([1.0, 0.0]), "b": garbled})


def test_memory_is_a_byte_a_number_and_a_removed_vector_is_overwritten() -> None:
    index = VectorIndex("e", {str(number): packed([1.0] * 383 + [number]) for number in range(1000)})
    assert index.size <= 1000 * 400
    index.remove([str(number) for number in range(1000)])
    assert not index._steps.any()
