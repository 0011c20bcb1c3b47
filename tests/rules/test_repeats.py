"""What a prompt shows once: facts that say the same in nearly the same words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.facts.fact import Fact
from memory.facts.words import without_repeats


def facts(*contents: str, confidence: float = 0.9, pinned: bool = False) -> list[Fact]:
    return [
        Fact(
            id=f"fact_{at:08}", content=content, category="context", confidence=confidence,
            created_at="", updated_at="", pinned=pinned,
        )
        for at, content in enumerate(contents)
    ]  # fmt: skip


def shown(*contents: str) -> int:
    return len(without_repeats(facts(*contents)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User likes figs", "The user likes figs."),
        ("User lives in Oslo", "User is living in Oslo now"),
        ("El usuario vive en Lima", "Vive en Lima"),
        ("Die Nutzerin wohnt in Bonn", "Wohnt in Bonn."),
        ("L'utilisateur habite à Lyon", "Habite à Lyon"),
        ("A usuária mora no Porto", "Mora no Porto"),
        ("Пользователь живёт в Омске", "Живёт в Омске"),
        ("ユーザーは札幌に住んでいる", "札幌に住んでいる"),
        ("User has a dog called Rex", "User has a dog, called Rex"),
        ("User works at the bank", "User is working at a bank"),
        ("User doesn't like tea", "User does not like tea"),
    ],
)
def test_what_says_the_same_is_shown_once(one: str, other: str) -> None:
    assert shown(one, other) == shown(other, one) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User likes tea", "User does not like tea"),
        ("User likes tea", "User doesn't like tea"),
        ("User's sister Ada likes Bob", "User's sister Bob likes Ada"),
        ("User lived in Oslo until 2019", "User lived in Oslo until 2020"),
        ("User likes meat", "User's sister likes meat"),
        ("User has a dog", "User has a dog called Rex"),
        ("User has 2 dogs", "User has 3 dogs"),
        ("User lives in Oslo", "User lives in Bergen"),
        ("It is", "He was"),
        ("User likes figs and never plums", "User likes plums and never figs, never"),
    ],
)
def test_what_differs_in_what_it_says_is_shown_twice(one: str, other: str) -> None:
    assert shown(one, other) == shown(other, one) == 2


def test_a_pinned_one_stays_then_the_strongest_and_the_order_is_kept() -> None:
    weak, strong = facts("User likes figs", confidence=0.6), facts("x", "The user likes figs", confidence=0.9)[1:]
    other = facts("x", "y", "User likes tea")[2:]
    assert without_repeats([*weak, *other, *strong]) == [*other, *strong]
    pinned = facts("User likes figs", confidence=0.6, pinned=True)
    assert without_repeats([*pinned, *other, *strong]) == [*pinned, *other]


@given(st.lists(st.text(alphabet="ab notUser'1", max_size=12), max_size=8))
def test_nothing_is_added_and_doing_it_again_changes_nothing(contents: list[str]) -> None:
    given_facts = facts(*contents)
    once = without_repeats(given_facts)
    assert without_repeats(once) == once
    assert [fact for fact in given_facts if fact in once] == once
