import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text import digest, flush_hash, normalize, one_line, sanitize

anything = st.text(alphabet=st.characters(codec=None, exclude_categories=()))


@given(anything)
def test_sanitized_text_is_storable_everywhere_and_stays_so(text: str) -> None:
    clean = sanitize(text)
    clean.encode("utf-8")
    assert "\0" not in clean
    assert sanitize(clean) == clean


@given(anything)
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


@pytest.mark.parametrize("hidden", ["\u202e", "\u2066", "\U000e0041", "\x00", "\ud800", "\x1b"])
def test_what_hides_text_is_dropped(hidden: str) -> None:
    assert sanitize(f"a{hidden}b") == "ab"


def test_emoji_joiners_and_new_lines_stay() -> None:
    assert sanitize("👩\u200d💻\nok\tyes") == "👩\u200d💻\nok\tyes"


def test_sanitize_cuts_at_max_chars() -> None:
    assert sanitize("abcdef", max_chars=3) == "abc"


@given(st.text())
def test_F7_normalize_is_idempotent_under_forms(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert normalize(unicodedata.normalize(form, once)) == once


def test_digest_knows_where_a_part_ends() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("a") == digest("a")


def test_B6_flush_hash_depends_on_role_and_text_and_takes_surrogates() -> None:
    assert len({flush_hash("user", "yes"), flush_hash("assistant", "yes"), flush_hash("user", "no")}) == 3
    assert len(flush_hash("user", "\ud800")) == 32


@given(st.text(alphabet="a\u0301\u0327\u0344\u0f73\uac00\u11a8\ufdfa ", max_size=200))
def test_many_marks_on_a_letter_stay_storable_and_comparable(text: str) -> None:
    clean = sanitize(text)
    assert sanitize(clean) == clean
    assert unicodedata.is_normalized("NFC", clean)
    assert clean.replace("\u034f", "") == unicodedata.normalize("NFC", text) or len(text) > 30
    assert normalize(normalize(text)) == normalize(text)


def test_what_is_dropped_and_what_is_a_mark_is_told_for_every_character() -> None:
    every = [chr(point) for point in range(sys.maxunicode + 1)]
    dropped = [char for char in every if unicodedata.category(char) in ("Cc", "Cf", "Cs")]
    assert {char for char in dropped if sanitize(f"a{char}b") != "ab"} == set("\u200c\u200d\n\t")
    rest = "a".join(char for char in every if unicodedata.category(char) not in ("Cc", "Cf", "Cs"))
    assert unicodedata.normalize("NFC", rest) == sanitize(rest)
    for mark in filter(unicodedata.combining, every):
        assert "\u034f" in sanitize(f"a{mark * 70}b"), hex(ord(mark))
