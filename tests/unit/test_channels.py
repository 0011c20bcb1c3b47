"""The messages' reducer: what add_messages does, the same however the writes are batched."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import Overwrite

from graphs.turn.state import MessagesChannel, changes, merge_messages

ids = st.sampled_from("abcdefgh")
spoken = st.builds(lambda identity, text: HumanMessage(text, id=identity), ids, st.text(max_size=3))
removed = st.builds(lambda identity: RemoveMessage(id=identity), ids | st.just(REMOVE_ALL_MESSAGES))
raw = st.sampled_from(["hello", ("user", "hi"), {"role": "assistant", "content": "yes"}])
writes = st.lists(st.lists(spoken | removed | raw, max_size=5) | spoken, max_size=8)


@given(writes, st.integers(0, 8))
def test_the_result_is_the_same_however_writes_are_batched(batch: list[Any], at: int) -> None:
    assert merge_messages(merge_messages([], batch[:at]), batch[at:]) == merge_messages([], batch)


@given(writes)
def test_a_channel_that_knows_its_messages_merges_as_one_that_reads_them(batch: list[Any]) -> None:
    channel = MessagesChannel().from_checkpoint([])
    expected: list[BaseMessage] = []
    for write in batch:
        channel.update([write])
        aside = channel.copy()
        aside.update([[HumanMessage("aside", id="z"), RemoveMessage(id="a")]])
        expected = merge_messages(expected, [write])
        assert channel.get() == expected
        assert aside.get() == merge_messages(expected, [[HumanMessage("aside", id="z"), RemoveMessage(id="a")]])


@given(st.lists(st.lists(spoken, max_size=5), max_size=6))
def test_it_adds_and_replaces_as_add_messages_does(batch: list[list[Any]]) -> None:
    expected: Any = []
    for write in batch:
        expected = add_messages(expected, write)
    assert merge_messages([], batch) == expected


called = st.builds(
    lambda identity, text: AIMessage(
        text,
        id=identity,
        tool_calls=[{"name": "look", "args": {"q": text}, "id": "c"}],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        response_metadata={"model_name": "m"},
    ),
    ids,
    st.text(max_size=3),
)
returned = st.builds(
    lambda identity, text: ToolMessage(text, tool_call_id="c", artifact={"rows": 1}, status="error", id=identity),
    ids,
    st.text(max_size=3),
)
kinds = st.lists(st.lists(spoken | called | returned | removed | raw, max_size=4), max_size=8)


@given(kinds, st.integers(0, 8))
def test_what_a_server_replays_as_json_gives_the_same_messages(batch: list[Any], at: int) -> None:
    expected = merge_messages(merge_messages([], batch[:at]), batch[at:])
    assert merge_messages(as_json(merge_messages([], batch[:at])), [as_json(write) for write in batch[at:]]) == expected


def as_json(messages: list[Any]) -> list[Any]:
    return [json.loads(m.model_dump_json()) if isinstance(m, BaseMessage) else m for m in messages]


@pytest.mark.parametrize("content", ["hi", None])
def test_a_message_that_somebody_wrote_in_full_is_taken_by_its_role_all_the_same(content: str | None) -> None:
    written: Any = {"type": "user", "content": content, "additional_kwargs": {}, "response_metadata": {}, "id": "a"}
    assert merge_messages([], [written]) == [HumanMessage(content or "", id="a")]


@pytest.mark.parametrize("as_sent", [list, as_json])
def test_chunks_become_messages_and_an_unknown_removal_is_no_error(as_sent: Any) -> None:
    write: list[BaseMessage] = [AIMessageChunk(content="hi", id="a"), RemoveMessage(id="nobody")]
    (message,) = merge_messages([], [as_sent(write)])
    assert message.type == "ai"
    assert not isinstance(message, AIMessageChunk)


def talk(*names: str) -> list[BaseMessage]:
    return [HumanMessage(name, id=name) for name in names]


@pytest.mark.parametrize(
    ("old", "new", "written"),
    [
        ("", "ab", "ab"),
        ("ab", "abc", "c"),
        ("ab", "ab", None),
        ("abc", "bc", Overwrite(talk("b", "c"))),
        ("abc", "", Overwrite([])),
    ],
)
def test_an_update_is_the_smallest_write_that_makes_it(old: str, new: str, written: Any) -> None:
    update = changes({"seen": talk(*old)}, {"seen": talk(*new) or [RemoveMessage(id=REMOVE_ALL_MESSAGES)]})
    assert update.get("seen") == (talk(*written) if isinstance(written, str) else written)
    assert applied(talk(*old), update.get("seen", [])) == talk(*new)


def applied(old: Sequence[BaseMessage], write: Any) -> list[BaseMessage]:
    return list(write.value) if isinstance(write, Overwrite) else merge_messages(old, [write])
