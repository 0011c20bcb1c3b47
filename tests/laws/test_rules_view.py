"""G1: no thread dies of what stands in it: empty answers, names, instructions of a client.

Every model of these tests refuses what some server refuses, so a turn that is answered kept to it.
"""

from dataclasses import replace
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from palimpsest import Context, PalimpsestMemory, PalimpsestSummary, summarize_messages
from tests.fakes import RecordingModel
from tests.laws.talk import AGENTS, DOORS, LONG, NARROW, Talk, remembers

EDGES = pytest.mark.parametrize("door", DOORS)
CLEAR = RemoveMessage(REMOVE_ALL_MESSAGES)
RULE = "Never name a price."


def summarizing(memory: PalimpsestMemory, tokens: int = 800) -> list[Any]:
    limits: dict[str, Any] = {"trigger": ("tokens", tokens), "keep": ("tokens", 300), "max_summary_tokens": 64}
    return [memory, PalimpsestSummary(RecordingModel(respond=remembers), memory=memory, **limits)]


def talk_of(door: str, **choices: Any) -> Talk:
    """Return a talk that is summarized soon; `compact` is the graph that keeps no transcript."""
    context = replace(NARROW, transcript="compact") if door == "compact" else NARROW
    return Talk("graph" if door == "compact" else door, **{"context": context, "around": summarizing, **choices})


SUMMARIZED = pytest.mark.parametrize("door", ["compact", *DOORS])


def roles(talk: Talk) -> list[str]:
    return [message.type for message in talk.chat.prompts[-1]]


THOUGHT: list[Any] = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]


@EDGES
@pytest.mark.parametrize(
    "empty",
    [AIMessage(""), AIMessage("\n\n"), AIMessage(THOUGHT), AIMessage("", additional_kwargs={"reasoning": "Hm."})],
    ids=["nothing", "blank", "a thought", "a thought beside it"],
)
async def test_the_user_is_told_that_an_answer_is_empty_and_nobody_else_is(door: str, empty: AIMessage) -> None:
    talk = Talk(door)
    talk.chat.replies = [empty]
    state = await talk.say("I like pears.")
    told = state["messages"][-1].text
    assert "answered nothing" in told
    await talk.say("I like plums.")
    assert roles(talk) == ["system", "human"]
    assert talk.chat.prompts[-1][-1].text == "I like pears.\n\nI like plums."
    assert await talk.learn() == ["Likes pears", "Likes plums"]
    assert told not in talk.stored() + str(talk.memory.prompts)


@pytest.mark.parametrize("door", AGENTS)
async def test_a_message_beyond_an_agents_budget_is_shortened_in_what_its_model_is_sent(door: str) -> None:
    talk = talk_of(door)
    await talk.say("I like pears.")
    state = await talk.say("I like" + " word" * 3000)
    assert len(talk.shown().split()) < 900
    assert len(state["messages"][-2].text.split()) == 3002


@pytest.mark.parametrize("door", ["graph", "agent"])
async def test_the_sentence_for_an_empty_answer_is_streamed(door: str) -> None:
    talk = Talk(door)
    talk.chat.replies = [AIMessage("")]
    sent = {"messages": [HumanMessage("Hi.")]}
    streamed = [piece.text async for piece, _ in talk.graph.astream(sent, talk.who(), stream_mode="messages")]
    assert "answered nothing" in "".join(streamed)
    assert "".join(streamed) == (await talk.values())["messages"][-1].text


@EDGES
async def test_names_are_fit_and_two_stay_two(door: str) -> None:
    talk = Talk(door)
    said: list[Any] = []
    for name in ("Zoe Quill", "Zoe/Quill", "Zoë Quill", "Zoe_Quill", "z" * 80, "z" * 90, "Юля", " "):
        said += [HumanMessage(f"This is {name}.", name=name), AIMessage("Hi.", name="Research Team")]
    await talk.run({"messages": [*said, HumanMessage("Who are we?")]})
    people = [message for message in talk.chat.prompts[-1] if isinstance(message, HumanMessage)]
    names = [message.name for message in people if message.name]
    assert names[0] == "Zoe_Quill"
    assert {"Zoë_Quill", "Юля"} < {*names}
    assert len({*names}) == len(names) == 8


@SUMMARIZED
async def test_equal_instructions_of_a_client_are_told_once_and_all_are_kept(door: str) -> None:
    talk = talk_of(door)
    for number in range(12):
        rule = [SystemMessage(RULE)] if number == 3 else []
        said = [SystemMessage("Speak as a sailor."), *rule, HumanMessage(f"Tell {number}.{LONG}")]
        await talk.run({"messages": said})
        assert talk.shown().count("Speak as a sailor.") == 1
        assert talk.shown().count(RULE) == (number >= 3)
        assert f"Tell {number}." in talk.shown()
    assert "They talked." in talk.shown()
    assert RULE not in str(talk.summaries.prompts)


@SUMMARIZED
async def test_instructions_that_are_new_each_turn_leave_room_for_the_talk(door: str) -> None:
    transcript: Any = "compact" if door == "compact" else "keep"
    context = Context(max_tokens=4000, max_summary_tokens=64, memory_tokens=0, transcript=transcript)
    talk = talk_of(door, context=context, around=lambda memory: summarizing(memory, 3000))
    for number in range(20):
        said = [SystemMessage(f"It is {number} o'clock.{LONG * 4}"), HumanMessage(f"Tell {number}.{LONG}")]
        await talk.run({"messages": said})
    assert "It is 0 o'clock." in talk.shown()
    assert "It is 19 o'clock." in talk.shown()
    assert talk.shown().count("o'clock") < 6
    assert "Tell 17." in talk.shown()


def test_what_a_system_message_says_leaves_no_summarized_list_of_messages() -> None:
    said: list[Any] = [HumanMessage(f"Tell {number}.{LONG}") for number in range(9)]
    said[2:2] = said[5:5] = [SystemMessage(RULE)]
    result = summarize_messages(
        said, running_summary=None, model=RecordingModel(respond=remembers), max_tokens=300, max_summary_tokens=64
    )
    assert result.running_summary
    assert sum(message.text == RULE for message in result.messages) == 1


class Trims(AgentMiddleware[Any, Any, Any]):
    """Keeps the newest message alone."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"messages": [CLEAR, *state["messages"][-1:]]} if len(state["messages"]) > 26 else {}


@pytest.mark.parametrize("door", AGENTS)
async def test_what_a_middleware_has_trimmed_is_still_told_by_the_summary(door: str) -> None:
    talk = Talk(door, around=lambda memory: [Trims(), *summarizing(memory)])
    for number in range(18):
        await talk.say(f"Tell {number}.{LONG}")
    assert len((await talk.values())["messages"]) < 26
    assert "They talked." in talk.shown()
