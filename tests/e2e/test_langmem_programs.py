"""Programs written for langmem, under a real server: checkpoints, the SDK's JSON, and a restart in between."""

from typing import Any

import pytest
from langgraph_sdk import get_sync_client

from memory.context.running_summary import SUMMARY_ID
from memory.context.tokens import count_tokens
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.speaking import say
from tests.stub_model import ChatRequest, Reply, StubModel
from tests.threads import words

TURNS = 14


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve("tests/e2e/support/swapped.json", LANGGRAPH_STRICT_MSGPACK="true")


def is_summary(request: ChatRequest) -> bool:
    return "</conversation>" in request.last


def answering(request: ChatRequest) -> Reply:
    return Reply(text="what was said" if is_summary(request) else words(15, "answer"))


@pytest.mark.parametrize("graph", ["two_keys", "one_key"])
def test_C7_C8_a_program_written_for_langmem_lives_on_a_server(server: DevServer, model: StubModel, graph: str) -> None:
    model.respond = answering
    thread_id = ""
    for turn in range(TURNS):
        if turn == TURNS // 2:
            server.restart()
        with get_sync_client(url=server.url) as client:
            thread = client.threads.create(thread_id=thread_id or None, graph_id=graph, if_exists="do_nothing")
            thread_id = thread["thread_id"]
            client.runs.wait(thread_id, graph, input=say(f"question {turn} {words(15)}"))
            values: Any = client.threads.get_state(thread_id)["values"]
    chats = [request for request in model.requests if not is_summary(request)]
    assert [f"question {turn} " in request.last for turn, request in enumerate(chats)] == [True] * TURNS
    assert all(count_tokens(request.text) <= 200 for request in chats)
    assert 1 <= len(model.requests) - TURNS <= TURNS // 2
    assert values["context"]["running_summary"]["summary"] == "what was said"
    ids = [message["id"] for message in values["messages"]]
    assert (len(ids), SUMMARY_ID in ids) == ((2 * TURNS, False) if graph == "two_keys" else (len(ids), True))
