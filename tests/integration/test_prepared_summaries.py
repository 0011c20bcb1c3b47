"""Turns that need a summary find it written: in the chat graph, turn for turn."""

import asyncio
from dataclasses import replace
from statistics import mean
from typing import Any

import pytest

from graphs.turn.nodes import ChatNodes
from memory.context.running_summary import summarized_ids
from memory.erase import aerase_user
from tests.summary_chat import CONTEXT, Chat, chatting, in_background


@pytest.mark.parametrize("transcript", ["keep", "compact"])
async def test_no_turn_of_a_long_conversation_asks_for_a_summary(transcript: Any) -> None:
    with chatting() as chat:
        await chat.turns(0, 60, replace(CONTEXT, transcript=transcript))
        assert len(chat.events) >= 5
        assert all(event["ready"] for event in chat.events)
        assert "turn" not in chat.asked_in
        assert len(chat.asked_in) <= len(chat.events) + 1


async def test_the_state_is_one_that_the_way_without_could_have_made() -> None:
    with chatting() as ahead, chatting(prepare_summary_share=1.0) as before:
        for chat in (ahead, before):
            await chat.turns(0, 30)
        assert [event["ready"] for event in before.events] == [False] * len(before.events)
        assert {*before.asked_in} == {"turn"}
        for chat in (ahead, before):
            state = (await chat.graph.aget_state(chat.config())).values
            said = [message.id for message in state["messages"]][:-1]  # the answer came after the summary
            sent = [message.id for message in state["summarized_messages"][1:]]
            # The model sees the newest messages, and the summary stands for all others.
            assert said[-len(sent) :] == sent
            assert summarized_ids(state["messages"], state["context"]["running_summary"]) == {*said[: -len(sent)]}
        # As often, and down to as much, but for an exchange.
        assert abs(len(ahead.events) - len(before.events)) <= 1
        left = [mean(event["tokens_after"] for event in chat.events) for chat in (ahead, before)]
        assert left[0] == pytest.approx(left[1], rel=0.4)


async def _until_prepared(chat: Chat) -> int:
    """Talk until a summary was written ahead; return the number of the next turn."""
    for number in range(60):
        await chat.turn(number)
        if chat.writing and await asyncio.wrap_future(chat.writing[-1]):
            return number + 1
    raise AssertionError("no summary was written ahead")


async def test_after_an_erase_it_is_not_used() -> None:
    with chatting() as chat:
        at = await _until_prepared(chat)
        calls = len(chat.asked_in)
        await aerase_user(chat.store, "ada")
        while not chat.events:
            await chat.turn(at)
            at += 1
        assert len(chat.asked_in) > calls


@pytest.mark.parametrize(
    "other",
    [{"initial_summary_prompt": "Another way."}, {"model": "other:model"}, {"max_summary_tokens": 61}],
    ids=lambda value: next(iter(value)),
)
async def test_under_other_settings_it_is_not_used(other: dict[str, Any]) -> None:
    with chatting() as chat:
        at = await _until_prepared(chat)
        calls = len(chat.asked_in)
        while not chat.events:
            await chat.turn(at, replace(CONTEXT, **other))
            at += 1
        assert len(chat.asked_in) > calls


async def test_when_the_way_to_incognito_or_back_is_taken_it_is_not_used() -> None:
    with chatting() as chat:
        at = await _until_prepared(chat)
        calls = len(chat.asked_in)
        while not chat.events:
            await chat.turn(at, replace(CONTEXT, memory_mode="incognito"))
            at += 1
        assert len(chat.asked_in) > calls


async def test_a_failing_preparation_costs_nothing_but_the_wait_it_would_have_saved() -> None:
    with chatting() as chat:
        chat.summaries.respond = lambda _: RuntimeError("no model") if in_background() else "They talked."
        await chat.turns(0, 30)
        assert chat.events
        assert not any(event["ready"] for event in chat.events)


async def test_whatever_a_preparation_trips_over_does_not_fail_the_turn(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    in_turn = ChatNodes._summarization

    def fails_after_it(self: ChatNodes, run: Any, budget: int, **more: Any) -> Any:
        if "memory_flush_hook" not in more:
            raise LookupError("text of a conversation")
        return in_turn(self, run, budget, **more)

    monkeypatch.setattr(ChatNodes, "_summarization", fails_after_it)
    with chatting() as chat:
        await chat.turn(0)
        state = (await chat.graph.aget_state(chat.config())).values
    assert state["memory"]["receipt"]["queued"]
    assert "no summary is written ahead of time: LookupError" in caplog.text
