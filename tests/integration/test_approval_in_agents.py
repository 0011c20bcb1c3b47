"""Approval holds by whatever door a conversation comes: the chat graph and agents, with and without `await`."""

import asyncio

import pytest

from memory import FactStore
from memory.config import MemoryConfig
from memory.namespaces import Owner
from memory.turn import MemoryMode
from tests.doors import DOORS, House
from tests.patience import PATIENCE

ME = Owner.of("local")
DIABETES = "User has type 2 diabetes."
SAID = "The doctor says that I have type 2 diabetes."


def house(door: str) -> House:
    made = House(door, memory=MemoryConfig(debounce_seconds=3600, approval=frozenset({"health"})))
    made.facts = [
        {"message": 1, "action": "new", "known": 0, "content": DIABETES, "category": "knowledge", "confidence": 0.9}
    ]
    return made


def shown(made: House) -> str:
    return "\n".join(message.text for message in made.chat.prompts[-1])


@pytest.mark.parametrize("door", ["graph", "agent", "agent sync"])
async def test_no_prompt_shows_what_waits_and_the_next_one_shows_it_after_the_yes(door: str) -> None:
    made = house(door)
    await made.say(SAID)
    await made.service.adrain(made.store, ME)
    facts = FactStore.of_owner(made.store, ME)
    (waiting,) = await facts.alist("waiting")
    for number in range(3):  # also once the index is brought up to date behind a turn
        await made.say("What may I eat with my diabetes, doctor?", f"new {number}")
        assert "type 2" not in shown(made)
        await asyncio.sleep(0.05)
    await facts.aapprove(waiting.id, source="api")
    await made.say("What may I eat?", "after the yes")
    assert DIABETES in shown(made)


@pytest.mark.parametrize("door", DOORS)
async def test_no_prompt_tells_a_sensitive_message_that_no_fact_was_made_of(door: str) -> None:
    made = house(door)
    made.facts = []
    await made.say(SAID, "told")
    await made.say("I drink my tea from the blue cup each morning.", "routine")
    await made.settle()
    number = 0
    async with asyncio.timeout(PATIENCE):
        while number < 3 or "each morning" not in shown(made):  # the index is brought up to date behind a turn
            await made.say("What of my type 2 diabetes, and which cup is blue?", f"new {number}")
            assert "The doctor says" not in shown(made)
            number += 1
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("mode", ["read_only", "incognito"])
async def test_a_mode_that_learns_nothing_lets_nothing_wait(mode: MemoryMode) -> None:
    made = house("graph")
    await made.say(SAID, mode=mode)
    await made.service.adrain(made.store, ME)
    assert await FactStore.of_owner(made.store, ME).alist(None) == []
