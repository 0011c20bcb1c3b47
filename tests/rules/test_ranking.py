import pytest

from memory.facts.fact import Fact
from memory.facts.words import related, words


def fact(content: str, confidence: float = 0.5) -> Fact:
    return Fact(id=content, content=content, category="goal", confidence=confidence, created_at="", updated_at="")


FACTS = [fact("User lives in Oslo", 0.9), fact("User's sister Anna lives in Rome"), fact("User has two cats")]


@pytest.mark.parametrize(
    ("one", "other"),
    [("She lives here", "He lived there"), ("two cats", "a CAT"), ("Straße", "STRASSE"), ("東京に住む", "東京タワー")],
)
def test_words_meet_in_other_forms(one: str, other: str) -> None:
    assert words(one) & words(other)


def test_words_that_stand_everywhere_tell_nothing() -> None:
    assert words("The user is in the house with you") == words("house")


def test_the_rarest_shared_word_decides() -> None:
    assert related(FACTS, "Where does Anna live?", 3)[0].content == "User's sister Anna lives in Rome"


def test_only_what_shares_a_word_is_related() -> None:
    assert [each.content for each in related(FACTS, "cats", 3)] == ["User has two cats"]
    assert related(FACTS, "cats", 0) == []
