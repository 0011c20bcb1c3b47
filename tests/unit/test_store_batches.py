"""How often memory goes to the store, one batch after another: each is a round trip on a server."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from graphs.chat import build_graph
from graphs.middleware import PalimpsestMemory, PalimpsestState, PalimpsestSummary
from graphs.service import MemoryService
from graphs.settings import Settings
from memory.config import Topic
from memory.effects import run
from memory.journal.entry import JournalEntry
from memory.journal.journal import append
from memory.message import StoredMessage
from memory.namespaces import Owner
from tests.fakes import RecordingModel, learns
from tests.memory_bench import CONFIG, MemoryBench
from tests.stores import CountingStore

TURN = 4
EARLY = 3
"""A model that fails never comes to an agent's `after_agent`: what was asked is written down before the model is asked,
too, in as many batches as the turn is at its end."""
FOLLOWING = 2
"""In a process that has not read a user's journal yet: it is read behind the first turn."""
READING = 3
"""More of it where the journal holds anything: what was deleted or waits, and where that came from."""
UPDATE = 14


@pytest.mark.parametrize("said", ["I like figs", "I have asthma"])
@pytest.mark.parametrize("approval", [frozenset(), frozenset({"health"})], ids=["asks nothing", "asks"])
def test_an_update_of_one_entry_takes_few_batches(approval: frozenset[Topic], said: str) -> None:
    bench = MemoryBench(config=replace(CONFIG, approval=approval))
    bench.model.respond = lambda _: '{"facts": [], "profile": []}' if "asthma" in said else learns(_)
    bench.say(said)
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


@pytest.fixture
def service() -> Iterator[MemoryService]:
    service = MemoryService(Settings(model="fake:model"), lambda *_: RecordingModel(respond=learns))
    yield service
    assert service.close()


@pytest.mark.parametrize("summarizes", [False, True])
async def test_a_turn_of_an_agent_takes_few_more(service: MemoryService, summarizes: bool) -> None:
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


@pytest.mark.parametrize("waits", [False, True], ids=["", "a message waits for a yes"])
async def test_a_turn_without_tools_takes_few_batches_also_when_the_thread_goes_on(
    service: MemoryService, waits: bool
) -> None:
    store, ada = CountingStore(), Owner.of("ada")
    if waits:
        said = (StoredMessage("m", "user", "I have asthma.", "2026-03-01T10:00:00+00:00"),)
        run(store, append(ada, [JournalEntry("2026-03-01", "old", said, "initial").judged({"health"})]))
    await service.asweep(store)  # or the first turn of a process would look for what an earlier one left
    chat = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=store)
    before = store.batches
    for text in ("I like figs.", "And plums.", "What do I like, with my asthma?"):
        who = {"thread_id": "T", "langgraph_auth_user_id": "ada"}
        await chat.ainvoke({"messages": [HumanMessage(text)]}, {"configurable": who})
    # Which messages wait is read behind the turn, with what else nothing may tell.
    assert store.batches - before <= 3 * TURN + FOLLOWING + (READING if waits else 0)
