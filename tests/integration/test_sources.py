"""Every reply says by ids what of memory it was shown, whichever door the conversation came in by."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graphs.turn.prompt import SOURCES_KEY, TOKENS_KEY
from memory import FactStore
from memory.config import MemoryConfig
from memory.control import change_control
from memory.door import arun
from memory.facts.profile import edit_section
from tests.doors import DOORS, House


@pytest.fixture(params=DOORS)
def house(request: pytest.FixtureRequest) -> House:
    return House(request.param)


def sources_of(message: Any) -> Any:
    assert isinstance(message, AIMessage)
    return message.response_metadata.get(SOURCES_KEY)


async def test_a_reply_names_the_facts_that_it_was_shown(house: House) -> None:
    fact = FactStore(house.store, "local").create("Is allergic to peanuts", "knowledge", 0.9)
    state = await house.say("What should I cook?")
    assert sources_of(state["messages"][-1]) == {"facts": [fact.id], "recalled": [], "profile": []}
    kept = house.graph.get_state({"configurable": {"thread_id": "t"}}).values["messages"][-1]
    assert sources_of(kept)["facts"] == [fact.id]


async def test_a_reply_of_the_chat_graph_names_the_tokens_of_its_own_prompt() -> None:
    house = House("graph")
    FactStore(house.store, "local").create("Is allergic to peanuts", "knowledge", 0.9)
    await house.say("Hello")
    messages = (await house.say("What should I cook?", mode="incognito"))["messages"]
    first, second = (each.response_metadata[TOKENS_KEY] for each in messages if isinstance(each, AIMessage))
    assert set(first) == {"system", "memory", "recalled", "summary", "messages", "budget"}
    assert first["memory"] > second["memory"] == 0
    assert first["messages"] < second["messages"]


async def test_a_reply_without_memory_names_nothing(house: House) -> None:
    assert sources_of((await house.say("Hello"))["messages"][-1]) is None
    FactStore(house.store, "local").create("Is allergic to peanuts", "knowledge", 0.9)
    assert sources_of((await house.say("Hello", thread="other", mode="incognito"))["messages"][-1]) is None


async def test_a_provider_is_not_sent_what_earlier_replies_were_shown(house: House) -> None:
    FactStore(house.store, "local").create("Is allergic to peanuts", "knowledge", 0.9)
    await house.say("What should I cook?")
    await house.say("And for dessert?")
    replies = [message for message in house.chat.prompts[-1] if isinstance(message, AIMessage)]
    assert replies
    assert not any({SOURCES_KEY, TOKENS_KEY} & reply.response_metadata.keys() for reply in replies)
    # In an incognito turn neither.
    await house.say("And to drink?", mode="incognito")
    assert not any({SOURCES_KEY, TOKENS_KEY} & each.response_metadata.keys() for each in house.chat.prompts[-1])


async def test_what_a_provider_says_of_its_answer_stays_beside_the_sources(house: House) -> None:
    FactStore(house.store, "local").create("Is allergic to peanuts", "knowledge", 0.9)
    house.chat.replies = [AIMessage("Figs.", response_metadata={"finish_reason": "stop"})]
    answer = (await house.say("What should I cook?"))["messages"][-1]
    assert answer.response_metadata["finish_reason"] == "stop"
    assert sources_of(answer) is not None


async def test_past_turns_and_profile_sections_are_named() -> None:
    house = House(memory=MemoryConfig(debounce_seconds=3600))
    facts = FactStore(house.store, "local")
    now = "2026-01-01T00:00:00+00:00"
    await arun(house.store, edit_section(facts.owner, "user.work", "Is a carpenter", epoch="initial", now=now))
    await house.say("We sailed to Bergen in a red boat.", thread="before")
    await house.settle()
    # What was said is indexed behind a turn.
    for number in range(3000):
        asked = await house.say("What colour was the boat that we sailed to Bergen in?", thread=f"asked-{number}")
        if "red boat" in house.shown():
            break
        await asyncio.sleep(0.02)
    sources = sources_of(asked["messages"][-1])
    assert sources["profile"] == ["user.work"]
    kept = {item.key for item in house.store.search(facts.owner.namespace("journal"), limit=10)}
    assert set(sources["recalled"]) <= kept
    assert sources["recalled"]


async def test_a_user_who_switched_memory_off_is_shown_nothing_and_still_learned_from(house: House) -> None:
    facts = FactStore(house.store, "local")
    facts.create("Is allergic to peanuts", "knowledge", 0.9)
    await house.say("What should I cook?")
    assert "peanuts" in house.shown()
    await arun(house.store, change_control(facts.owner, use=False))
    answer = (await house.say("I moved to Bergen in a red boat."))["messages"][-1]
    assert "peanuts" not in house.shown()
    assert sources_of(answer) is None
    await house.settle()
    await house.say("What colour was the boat that I moved to Bergen in?", thread="other")
    assert "peanuts" not in house.shown()
    assert "red boat" not in house.shown()
    await house.say("I like figs.", thread="third")
    assert house.pending() >= {"I like figs."}
    await arun(house.store, change_control(facts.owner, use=True))
    await house.say("And now?", thread="other")
    assert "peanuts" in house.shown()
