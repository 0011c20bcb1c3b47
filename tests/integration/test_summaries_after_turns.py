"""`summarize: after`: no turn waits for a summary, memory has all that leaves, the receipt says what was missing."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.tools import time_tool
from memory.context.running_summary import divide, summarized_ids
from memory.context.tokens import shared_counter
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
