"""What strict chat templates take, of any conversation: nothing of it lost, tool rounds whole."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage

from graphs.turn.calls import paired
from graphs.turn.prompt import Prompt
from memory.context.turns import in_turns
from tests.templates import template_refuses
from tests.threads import word_counter

PICTURE = {"type": "image", "url": "https://x.test/a.png"}


@st.composite
def conversations(draw: st.DrawFn) -> list[BaseMessage]:
    """Draw messages in any order, each with a word of its own, some calls without a result."""
    said: list[BaseMessage] = []
    for at, letter in enumerate(draw(st.lists(st.sampled_from("hhaacsxf"), max_size=12))):
        text = f"word{at}."
        content: Any = draw(st.sampled_from([text, [text], [{"type": "text", "text": text}, PICTURE]]))
        name, identity = draw(st.sampled_from([None, "ada", "bob"])), f"m{at}"
        match letter:
            case "h":
                said.append(HumanMessage(content, name=name, id=identity))
            case "a":
                said.append(AIMessage(content, name=name, id=identity))
            case "s":
                said.append(SystemMessage(text, id=identity))
            case "c":
                calls = [{"name": "look", "args": {}, "id": f"{at}{n}"} for n in range(draw(st.integers(1, 3)))]
                said.append(AIMessage(draw(st.sampled_from(["", text])), tool_calls=calls, id=identity))
                said += [ToolMessage(text, tool_call_id=call["id"]) for call in calls[: draw(st.integers(0, 3))]]
            case "x":
                said.append(ToolMessage(text, tool_call_id="gone"))
            case "f":
                said.append(FunctionMessage(content=text, name="look"))
    return said


def texts(messages: list[BaseMessage]) -> str:
    return " ".join(message.text for message in messages)


@given(conversations())
def test_any_conversation_is_taken_and_all_of_it_is_there(said: list[BaseMessage]) -> None:
    before = [message.model_copy(deep=True) for message in said]
    known = paired(said)
    sent = in_turns(known)
    assert template_refuses(sent) == ""
    assert said == before
    assert all(message.text in texts(sent) for message in known)
    assert str(sent).count("x.test") == str(known).count("x.test")
    assert [one for one in sent if isinstance(one, ToolMessage)] == [
        one for one in known if isinstance(one, ToolMessage)
    ]
    assert in_turns(sent) == sent


@given(conversations(), st.integers(250, 400), st.text("ab ", max_size=200))
def test_C1_the_whole_has_no_more_than_its_tokens_when_it_is_joined(
    said: list[BaseMessage], most: int, recalled: str
) -> None:
    spoken = [*(message for message in said if not isinstance(message, SystemMessage)), HumanMessage("And?", id="q")]
    prompt = Prompt(
        system_prompt="Be brief.",
        messages=spoken,
        recalled={str(spoken[0].id): recalled} if recalled else {},
        max_tokens=most,
        counter=word_counter(),
    )
    sent = prompt.view(most)
    assert template_refuses(sent) == ""
    assert word_counter()(sent) <= most
    assert sent[-1].text.endswith("And?")


def test_two_people_are_told_apart_and_one_is_not_named() -> None:
    said = [HumanMessage("Mine is red.", name="ada"), HumanMessage("And long.", name="ada")]
    assert [(one.text, one.name) for one in in_turns(said)] == [("Mine is red.\n\nAnd long.", "ada")]
    (both,) = in_turns([*said, HumanMessage([{"type": "text", "text": "Mine is not."}, PICTURE], name="bob")])
    assert (both.text, both.name) == ("ada: Mine is red.\n\nAnd long.\n\nbob: Mine is not.", None)
