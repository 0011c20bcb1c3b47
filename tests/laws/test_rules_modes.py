"""What each mode of a thread lets in and out, and what a later, looser mode may learn of it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage

from palimpsest import FactStore
from tests.laws.talk import AGENTS, DOORS, LONG, NARROW, Failing, Talk, failing, set_learning

CLOSED = pytest.mark.parametrize("mode", ["read_only", "incognito"])
SMALL = replace(NARROW, memory_tokens=200)


@pytest.fixture(params=DOORS)
async def talk(request: pytest.FixtureRequest) -> Talk:
    talk = Talk(request.param, context=SMALL)
    await FactStore(talk.store, "ada").acreate("Likes pears", "preference", 0.9)
    return talk


graph_only = pytest.mark.parametrize("talk", ["graph"], indirect=True)


@pytest.mark.parametrize("by", ["context", "metadata", "message"])
@pytest.mark.parametrize("mode", ["normal", "read_only", "incognito"])
async def test_a_mode_says_what_is_read_and_what_is_learned(talk: Talk, mode: str, by: str) -> None:
    config, message = talk.who(), HumanMessage("I like plums.")
    if by == "metadata":
        config["metadata"] = {"memory_mode": mode}
    if by == "message":
        message.additional_kwargs["memory_mode"] = mode
    await talk.run({"messages": [message]}, config, mode if by == "context" else None)
    assert ("Likes pears" in talk.shown()) == (mode != "incognito")
    assert await talk.learn() == (["Likes pears", "Likes plums"] if mode == "normal" else ["Likes pears"])
    assert ("plums" in talk.stored()) == (mode == "normal")


@CLOSED
async def test_what_was_said_is_marked_and_not_learned_by_a_later_turn(talk: Talk, mode: str) -> None:
    await talk.say("I like plums.", mode=mode)
    await talk.say("I like figs.")
    marks = [message.additional_kwargs.get("memory_mode") for message in (await talk.values())["messages"]]
    assert marks == [mode, mode, None, None]
    assert "Likes pears" in talk.shown()
    assert await talk.learn() == ["Likes figs", "Likes pears"]
    assert "plums" not in talk.stored()


@graph_only
async def test_two_runs_that_go_on_from_one_checkpoint_have_a_mode_each(talk: Talk) -> None:
    asked = {"messages": [HumanMessage("I like plums.")]}
    await talk.graph.ainvoke(asked, talk.who(), context=talk.context, interrupt_before="*")
    normal, closed = await asyncio.gather(talk.run(None), talk.run(None, mode="incognito"))
    assert [each["memory"]["receipt"].get("without_memory") for each in (normal, closed)] == [None, "incognito"]
    assert sorted("Likes pears" in str(prompt) for prompt in talk.chat.prompts) == [False, True]
    assert closed["messages"][0].additional_kwargs["memory_mode"] == "incognito"


@CLOSED
@graph_only
async def test_no_cut_writes_down_what_was_said_in_it(talk: Talk, mode: str) -> None:
    for number in range(14):
        await talk.say(f"secret {number}" + LONG, mode=mode)
    assert "They talked." in talk.shown()
    assert "secret" not in talk.stored()
    for number in range(8):
        await talk.say(f"open {number}" + LONG)
    await talk.learn()
    assert {text.split()[0] for text in talk.read()} == {"open"}
    assert "secret" not in talk.stored()


@CLOSED
async def test_a_cut_of_a_compact_thread_keeps_the_marks_of_its_turn(mode: str) -> None:
    talk = Talk(context=replace(NARROW, transcript="compact"))
    for number in range(6):
        await talk.say(f"open {number}" + LONG)
    asked: list[BaseMessage] = [HumanMessage(f"secret {number}" + LONG) for number in range(8)]
    state = await talk.run({"messages": asked}, mode=mode)
    kept = [(message.text[:8], message.additional_kwargs.get("memory_mode")) for message in state["messages"][1:-1]]
    assert kept[-1] == ("secret 7", mode)
    assert {mark for _, mark in kept} == {mode}
    assert len(kept) < len(asked)
    assert (await talk.values())["messages"] == state["messages"]
    assert "secret" not in talk.stored()


@pytest.mark.parametrize("when", ["before a turn", "while the model answers", "while a summary is made"])
@graph_only
async def test_paused_learning_reads_and_writes_nothing_down(talk: Talk, when: str) -> None:
    def pause(messages: list[BaseMessage]) -> str:
        set_learning(talk, False)
        return "They talked."

    if when == "before a turn":
        set_learning(talk, False)
    elif when == "while the model answers":
        talk.chat.respond = pause
    else:
        talk.summaries.respond = pause
    turns = 12 if when == "while a summary is made" else 1
    for number in range(turns):
        await talk.say(f"I like plums {number}" + LONG * (turns > 1))
    assert "Likes pears" in talk.shown()
    assert "'cut'" not in talk.stored()
    if turns == 1:
        assert "plums" not in talk.stored()
    talk.chat.respond = lambda _: "Noted."
    set_learning(talk, True)
    await talk.say("I like figs.")
    assert "Likes figs" in await talk.learn()


@pytest.mark.parametrize("door", ["graph", AGENTS[0]])
async def test_while_the_store_cannot_tell_nothing_is_used_or_marked_for_good(
    door: str, caplog: pytest.LogCaptureFixture
) -> None:
    talk: Any = Talk(door, store=Failing())
    with failing(talk.store):
        state = await talk.say("I like plums.")
    assert state["messages"][-1].text == "Noted."
    assert "memory_mode" not in state["messages"][0].additional_kwargs
    assert "without memory" in caplog.text
    assert "plums" not in caplog.text
