"""A long conversation goes on with its summary, over crashes."""

from collections.abc import Iterator
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from memory.context.tokens import count_tokens
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted, is_chat
from tests.e2e.speaking import speak_python
from tests.stub_model import ChatRequest, StubModel, always

SMALL = {"max_tokens": 900, "max_summary_tokens": 120, "memory_tokens": 200, "reply_tokens": 100}
PLANS = "They plan a trip to Lofoten in July, by ferry, with Ada's green tent."


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    """The shipped server, as a newcomer starts it, in the strictest mode of reading checkpoints."""
    return serve(LANGGRAPH_STRICT_MSGPACK="true", PALIMPSEST_DEBOUNCE_SECONDS="1.5")


@pytest.fixture
def client(server: DevServer, model: StubModel) -> Iterator[SyncLangGraphClient]:
    model.respond = Scripted()
    with get_sync_client(url=server.url) as client:
        yield client


def prompts(model: StubModel) -> list[ChatRequest]:
    return [request for request in model.requests if is_chat(request)]


def summarized(client: SyncLangGraphClient, thread_id: str) -> set[str]:
    """Ids of the messages that the thread's summary stands for, as a client sees them in the state."""
    values: Any = client.threads.get_state(thread_id)["values"]
    summary = values.get("context", {}).get("running_summary")
    if summary is None:
        return set()
    assert summary["summary"] == PLANS
    return set(summary["summarized_message_ids"])


def test_C1_G2_a_long_thread_goes_on_with_its_summary_after_kill_9(
    server: DevServer, client: SyncLangGraphClient, model: StubModel, kills: int
) -> None:
    model.respond = Scripted(summary=always(PLANS))
    thread, before = None, set[str]()
    for n in range(20):
        thread, _ = speak_python(
            server, f"Message {n}: " + "the ferry leaves at seven, the tent is green. " * 8, thread, SMALL
        )
        # A summary is asked for before it is due: the state says when it is.
        if before := summarized(client, thread):
            break
    assert thread
    assert before

    for crash in range(kills):
        server.kill9()
        server.start()
        assert speak_python(server, f"Where to? ({crash})", thread, SMALL).answer == "Noted."
        # The development server carries a run out again that had ended less than 10 s before the crash.
        (prompt,) = [prompt for prompt in prompts(model) if prompt.last == f"Where to? ({crash})"]
        assert PLANS in prompt.text
        assert "Message 0:" not in prompt.text
        assert count_tokens(prompt.text) <= SMALL["max_tokens"]
        assert summarized(client, thread) >= before
