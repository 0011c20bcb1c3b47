import pytest

from memory.facts.words import words


@pytest.mark.parametrize(
    ("one", "other"),
    [("She lives here", "He lived there"), ("two cats", "a CAT"), ("Straße", "STRASSE"), ("東京に住む", "東京タワー")],
)
def test_words_meet_in_other_forms(one: str, other: str) -> None:
    assert words(one) & words(other)


def test_words_that_stand_everywhere_tell_nothing() -> None:
    assert words("The user is in the house with you") == words("house")
