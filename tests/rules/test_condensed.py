"""A summary of portions that got too long: the sentences that tell most stay, word for word."""

from hypothesis import given
from hypothesis import strategies as st

from memory.context.condensed import condensed

SAID = """Ana moved to Oslo in May 2023. She likes it very much there. Dr. Berg is her boss.
They talked about the weather. Her cat Biscuit is 4 years old. They talked about other things there."""

WORDS = st.sampled_from(["Ana", "Oslo", "2023", "talked", "about", "there", "cat", "大阪に住む", "ok"])
SENTENCES = st.lists(WORDS, min_size=1, max_size=9).map(lambda words: f"{' '.join(words)}.")
SUMMARIES = st.lists(st.lists(SENTENCES, max_size=5).map(" ".join), max_size=6).map("\n".join)


def within(most: int, summary: str = SAID) -> str:
    return condensed(summary, lambda text: len(text) > most)


def test_names_and_numbers_stay_and_talk_goes_first() -> None:
    assert within(90) == "Ana moved to Oslo in May 2023. Dr. Berg is her boss.\nHer cat Biscuit is 4 years old."


def test_what_is_told_twice_is_kept_once() -> None:
    assert within(60, "Tom lives in Porto.\nTom lives in Porto.\nTom is a teacher there.") == (
        "Tom lives in Porto.\nTom is a teacher there."
    )


def test_scripts_without_spaces_are_read_too() -> None:
    assert within(25, "彼女は大阪に住んでいます。彼女は大阪に住んでいます。 猫の名前はタマです。") != ""
    assert within(30, "彼女は大阪に住んでいます。 彼女は大阪に住んでいます。 猫の名前はタマです。") == (
        "彼女は大阪に住んでいます。 猫の名前はタマです。"
    )


def test_where_not_one_sentence_fits_nothing_is_left() -> None:
    assert within(5) == ""


@given(SUMMARIES, st.integers(0, 200))
def test_what_is_left_fits_and_was_said_in_this_order(summary: str, most: int) -> None:
    left = within(most, summary)
    assert len(left) <= most
    words = iter(summary.split())
    assert all(word in words for word in left.split())


@given(SUMMARIES)
def test_a_number_or_name_that_was_told_is_told_where_there_is_room(summary: str) -> None:
    left = within(len(summary), summary)
    assert ("2023" in left) == ("2023" in summary)
    assert ("大阪" in left) == ("大阪" in summary)
