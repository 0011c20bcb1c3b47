"""A thread as a server reads it for a client: its own checkpointer hands plain JSON back, not objects."""

from dataclasses import replace
from typing import Any, Literal

import ormsgpack
import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, JsonPlusSerializer, _msgpack_ext_hook_to_json
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from graphs.chat import build_graph
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.config import MemoryConfig
from memory.context.running_summary import RunningSummary
from tests.fakes import RecordingModel

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
SMALL = Context(max_tokens=700, max_summary_tokens=64, memory_tokens=100, reply_tokens=50)


def as_json(code: int, data: bytes) -> Any:
    """Read what LangGraph serialized as the server does, in `langgraph_runtime_inmem.checkpoint.Checkpointer`."""
    if code == EXT_DELTA_SNAPSHOT:
        return _DeltaSnapshot(ormsgpack.unpackb(data, ext_hook=as_json, option=ormsgpack.OPT_NON_STR_KEYS))
    return _msgpack_ext_hook_to_json(code, data)


def read_by_the_server(saver: InMemorySaver) -> InMemorySaver:
    """Return a saver that reads what another one wrote, as JSON."""
    reader = InMemorySaver(serde=JsonPlusSerializer(__unpack_ext_hook__=as_json))
    reader.storage, reader.writes, reader.blobs = saver.storage, saver.writes, saver.blobs
    return reader


@pytest.mark.parametrize("transcript", ["keep", "compact"])
async def test_every_state_of_a_thread_reads_as_it_was(transcript: Literal["keep", "compact"]) -> None:
    service = MemoryService(Settings(memory=MemoryConfig(enabled=False)), lambda *_: RecordingModel())
    saver, context = InMemorySaver(), replace(SMALL, transcript=transcript)
    graph = build_graph(service=service).compile(checkpointer=saver)
    for turn in range(25):
        asked: Any = {"messages": [HumanMessage(f"{turn}: {'long ' * 40}", id=f"h{turn}")]}
        await graph.ainvoke(asked, CONFIG, context=context)
    served = build_graph(service=service).compile(checkpointer=read_by_the_server(saver))
    written = [state async for state in graph.aget_state_history(CONFIG)]
    read = [state async for state in served.aget_state_history(CONFIG)]
    assert isinstance(written[0].values["context"]["running_summary"], RunningSummary)
    for one, other in zip(written, read, strict=True):
        assert as_a_client_gets_it(other.values) == as_a_client_gets_it(one.values)


def as_a_client_gets_it(values: dict[str, Any]) -> dict[str, Any]:
    """Return a state with its messages dumped; those that were read as JSON may be so already."""
    held = {key: values[key] for key in values if key.endswith("messages")}
    return values | {key: [m if isinstance(m, dict) else m.model_dump() for m in each] for key, each in held.items()}
