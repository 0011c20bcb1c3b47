"""Every call is followed by its result, whatever became of either in the thread."""

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call

from graphs.turn.calls import paired
from memory.context.turns import in_turns


def calls(*ids: str, text: str = "") -> AIMessage:
    return AIMessage(text, tool_calls=[tool_call(name="look", args={}, id=name) for name in ids])


def result(of: str, text: str = "rain") -> ToolMessage:
    return ToolMessage(text, tool_call_id=of)


def shape(messages: list[BaseMessage]) -> list[str]:
    return [f"{m.type} {m.tool_call_id}" if isinstance(m, ToolMessage) else m.type for m in messages]


def test_a_result_that_comes_late_follows_its_call() -> None:
    late = [calls("1", "2"), HumanMessage("hurry"), result("2"), result("1")]
    assert shape(paired(late)) == ["ai", "tool 1", "tool 2", "human"]


def test_models_that_number_their_calls_anew_get_each_result_once() -> None:
    again = [calls("call_0"), result("call_0", "rain"), calls("call_0"), result("call_0", "sun")]
    assert [message.text for message in paired(again)] == ["", "rain", "", "sun"]
    interrupted = [calls("call_0"), HumanMessage("no"), calls("call_0"), result("call_0", "sun")]
    assert [message.text for message in paired(interrupted)][1:] == [
        "No result is known. The call may have been carried out.",
        "no",
        "",
        "sun",
    ]


def test_a_garbled_call_is_left_out_and_what_was_said_with_it_stays() -> None:
    garbled = [invalid_tool_call(name="look", args="{", id="1", error="no JSON")]
    raw = {"tool_calls": [{"id": "1"}], "kept": True}
    alone = AIMessage("", invalid_tool_calls=garbled)
    spoken = AIMessage("Let me look.", invalid_tool_calls=garbled, additional_kwargs=raw)
    _, said, _ = in_turns(paired([alone, spoken]))
    assert isinstance(said, AIMessage)
    assert (said.text, said.invalid_tool_calls, said.additional_kwargs) == ("Let me look.", [], {"kept": True})
    assert spoken.invalid_tool_calls == garbled


a_message = st.one_of(
    st.builds(calls, st.sampled_from("123"), st.sampled_from("456")),
    st.builds(result, st.sampled_from("123456")),
    st.just(HumanMessage("hi")),
)


@given(st.lists(a_message, max_size=12))
def test_whatever_a_thread_looks_like_each_call_has_one_result_right_behind_it(messages: list[BaseMessage]) -> None:
    sent = paired(messages)
    left = list(sent)
    while left:
        message = left.pop(0)
        assert not isinstance(message, ToolMessage)
        asked = {call["id"] for call in message.tool_calls} if isinstance(message, AIMessage) else set()
        behind = [left.pop(0) for _ in asked]
        assert {each.tool_call_id for each in behind if isinstance(each, ToolMessage)} == asked
    assert [m.text for m in sent if m.type != "tool"] == [m.text for m in messages if m.type != "tool"]
    ids = [call["id"] for m in sent if isinstance(m, AIMessage) for call in m.tool_calls]
    assert len({*ids}) == len(ids)
    assert paired(sent) == sent
