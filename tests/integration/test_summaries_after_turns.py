"""`summarize: after`: no turn waits for a summary, memory has all that leaves, the receipt says what was missing."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.tools import time_tool
from memory.context.running_summary import divide, summarized_ids
from memory.context.tokens import shared_counter
from memory.facts.store import FactStore
from memory.namespaces import Owner
from tests.summary_chat import CONTEXT, Chat, Held, chatting
from tests.threads import varied

AFTER = replace(CONTEXT, summarize="after")


def shown(prompt: Sequence[BaseMessage]) -> list[str]:
    return [str(message.id) for message in prompt if message.type != "system"]


def missing_in(state: dict[str, Any]) -> int:
    return int(state["memory"]["receipt"].get("left_out", {"messages": 0})["messages"])


async def check(chat: Chat) -> None:
    """What holds after each turn in which no summary was waited for."""
    state = await chat.state()
    assert "turn" not in chat.asked_in
    assert shared_counter()(chat.answers.prompts[-1]) <= CONTEXT.max_tokens
    running = state.get("context", {}).get("running_summary")
    live = [str(message.id) for message in divide(state["messages"], running).live][:-1]
    seen, receipt = shown(chat.answers.prompts[-1]), state["memory"]["receipt"]
    missing = [identity for identity in live if identity not in seen]
    assert receipt.get("left_out", {"messages": 0, "ids": []}) == {"messages": len(missing), "ids": missing[-32:]}
    written = chat.cut_ids()
    assert len(written) == len(set(written))
    said = {str(message.id) for message in state["messages"]}
    assert set(written) >= ({*missing} | summarized_ids(state["messages"], running)) & said


@pytest.mark.parametrize("transcript", ["keep", "compact"])
@pytest.mark.parametrize("share", [0.7, 1.0])
async def test_no_turn_waits_and_all_that_leaves_is_written_down_once(transcript: Any, share: float) -> None:
    with chatting(prepare_summary_share=share) as chat:
        for number in range(40):
            await chat.turn(number, replace(AFTER, transcript=transcript))
            await check(chat)
            if chat.writing:
                await asyncio.wrap_future(chat.writing[-1])
        assert len(chat.events) >= 4
        assert all(event["ready"] for event in chat.events)
        # Without summaries ahead of time one turn misses what the next one's summary tells. Four exchanges fit, so that
        # whole ones that leave may be more than a call takes.
        assert len(chat.asked_in) <= 2 * (len(chat.events) + 1)


async def test_while_a_summary_is_written_turns_go_on_and_it_is_asked_for_once() -> None:
    held = Held()
    with chatting(begin=held) as chat:
        for number in range(30):
            await chat.turn(number, AFTER)
            await check(chat)
        assert len(held.waiting) == 1
        assert missing_in(await chat.state()) > 10
        await held.finish()
        await chat.turn(30, AFTER)
        await check(chat)
        assert [event["ready"] for event in chat.events] == [True]
        for number in range(31, 34):
            await held.finish()
            await chat.turn(number, AFTER)
            await check(chat)
        assert missing_in(await chat.state()) == 0


async def test_the_prompt_of_a_turn_mostly_begins_with_the_one_before_while_a_summary_is_written() -> None:
    """Else a local model would read all of it again in each turn."""
    context = replace(AFTER, max_tokens=2400, memory_tokens=120)
    with chatting(begin=Held()) as chat:
        facts = FactStore.of_owner(chat.store, Owner.of("ada"))
        for number in range(40):
            await facts.acreate(f"Wrote question {number} of the list", category="context", confidence=0.6)
        continued = turns = 0
        for number in range(55):
            await chat.turn(number, context)
            now, before = chat.answers.prompts[-1], chat.answers.prompts[-2:-1]
            if missing_in(await chat.state()):
                turns += 1
                same = sum(one.text == other.text for one, other in zip(now, before[0], strict=False))
                continued += same >= len(before[0]) - 1  # the newest question had what was recalled for it
        assert turns > 25
        assert continued > 0.7 * turns


async def test_a_summary_that_never_gets_through_in_one_go_comes_in_parts_and_what_is_missing_does_not_grow() -> None:
    context = replace(AFTER, model="local")
    with chatting() as chat:
        calls = 0

        def every_other(messages: list[BaseMessage]) -> str | Exception:
            nonlocal calls
            calls += "too long" not in messages[-1].text
            return chat._summary(messages) if calls % 2 else TimeoutError("late")

        chat.summaries.respond = every_other
        missing = list[int]()
        for number in range(80):
            await chat.turn(number, context)
            await check(chat)
            if chat.writing:
                await asyncio.gather(asyncio.wrap_future(chat.writing[-1]), return_exceptions=True)
            missing.append(missing_in(await chat.state()))
        assert max(missing) <= 12, missing
        assert len(chat.events) > 5


async def test_a_process_that_ends_while_a_summary_is_written_loses_nothing() -> None:
    saver, store = InMemorySaver(), InMemoryStore()
    with chatting(saver=saver, store=store, begin=Held()) as chat:
        for number in range(20):
            await chat.turn(number, AFTER)
            await check(chat)
        assert missing_in(await chat.state()) > 0
    with chatting(saver=saver, store=store) as again:
        for number in range(20, 23):
            await again.turn(number, AFTER)
            await asyncio.wrap_future(again.writing[-1])
        assert [event["ready"] for event in again.events] == [True]
        assert "turn" not in again.asked_in
        state = await again.state()
        assert missing_in(state) == 0
        summarized = summarized_ids(state["messages"], state["context"]["running_summary"])
        said = {str(message.id) for message in state["messages"]}
        assert {*summarized, *shown(again.answers.prompts[-1])} >= said - {str(state["messages"][-1].id)}


async def test_two_processes_that_take_turns_come_to_a_summary_too() -> None:
    saver, store = InMemorySaver(), InMemoryStore()
    with (
        chatting(saver=saver, store=store, prepare_summary_share=1.0) as one,
        chatting(saver=saver, store=store, prepare_summary_share=1.0) as other,
    ):
        for number in range(50):
            chat = (one, other)[number % 2]
            await chat.turn(number, AFTER)
            await check(chat)
            if chat.writing:
                await asyncio.wrap_future(chat.writing[-1])
        assert len([*one.events, *other.events]) >= 4
        assert missing_in(await chat.state()) <= 6


async def test_a_preparation_that_keeps_failing_fails_no_turn_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with chatting() as chat:
        chat.summaries.respond = lambda _: RuntimeError("no model")
        for number in range(60):
            await chat.turn(number, AFTER)
            await check(chat)
            if chat.writing:
                await asyncio.gather(asyncio.wrap_future(chat.writing[-1]), return_exceptions=True)
        assert caplog.text.count("a summary could not be written ahead of time") == 1
        state = await chat.state()
        assert missing_in(state) > 90
        assert len(str(state["context"])) < 2_000  # it does not grow with the thread
        chat.summaries.respond = chat._summary
        for number in range(60, 64):
            await chat.turn(number, AFTER)
            await asyncio.gather(asyncio.wrap_future(chat.writing[-1]), return_exceptions=True)
        await check(chat)
        assert chat.events
        assert missing_in(await chat.state()) == 0


async def test_in_incognito_nothing_is_written_down_and_no_turn_waits() -> None:
    incognito = replace(AFTER, memory_mode="incognito")
    with chatting() as chat:
        await chat.turns(0, 30, incognito)
        assert "turn" not in chat.asked_in
        assert chat.events
        assert chat.cut_ids() == []


async def test_where_memory_cannot_write_what_left_is_handed_over_later(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held()
    with chatting(begin=held) as chat:
        await chat.turns(0, 9, AFTER)
        real = chat.service.aremember
        is_down = True

        async def remember(*given: Any, **more: Any) -> Any:
            if is_down:
                raise OSError("the disk is gone")
            return await real(*given, **more)

        monkeypatch.setattr(chat.service, "aremember", remember)
        await chat.turns(9, 14, AFTER)
        state = await chat.state()
        assert state["context"]["not_summarized"] == "h13"
        is_down = False
        await chat.turn(14, AFTER)
        await check(chat)


async def test_a_prompt_that_the_provider_finds_too_long_is_asked_again_smaller() -> None:
    held, refused = Held(), list[int]()
    with chatting(begin=held) as chat:

        def answer(prompt: list[BaseMessage]) -> str | Exception:
            tokens = shared_counter()(prompt)
            if tokens <= 400:
                return varied(25, "answer")
            refused.append(tokens)
            return ContextOverflowError("too long")

        chat.answers.respond = answer
        for number in range(20):
            await chat.turn(number, AFTER)
            assert "turn" not in chat.asked_in
        assert refused
        written = chat.cut_ids()
        assert len(written) == len(set(written))


async def test_a_question_larger_than_the_budget_is_answered_and_shortened() -> None:
    with chatting(prepare_summary_share=1.0) as chat:
        for number in range(12):
            await chat.turn(number, AFTER, size=300)
            assert f"question {number} " in chat.answers.prompts[-1][-1].text
            assert shared_counter()(chat.answers.prompts[-1]) <= CONTEXT.max_tokens
            if chat.writing:
                await asyncio.wrap_future(chat.writing[-1])
        assert "turn" not in chat.asked_in
        assert chat.events


async def test_a_turn_of_many_tools_waits_for_nothing() -> None:
    held = Held()
    with chatting(begin=held) as chat:
        chat.graph = build_graph(service=chat.service, tools=[time_tool()]).compile(
            checkpointer=chat.saver, store=chat.store
        )
        steps = 0

        def answer(prompt: list[BaseMessage]) -> Any:
            nonlocal steps
            steps += 1
            if steps % 8 == 0:
                return varied(25, "answer")
            call = {"name": "current_time", "args": {}, "id": f"c{steps}"}
            return AIMessage(varied(20, "thinking"), tool_calls=[call])

        chat.answers.respond = answer
        context = replace(AFTER, max_tokens=900)
        for number in range(8):
            await chat.turn(number, context)
            state = await chat.state()
            called = {call["id"] for one in chat.answers.prompts[-1] for call in getattr(one, "tool_calls", ())}
            results = {one.tool_call_id for one in chat.answers.prompts[-1] if one.type == "tool"}  # type: ignore[attr-defined]
            assert called == results
            assert shared_counter()(chat.answers.prompts[-1]) <= 900
        assert "turn" not in chat.asked_in
        assert missing_in(state) > 0
        written = chat.cut_ids()
        assert len(written) == len(set(written))
        await held.finish()
        await chat.turn(8, context)
        assert [event["ready"] for event in chat.events] == [True]


async def test_a_branch_from_an_earlier_turn_goes_its_own_way() -> None:
    held = Held()
    with chatting(begin=held) as chat:
        await chat.turns(0, 14, AFTER)
        past = [one async for one in chat.graph.aget_state_history(chat.config()) if one.next == ()]
        early = next(one for one in past if len(one.values["messages"]) == 20)
        await held.finish()
        said: Any = {"messages": [HumanMessage(varied(25, "another"), id="b1")]}
        await chat.graph.ainvoke(said, early.config, context=AFTER)
        await check(chat)
        for number in range(100, 110):
            await chat.turn(number, AFTER)
            await held.finish()
        state = await chat.state()
        assert "turn" not in chat.asked_in
        assert chat.events
        assert not {f"h{number}" for number in range(10, 14)} & {one.id for one in state["messages"]}


async def test_a_thread_that_nobody_keeps_waits_for_its_summary() -> None:
    """Without a checkpointer there is no later turn that would have it."""
    with chatting() as chat:
        graph = build_graph(service=chat.service).compile(store=chat.store)
        said: Any = {"messages": [message for number in range(12) for message in exchange(number)][:-1]}
        state = await graph.ainvoke(said, {"configurable": {"langgraph_auth_user_id": "ada"}}, context=AFTER)
        assert {*chat.asked_in} == {"turn"}
        assert missing_in(state) == 0


def exchange(number: int) -> list[BaseMessage]:
    return [HumanMessage(varied(25), id=f"h{number}"), AIMessage(varied(25), id=f"a{number}")]


async def test_an_assistant_may_change_its_mind_between_turns() -> None:
    with chatting(prepare_summary_share=1.0) as chat:
        for number in range(40):
            await chat.turn(number, AFTER if number % 3 else CONTEXT)
            written = chat.cut_ids()
            assert len(written) == len(set(written))
        state = await chat.state()
        said = {str(message.id) for message in state["messages"]}
        summarized = summarized_ids(state["messages"], state["context"]["running_summary"])
        assert summarized & said <= set(written)
