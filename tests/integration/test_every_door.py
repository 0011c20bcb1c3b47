"""One memory, whichever door a conversation comes in by: told, known, corrected, erased, kept out, kept apart."""

import re
from collections.abc import Callable

import pytest

from memory import FactStore
from memory.context.tokens import shared_counter
from tests.doors import DOORS, House

FACT = {"message": 1, "action": "new", "known": 0, "content": "User is allergic to peanuts", "category": "knowledge", "confidence": 0.9}  # fmt: skip  # noqa: E501

NewHouse = Callable[..., House]


@pytest.fixture(params=DOORS)
def enter(request: pytest.FixtureRequest) -> NewHouse:
    """Return a new house with one of the doors."""
    return lambda **options: House(request.param, **options)


@pytest.fixture
def house(enter: NewHouse) -> House:
    return enter()


async def test_G2_what_is_said_in_one_thread_is_known_in_the_next(house: House) -> None:
    house.facts = [FACT]
    await house.say("I am allergic to peanuts.")
    assert "[knowledge" not in house.shown()
    await house.settle()
    await house.say("What should I cook?", thread="another")
    assert "- [knowledge | 0.90] User is allergic to peanuts" in house.chat.prompts[-1][0].text


async def test_what_is_known_takes_no_more_than_its_tokens(enter: NewHouse) -> None:
    house = enter(memory_tokens=200)
    facts = FactStore(house.store, "local")
    for number in range(60):
        facts.create(f"User has been to harbour number {number} and liked the boats there", "knowledge", 0.9)
    for number in range(6):
        await house.say(f"Which boats were in harbour number {number * 9}?", id=f"h{number}")
        shown = re.findall(r"<memory>.*?</memory>", house.shown(), re.DOTALL)
        assert shown
        assert shared_counter().text(shown[0]) <= 200
        # What was recalled for messages takes as much again before a new block takes its place, and the last of it.
        assert house.is_graph or sum(map(shared_counter().text, shown)) <= 3 * 200
    nothing = enter(memory_tokens=0, store=house.store)
    await nothing.say("Which boats?", thread="another")
    assert "harbour number" not in nothing.shown()
