"""A running server whose Postgres breaks off and comes back: clear errors, nothing lost, nothing twice."""

import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.archive_lines import document_of
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted, is_chat, is_extraction
from tests.e2e.waiting import eventually
from tests.limits import limits
from tests.postgres import Postgres
from tests.stub_model import ChatRequest, Reply, StubModel

PATIENCE = 120.0
FIGS, PEARS, PLUMS, TOPAZ = "I like figs.", "I like pears.", "I like plums.", "I keep a topaz."
LEARNS = {FIGS: "Likes figs.", PEARS: "Likes pears.", PLUMS: "Likes plums.", TOPAZ: "Keeps a topaz."}


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


class Breaking:
    """A model before whose first answer of this kind the database breaks off."""

    def __init__(self, postgres: Postgres, before: Callable[[ChatRequest], bool]) -> None:
        self._postgres, self._before = postgres, before
        self._answers, self._left = Scripted(learns=LEARNS), [1]
        self._broken = threading.Event()

    def __call__(self, request: ChatRequest) -> Reply | str:
        if self._before(request) and self._left:
            self._left.pop()
            self._postgres.break_off()
            self._broken.set()
        return self._answers(request)

    def mend(self) -> None:
        """Start the database again once it has broken off: a model's request is seen before that."""
        assert self._broken.wait(PATIENCE)
        self._postgres.start()


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


def test_a_turn_whose_database_breaks_off_under_it_can_be_said_again(
    chat: SyncLangGraphClient, server: DevServer, postgres: Postgres, model: StubModel
) -> None:
    model.respond = breaking = Breaking(postgres, is_chat)
    thread_id = chat.threads.create()["thread_id"]
    with pytest.raises(Exception, match="DatabaseAway"):
        turn(chat, thread_id, PLUMS)
    breaking.mend()

    assert turn(chat, thread_id, PLUMS) == [PLUMS, "Noted."]
    eventually(lambda: is_learned_once(server, PLUMS), PATIENCE)


def test_an_update_whose_database_breaks_off_under_it_goes_on_when_it_is_back(
    chat: SyncLangGraphClient, server: DevServer, postgres: Postgres, model: StubModel
) -> None:
    model.respond = breaking = Breaking(postgres, is_extraction)
    turn(chat, chat.threads.create()["thread_id"], TOPAZ)
    breaking.mend()

    eventually(lambda: is_learned_once(server, TOPAZ), PATIENCE)
