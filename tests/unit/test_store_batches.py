"""How often memory goes to the store, one batch after another: each is a round trip on a server."""

import json

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from graphs.chat import build_graph
from graphs.service import MemoryService
from graphs.settings import Settings
from tests.fakes import RecordingModel
from tests.memory_bench import MemoryBench
from tests.stores import CountingStore

TURN = 6
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


async def test_a_turn_without_tools_takes_few_batches_also_when_the_thread_goes_on() -> None:
    service = MemoryService(Settings(model="fake:model"), lambda *_: RecordingModel())
    store = CountingStore()
    await service.asweep(store)  # or the first turn of a process would look for what an earlier one left
    chat = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=store)
    for text in ("I like figs.", "And plums.", "What do I like?"):
        before = store.batches
        who = {"thread_id": "T", "langgraph_auth_user_id": "ada"}
        await chat.ainvoke({"messages": [HumanMessage(text)]}, {"configurable": who})
        assert store.batches - before <= TURN
