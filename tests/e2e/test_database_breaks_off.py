"""A running server whose Postgres breaks off and comes back: clear errors, nothing lost, nothing twice."""

from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.archive_lines import document_of
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.e2e.waiting import eventually
from tests.limits import limits
from tests.postgres import Postgres
from tests.stub_model import StubModel

PATIENCE = 120.0
FIGS, PEARS = "I like figs.", "I like pears."
LEARNS = {FIGS: "Likes figs.", PEARS: "Likes pears."}


@pytest.fixture(scope="module")
def server(serve: Serve, postgres: Postgres) -> DevServer:
    return serve(
        PALIMPSEST_DATABASE_URI=postgres.database(),
        PALIMPSEST_DEBOUNCE_SECONDS="0.5",
        # A busy machine's first answers take seconds; a turn whose mode is not known by then is not learned.
        **limits(sweep_seconds=1, read_timeout_seconds=10, write_timeout_seconds=10),
    )


@pytest.fixture
def chat(server: DevServer) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=server.url) as client:
        yield client


def turn(client: SyncLangGraphClient, thread_id: str, text: str) -> list[str]:
    """Say something under an id of its own, as clients do; return the thread's texts."""
    message: Any = {"role": "user", "content": text, "id": str(uuid5(NAMESPACE_OID, text))}
    state: Any = client.runs.wait(thread_id, "chat", input={"messages": [message]})
    return [each["content"] for each in state["messages"]]


def is_learned_once(server: DevServer, text: str) -> bool:
    """Say whether nothing waits any more, and a text stands once in the facts and in the journal."""
    with httpx.Client(base_url=f"{server.url}/memory", timeout=60) as memory:
        if memory.get("/overview").raise_for_status().json()["pending"]:
            return False
        facts = [fact["content"] for fact in memory.get("/facts").raise_for_status().json()["facts"]]
        journal = str(document_of(memory.get("/export").raise_for_status().text)["journal"])
    return (facts.count(LEARNS[text]), journal.count(text)) == (1, 1)


def test_while_the_database_is_away_turns_and_the_memory_api_say_so(
    chat: SyncLangGraphClient, server: DevServer, postgres: Postgres, model: StubModel
) -> None:
    model.respond = Scripted(learns=LEARNS)
    thread_id = chat.threads.create()["thread_id"]
    assert turn(chat, thread_id, FIGS) == [FIGS, "Noted."]
    eventually(lambda: is_learned_once(server, FIGS), PATIENCE)

    postgres.break_off()
    with pytest.raises(Exception, match="DatabaseAway"):
        turn(chat, thread_id, PEARS)
    refused = httpx.get(f"{server.url}/memory/facts", timeout=PATIENCE)
    assert refused.status_code == 503
    assert "try again soon" in refused.json()["detail"]
    eventually(lambda: "is away: " in server.log)

    postgres.start()
    assert turn(chat, thread_id, PEARS) == [FIGS, "Noted.", PEARS, "Noted."]
    eventually(lambda: is_learned_once(server, PEARS), PATIENCE)
    assert is_learned_once(server, FIGS)
