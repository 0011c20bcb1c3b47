"""Which texts hold the words of an erased fact: the rule, and that it neither misses nor destroys more than it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.facts.chain import Chain
from memory.facts.fact import Fact

NAMES = st.from_regex(r"\A[A-Z][a-z]{5,9}\Z").filter(lambda name: name.lower()[:6] not in "rather before people always")
PLAIN = st.sampled_from(
    ["We met last week.", "Good morning!", "I like my new work.", "What time is it?", "Call me when you are home."]
)


def chain_of(contents: list[str]) -> Chain:
    return Chain.of(Fact(content=content, category="knowledge", confidence=1.0) for content in contents)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Keeps an axolotl called Wombert", "How is the AXOLOTL today?"),
        ("Keeps an axolotl called Wombert", "Wombert's fine."),
        ("Is allergic to peanuts", "No more peanut-butter"),
        ("Is allergic to peanuts", "about my allergy"),
        ("Works as a carpenter", "carpentry is hard"),
        ("Is 42 years old", "I turn 42."),
        ("Lives in Tromsø", "TROMSØ is cold"),
        ("アホロートルを飼っている", "アホロートルは元気です"),
        ("猫を飼っている", "猫が好き"),
        ("Is old", "I am old"),
    ],
)
def test_in_a_thread_that_a_fact_came_from_one_telling_word_is_enough(content: str, text: str) -> None:
    assert chain_of([content]).is_told_in(text, is_source=True)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Lives in Oslo", "I live with my family and like it."),
        ("Likes figs", "I would like to see the figure."),
        ("Is old", "It is gold."),
        ("Is allergic to peanuts", "Good day"),
        ("Keeps an axolotl", ""),
    ],
)
def test_everyday_words_take_no_text_along(content: str, text: str) -> None:
    wording = chain_of([content])
    assert not wording.is_told_in(text, is_source=True)
    assert not wording.is_told_in(text)
    assert not chain_of([]).is_told_in(text, is_source=True)


def test_elsewhere_all_telling_words_of_one_wording_have_to_be_there() -> None:
    wording = chain_of(["Is allergic to peanuts", "Cannot eat hazelnuts"])
    assert wording.is_told_in("Remember my peanut allergy.")
    assert wording.is_told_in("No hazelnuts, please.")
    assert not wording.is_told_in("I sell peanuts.")
    assert wording.is_told_in("I sell peanuts.", is_source=True)
    assert not chain_of(["Is old"]).is_told_in("an old car of mine")
    assert chain_of(["Is old"]).is_told_in("Ada is old.")


@given(NAMES, PLAIN, PLAIN, st.sampled_from(["{}", "{}'s", "({})", "«{}»", "{}!", "\n{}\n"]))
def test_a_name_is_found_wherever_it_stands(name: str, before: str, after: str, form: str) -> None:
    wording = chain_of([f"Has a friend called {name}"])
    for said in (name, name.upper(), name.lower()):
        text = f"{before} {form.format(said)} {after}"
        assert wording.is_told_in(text, is_source=True)
        assert wording.is_told_in(text)


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_what_a_fact_says_is_found_word_for_word_in_any_text(content: str, before: str, after: str) -> None:
    wording = chain_of([f"x{content}x"])
    assert wording.is_told_in(f"{before} x{content}x {after}")


@given(st.text(max_size=60), st.text(max_size=60))
def test_what_is_told_is_mentioned(content: str, text: str) -> None:
    wording = chain_of([content])
    assert wording.is_told_in(text, is_source=True) or not wording.is_told_in(text)


@given(st.lists(PLAIN, min_size=1, max_size=3), NAMES)
def test_plain_talk_holds_no_name(talk: list[str], name: str) -> None:
    text = " ".join(talk)
    if name.casefold() not in text.casefold():
        assert not chain_of([f"Has a friend called {name}"]).is_told_in(text, is_source=True)
