"""How often memory goes to the store, one batch after another: each is a round trip on a server."""

import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from graphs.chat import build_graph
from graphs.middleware import PalimpsestMemory, PalimpsestState, PalimpsestSummary
from graphs.service import MemoryService
from graphs.settings import Settings
from tests.fakes import RecordingModel
from tests.memory_bench import MemoryBench
from tests.stores import CountingStore

TURN = 4
EARLY = 3
"""A model that fails never comes to an agent's `after_agent`: what was asked is written down before the model is asked,
too, in as many batches as the turn is at its end."""
FOLLOWING = 2
"""In a process that has not read a user's journal yet: it is read behind the first turn."""
UPDATE = 14


def test_an_update_of_one_entry_takes_few_batches() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    before = bench.store.calls
    assert bench.drain().receipts
    assert bench.store.calls - before <= UPDATE


def test_a_correction_with_a_new_profile_takes_few_more() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.drain()

    def corrects(messages: list[BaseMessage]) -> str:
        fact = {"message": 1, "action": "corrects", "known": 1, "content": "Likes plums", "category": "preference"}
        profile = [{"section": "personal", "text": "Likes plums."}]
        return json.dumps({"facts": [{**fact, "confidence": 0.9}], "profile": profile})

    bench.model.respond = corrects
    bench.record(bench.messages("I like plums, not figs", begin=2))
    before = bench.store.calls
    assert bench.drain().receipts[0].superseded
    assert bench.store.calls - before <= UPDATE + 2


@pytest.mark.parametrize("summarizes", [False, True])
async def test_a_turn_of_an_agent_takes_few_more(summarizes: bool) -> None:
    service = MemoryService(Settings(model="fake:model"), lambda *_: RecordingModel())
    store = CountingStore()
    await service.asweep(store)
    memory = PalimpsestMemory(service=service)
    summary = PalimpsestSummary(RecordingModel(), memory=memory)
    agent = create_agent(
        RecordingModel(),
        middleware=[memory, summary] if summarizes else [memory],
        state_schema=PalimpsestState,
        checkpointer=InMemorySaver(),
        store=store,
    )
    before = store.batches
    for text in ("I like figs.", "And plums.", "What do I like?"):
        said: Any = {"messages": [HumanMessage(text)]}
        await agent.ainvoke(said, {"configurable": {"thread_id": "T", "langgraph_auth_user_id": "ada"}})
    assert store.batches - before <= 3 * (TURN + EARLY) + FOLLOWING


async def test_a_turn_without_tools_takes_few_batches_also_when_the_thread_goes_on() -> None:
    service = MemoryService(Settings(model="fake:model"), lambda *_: RecordingModel())
    store = CountingStore()
    await service.asweep(store)  # or the first turn of a process would look for what an earlier one left
    chat = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=store)
    before = store.batches
    for text in ("I like figs.", "And plums.", "What do I like?"):
        who = {"thread_id": "T", "langgraph_auth_user_id": "ada"}
        await chat.ainvoke({"messages": [HumanMessage(text)]}, {"configurable": who})
    assert store.batches - before <= 3 * TURN + FOLLOWING
