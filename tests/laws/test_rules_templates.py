"""G1: no thread dies of a strict chat template: one system message, then user and assistant in turn, the user first.

Every model of these tests refuses other prompts, as those of all tests do; so a turn that is answered kept to it.
"""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool

from palimpsest import Context, FactStore, PalimpsestMemory, PalimpsestSummary
from tests.fakes import RecordingModel
from tests.laws.talk import AGENTS, DAY, DOORS, LONG, NARROW, Talk, remembers
from tests.templates import template_refuses

LENGTHY = "garden " * 900
CALL = {"name": "weather", "args": {"city": "Bergen"}, "id": "1", "type": "tool_call"}
DOWN = r"down|answer"
EDGES = pytest.mark.parametrize("door", DOORS)


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


def summary(memory: PalimpsestMemory, **choices: Any) -> PalimpsestSummary:
    limits: dict[str, Any] = {"trigger": ("tokens", 800), "keep": ("tokens", 300), "max_summary_tokens": 64, **choices}
    return PalimpsestSummary(RecordingModel(respond=remembers), memory=memory, **limits)


ORDERS: dict[str, Callable[[PalimpsestMemory], list[Any]]] = {
    "memory, summary": lambda memory: [memory, summary(memory)],
    "summary, memory": lambda memory: [summary(memory), memory],
    "keeps messages": lambda memory: [memory, summary(memory, trigger=("messages", 6), keep=("messages", 4))],
    "no turn waits": lambda memory: [memory, summary(memory, summarize="after")],
}


def kinds(talk: Talk) -> list[str]:
    return [message.type for message in talk.chat.prompts[-1]]


