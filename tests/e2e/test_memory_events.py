"""What memory tells a client: in the newest protocol, and after the turn on the thread of its own run."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from graphs.events import MemoryUpdated
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.javascript import run_javascript
from tests.e2e.scripted import Scripted
from tests.e2e.speaking import opens_when_joined, say
from tests.e2e.waiting import PATIENCE
from tests.stub_model import StubModel

CHANNELS = ["values", "updates", "custom", "tasks", "checkpoints"]


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="1", PALIMPSEST_TRIGGER="run")


LEARNS = {"moved to Bergen": "User lives in Bergen.", "green tent": "User has a tent."}


@pytest.fixture
async def client(server: DevServer, model: StubModel) -> AsyncIterator[LangGraphClient]:
    model.respond = Scripted(learns=LEARNS)
    async with get_client(url=server.url) as client:
        yield client


async def test_S5_an_update_after_the_turn_is_heard_on_the_thread_that_the_turn_named(
    client: LangGraphClient, model: StubModel
) -> None:
    model.respond = Scripted(learns=LEARNS, extraction_gate=(gate := threading.Event()))
    opens_when_joined(client, gate)
    thread_id = (await client.threads.create())["thread_id"]
    queued: dict[str, Any] = {}
    async for part in client.runs.stream(thread_id, "chat", input=say("I moved to Bergen."), stream_mode="custom"):
        if part.data.get("name") == "memory.queued":
            queued = part.data["payload"]
    async with asyncio.timeout(PATIENCE):
        async for part in await client.threads.join_stream(queued["thread_id"]):
            if part.event == "custom":
                break
    assert part.data["name"] == "memory.updated"
    updated = MemoryUpdated.model_validate(part.data["payload"])
    assert len(updated.created) == 1

    async for turn in client.runs.stream(thread_id, "chat", input=say("And now?"), stream_mode="values"):
        last = turn.data
    assert [update["created"] for update in last["memory"]["receipt"]["updates"]] == [list(updated.created)]


async def read(client: LangGraphClient, thread_id: str) -> list[Any]:
    async with client.threads.stream(thread_id, assistant_id="chat") as thread:
        await thread.run.start(input=say("My tent is a green tent."))
        return [event async for event in thread.subscribe(CHANNELS)]


@pytest.mark.parametrize("sdk", ["python", "javascript"])
async def test_S4_the_chat_graph_speaks_the_newest_protocol(
    server: DevServer, client: LangGraphClient, sdk: str
) -> None:
    thread_id = (await client.threads.create())["thread_id"]
    if sdk == "python":
        events = await read(client, thread_id)
    else:
        given = say("My tent is a green tent.")
        options: dict[str, Any] = {"threadId": thread_id, "assistantId": "chat", "channels": CHANNELS, "input": given}
        events = run_javascript("protocol.mjs", url=server.url, **options)
    by_method: dict[str, list[Any]] = {method: [] for method in CHANNELS}
    for event in events:
        by_method[event["method"]].append(event["params"]["data"])
    assert [data["name"] for data in by_method["custom"]] == ["memory.injected", "memory.queued"]
    side_by_side, one_by_one = ["inject_memory", "summarize"], ["call_model", "flush_memory"]
    tasks = [data["name"] for data in by_method["tasks"]]
    assert tasks == [*side_by_side, *side_by_side, *(name for name in one_by_one for _ in range(2))]
    assert len(by_method["updates"]) == 4
    history = await client.threads.get_history(thread_id, limit=100)
    saved = [(state["checkpoint"]["checkpoint_id"], (state["metadata"] or {})["step"]) for state in reversed(history)]
    assert [(data["id"], data["step"]) for data in by_method["checkpoints"]] == saved
    assert len(by_method["values"]) == len(saved) - 1
