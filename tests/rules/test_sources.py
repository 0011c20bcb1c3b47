"""Every reply says by ids what of memory it was shown, whichever door the conversation came in by."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graphs.turn.content import SOURCES_KEY, TOKENS_KEY
from memory.control import change_control
from memory.door import arun
from memory.facts.profile import edit_section
from palimpsest import FactStore
from tests.laws.talk import DEEP_AGENTS, DOORS, Talk


@pytest.fixture(params=(*DOORS, *DEEP_AGENTS))
def talk(request: pytest.FixtureRequest) -> Talk:
    return Talk(request.param)


def sources_of(message: Any) -> Any:
    assert isinstance(message, AIMessage)
    return message.response_metadata.get(SOURCES_KEY)


async def test_a_reply_names_the_facts_that_it_was_shown(talk: Talk) -> None:
    fact = FactStore(talk.store, "ada").create("Is allergic to peanuts", "knowledge", 0.9)
    state = await talk.say("What should I cook?")
    assert sources_of(state["messages"][-1]) == {"facts": [fact.id], "recalled": [], "profile": []}
    kept = talk.graph.get_state(talk.who()).values["messages"][-1]
    assert sources_of(kept)["facts"] == [fact.id]


async def test_a_reply_of_the_chat_graph_names_the_tokens_of_its_own_prompt() -> None:
    talk = Talk()
    FactStore(talk.store, "ada").create("Is allergic to peanuts", "knowledge", 0.9)
    await talk.say("Hello")
    messages = (await talk.say("What should I cook?", mode="incognito"))["messages"]
    first, second = (each.response_metadata[TOKENS_KEY] for each in messages if isinstance(each, AIMessage))
    assert set(first) == {"system", "memory", "recalled", "summary", "messages", "budget"}
    assert first["memory"] > second["memory"] == 0
    assert first["messages"] < second["messages"]


async def test_a_provider_is_not_sent_what_earlier_replies_were_shown(talk: Talk) -> None:
    FactStore(talk.store, "ada").create("Is allergic to peanuts", "knowledge", 0.9)
    await talk.say("What should I cook?")
    await talk.say("And for dessert?")
    replies = [message for message in talk.chat.prompts[-1] if isinstance(message, AIMessage)]
    assert replies
    assert not any({SOURCES_KEY, TOKENS_KEY} & reply.response_metadata.keys() for reply in replies)
    # In an incognito turn neither.
    await talk.say("And to drink?", mode="incognito")
    assert not any({SOURCES_KEY, TOKENS_KEY} & each.response_metadata.keys() for each in talk.chat.prompts[-1])


async def test_past_turns_and_profile_sections_are_named() -> None:
    talk = Talk()
    facts = FactStore(talk.store, "ada")
    now = "2026-01-01T00:00:00+00:00"
    await arun(talk.store, edit_section(facts.owner, "user.work", "Is a carpenter", now))
    await talk.say("We sailed to Bergen in a red boat.", thread="before")
    await talk.learn()
    # What was said is indexed behind a turn.
    for number in range(3000):
        asked = await talk.say("What colour was the boat that we sailed to Bergen in?", thread=f"asked-{number}")
        if "red boat" in talk.shown():
            break
        await asyncio.sleep(0.02)
    sources = sources_of(asked["messages"][-1])
    assert sources["profile"] == ["user.work"]
    kept = {item.key for item in talk.store.search(facts.owner.namespace("journal"), limit=10)}
    assert set(sources["recalled"]) <= kept
    assert sources["recalled"]


async def test_a_user_who_switched_memory_off_is_shown_nothing_and_still_learned_from(talk: Talk) -> None:
    facts = FactStore(talk.store, "ada")
    facts.create("Is allergic to peanuts", "knowledge", 0.9)
    await talk.say("What should I cook?")
    assert "peanuts" in talk.shown()
    await arun(talk.store, change_control(facts.owner, use=False))
    answer = (await talk.say("I moved to Bergen in a red boat."))["messages"][-1]
    assert "peanuts" not in talk.shown()
    assert sources_of(answer) is None
    await talk.learn()
    await talk.say("What colour was the boat that I moved to Bergen in?", thread="other")
    assert "peanuts" not in talk.shown()
    assert "red boat" not in talk.shown()
    await talk.say("I like figs.", thread="third")
    assert "I like figs." in talk.stored()
    await arun(talk.store, change_control(facts.owner, use=True))
    await talk.say("And now?", thread="other")
    assert "peanuts" in talk.shown()