@pytest.mark.parametrize("transcript", ["keep", "compact"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_long_thread_goes_on_in_the_shipped_context(transcript: Any, when: Any) -> None:
    talk = Talk(context=Context(transcript=transcript, summarize=when))
    for number in range(16):
        state = await talk.say(f"Tell {number}. {LENGTHY}")
        assert state["messages"][-1].text == "Noted."
        assert f"Tell {number}." in talk.shown()
    assert state["context"]


async def test_a_cut_leaves_whole_exchanges_or_the_newest_answer() -> None:
    talk = Talk(context=NARROW)
    for number in range(20):
        await talk.say(f"Question {number}.{LONG}")
        assert talk.chat.prompts[-1][1].text.startswith("Question")
    talk.chat.respond = lambda _: f"A long answer.{LONG * 4}"
    for number in range(6):
        await talk.say(f"Then {number}.{LONG * 2}")
        assert "A long answer." in talk.shown() or not number


@EDGES
async def test_a_turn_that_failed_does_not_end_its_thread(door: str) -> None:
    talk = Talk(door, tools=[weather])
    await talk.say("Good morning.")
    talk.chat.replies = [ConnectionError("down"), ConnectionError("down")]
    for question in ("Do you know my boat?", [{"type": "text", "text": "And my hat?"}]):
        with pytest.raises(Exception, match=DOWN):
            await talk.say(question)  # type: ignore[arg-type]
    talk.clock.advance(DAY)
    await talk.say("Are you there?")
    assert kinds(talk) == ["system", "human", "ai", "human"]
    assert talk.chat.prompts[-1][-1].text == "Do you know my boat?\n\nAnd my hat?\n\nAre you there?"
    talk.chat.replies = [AIMessage("", tool_calls=[CALL]), ConnectionError("down")]
    with pytest.raises(Exception, match=DOWN):
        await talk.say("What is the weather?")
    await talk.say("Never mind.")
    assert kinds(talk)[-5:] == ["human", "ai", "tool", "ai", "human"]
    await talk.learn()
    for said in ("09: Do you know my boat?", "09: And my hat?", "10: Are you there?"):
        assert said in talk.memory.prompts[0][-1].text


@EDGES
async def test_several_messages_of_one_input_are_one_turn(door: str) -> None:
    talk = Talk(door)
    said = [
        HumanMessage("My hat is red.", name="ada"),
        HumanMessage([{"type": "text", "text": "My boat is blue."}, {"type": "image", "url": "https://x.test/a.png"}]),
        HumanMessage("What is red?", name="bob"),
    ]
    await talk.run({"messages": said})
    (asked,) = talk.chat.prompts[-1][1:]
    assert asked.text == "ada: My hat is red.\n\nMy boat is blue.\n\nbob: What is red?"
    kinds = [block["type"].removesuffix("_url") for block in asked.content if isinstance(block, dict)]
    assert kinds == ["text", "text", "image", "text"]
    assert (await talk.values())["messages"][0].text == "My hat is red."
    await talk.say("And now?")


@EDGES
async def test_a_thread_that_the_assistant_began_is_shown_whole(door: str) -> None:
    talk = Talk(door)
    greeting = AIMessage("Hello, I am Pal.")
    await talk.run({"messages": [greeting, SystemMessage("Rhyme."), HumanMessage("Who are you?")]})
    assert kinds(talk) == ["system", "human", "ai", "human"]
    assert "Rhyme." in talk.chat.prompts[-1][0].text
    assert "Hello, I am Pal." in talk.shown()
    await talk.say("And now?")
    assert "Hello, I am Pal." in talk.shown()


@pytest.mark.parametrize("door", AGENTS)
@pytest.mark.parametrize("order", ORDERS)
async def test_an_agent_with_summaries_goes_on(door: str, order: str) -> None:
    talk = Talk(door, tools=[weather], around=ORDERS[order])
    await FactStore(talk.store, "ada").acreate("Likes pears", "preference", 0.9)
    for number in range(14):
        match number % 4:
            case 1:
                talk.chat.replies = [AIMessage("", tool_calls=[{**CALL, "id": str(number)}]), f"Rain.{LONG}"]
            case 2:
                talk.chat.replies = [ConnectionError("down")]
                with pytest.raises(ConnectionError):
                    await talk.say(f"Lost {number}.{LONG}")
                assert f"Lost {number}." in talk.shown()
        await talk.say(f"Tell {number}.{LONG}")
        assert f"Tell {number}." in talk.shown()
        assert talk.shown().count("Likes pears") == 1
    assert "They talked." in talk.shown() or "after" in str(order)


@pytest.mark.parametrize("door", DOORS)
async def test_what_a_provider_may_cache_is_the_same_behind_a_failed_turn(door: str) -> None:
    talk = Talk(door)
    await talk.say("Good morning.")
    talk.chat.replies = [ConnectionError("down")]
    with pytest.raises(Exception, match=DOWN):
        await talk.say("First.")
    before = talk.shown()
    await talk.say("Second.")
    assert talk.shown().startswith(before)
    before = talk.shown()
    await talk.say("Third.")
    assert talk.shown().startswith(before)


WEATHER = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
SAID: dict[str, dict[str, Any]] = {
    "s": {"role": "system", "content": "Be brief."},
    "u": {"role": "user", "content": "Hi."},
    "a": {"role": "assistant", "content": "Hi."},
    "c": {"role": "assistant", "content": "", "tool_calls": [WEATHER]},
    "t": {"role": "tool", "content": "rain", "tool_call_id": "1"},
}


@pytest.mark.parametrize(
    ("shape", "taken"),
    [
        ("su", True), ("u", True), ("suau", True), ("suctau", True), ("suct", True),
        ("ssu", False), ("sau", False), ("suu", False), ("suaau", False), ("suctu", False), ("usu", False),
        ("sucau", False), ("sutu", False), ("s", False), ("sua", False), ("suctctau", False),
    ],
)  # fmt: skip
def test_the_judge_of_these_tests_refuses_what_templates_refuse(shape: str, taken: bool) -> None:
    assert (template_refuses([SAID[letter] for letter in shape]) == "") == taken


def called(**wrong: Any) -> list[dict[str, Any]]:
    function = {**WEATHER["function"], **wrong}  # type: ignore[dict-item]
    return [{**SAID["c"], "tool_calls": [{**WEATHER, "function": function}]}, SAID["t"]]


@pytest.mark.parametrize(
    "wrong",
    [
        [{"role": "user", "content": " \n"}],
        [{"role": "user", "content": []}],
        [{"role": "user", "content": [{"type": "text", "text": "Hi."}, {"type": "text", "text": ""}]}],
        [{"role": "user", "content": [{"type": "thinking", "thinking": "Hm."}]}],
        [{"role": "user", "content": "Hi.", "name": "Zoe Quill"}],
        [{"role": "user", "content": "Hi.", "name": "z" * 65}],
        [SAID["u"], {"role": "assistant", "content": None}, SAID["u"]],
        [SAID["u"], *called(name="the weather")],
        [SAID["u"], *called(arguments="[1]")],
        [SAID["u"], SAID["c"], {**SAID["t"], "content": ""}],
        [SAID["u"], {**SAID["c"], "tool_calls": [{**WEATHER, "id": ""}]}, {**SAID["t"], "tool_call_id": ""}],
    ],
)
def test_the_judge_of_these_tests_refuses_what_any_server_refuses(wrong: list[Any]) -> None:
    assert template_refuses(wrong)
