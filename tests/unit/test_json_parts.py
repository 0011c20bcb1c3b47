"""A JSON object read piece by piece is the object that `json.loads` reads, wherever it is cut."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.archive.json_parts import JsonPart, PartsReader

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def read(body: bytes, size: int, **options: Any) -> list[JsonPart]:
    reader = PartsReader(**options)
    found = [part for at in range(0, len(body), size) for part in reader.feed(body[at : at + size])]
    return [*found, *reader.close()]


def joined(parts: list[JsonPart]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, place, value, _ in parts:
        if place is None:
            found[name] = value
        else:
            assert len(found.setdefault(name, [])) == place
            found[name].append(value)
    return found


@given(
    st.dictionaries(st.text(max_size=5), values, max_size=5),
    st.integers(1, 9),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_what_is_read_in_pieces_is_what_was_written(
    document: dict[str, Any], size: int, ascii_only: bool, indent: int | None
) -> None:
    body = json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    assert joined(read(body, size)) == document


@given(st.binary(max_size=40) | st.text('{}[]",:01e-tn \\', max_size=40).map(str.encode), st.integers(1, 9))
def test_what_is_no_json_object_is_a_value_error(body: bytes, size: int) -> None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    try:
        found = joined(read(body, size))
    except ValueError:
        pass
    else:
        assert isinstance(document, dict)
        assert found == document


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{",
        '{"a": [1, 2',
        '{"a": [1 2]}',
        '{"a": 1} x',
        '{"a": 1, "a": 2}',
        '{"a" 1}',
        '{"a": [' + "[" * 100_000,
    ],
)
def test_a_body_that_is_wrong_is_refused(body: str) -> None:
    for size in (1, 7, 1_000_000):
        if size > 1 or len(body) < 100:
            with pytest.raises(ValueError, match=r"body|twice"):
                read(body.encode(), size)


def test_an_entry_that_is_too_long_is_refused_before_all_of_it_is_there() -> None:
    reader = PartsReader(max_entry_chars=100)
    assert list(reader.feed(b'{"a": ["')) == []
    assert [list(reader.feed(b"x" * 10)) for _ in range(9)] == [[]] * 9
    with pytest.raises(ValueError, match="longer than 100"):
        list(reader.feed(b"x" * 10))


def test_no_more_than_one_entry_is_held_and_each_is_decoded_a_few_times_at_most() -> None:
    entry = json.dumps({"text": "x" * 10_000}).encode()
    reader, held, found = PartsReader(), 0, 0
    for piece in [b'{"a": [', *([entry + b","] * 500), entry, b"]}"]:
        for at in range(0, len(piece), 100):
            found += len(list(reader.feed(piece[at : at + 100])))
            held = max(held, len(reader._text))
    assert found + len(list(reader.close())) == 501
    assert held < 2 * len(entry)


def test_a_number_with_more_digits_than_python_reads_is_infinite() -> None:
    (part,) = read(b'{"confidence": 1' + b"0" * 5000 + b"}", 64)
    assert part.value == float("inf")
