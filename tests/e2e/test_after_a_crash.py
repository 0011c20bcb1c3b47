"""After a quick `kill -9` a thread is readable once it is made again, without a run."""

from typing import Any

from langgraph_sdk import get_sync_client

from tests.e2e.conftest import Serve
from tests.e2e.speaking import say
from tests.stub_model import StubModel


def test_a_thread_that_is_made_again_is_readable_at_once(serve: Serve, model: StubModel) -> None:
    server = serve(PALIMPSEST_DEBOUNCE_SECONDS="120")
    with get_sync_client(url=server.url) as client:
        thread_id = client.threads.create()["thread_id"]
        client.runs.wait(thread_id, "chat", input=say("My name is Ada."))
    server.kill9()
    server.start()
    with get_sync_client(url=server.url) as client:
        client.threads.create(thread_id=thread_id, if_exists="do_nothing")
        state: Any = client.threads.get_state(thread_id)
        said = [message["content"] for message in state["values"]["messages"]]
        assert said == ["My name is Ada.", "You said: My name is Ada."]
        assert len(client.threads.get_history(thread_id, limit=100)) >= 4
