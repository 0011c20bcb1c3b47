"""Servers over one Postgres: what is said to any of them in a conversation begins its quiet time anew."""

import time
from dataclasses import dataclass, field

import pytest
from langgraph_sdk import get_sync_client

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.langhost.cluster import Cluster
from tests.e2e.scripted import is_chat, is_extraction
from tests.e2e.speaking import say
from tests.e2e.test_server_processes import PATIENCE, Things, all_running, facts, pending
from tests.e2e.waiting import eventually
from tests.limits import limits
from tests.stub_model import ChatRequest, Reply, StubModel

QUIET = 30
"""Seconds; a turn must take less, also on a busy machine."""


@dataclass
class Timed(Things):
    """Notes when it was asked to chat, and when to learn."""

    chats: list[float] = field(default_factory=list)
    extractions: list[float] = field(default_factory=list)

    def __call__(self, request: ChatRequest) -> Reply | str:
        if is_extraction(request):
            self.extractions.append(time.monotonic())
        elif is_chat(request):
            self.chats.append(time.monotonic())
        return super().__call__(request)


@pytest.fixture(scope="module")
def server(cluster: Cluster, serve: Serve) -> DevServer:
    # A sweep takes what waits longer than the longest wait: none may, on a busy machine.
    return serve(PALIMPSEST_DEBOUNCE_SECONDS=str(QUIET), **limits(max_wait_seconds=20 * QUIET))


@pytest.fixture
def timed(model: StubModel) -> Timed:
    model.respond = timed = Timed()
    return timed


def talk(url: str, text: str, thread_id: str | None = None, user: str = "local") -> str:
    with get_sync_client(url=url) as client:
        thread = client.threads.create(thread_id=thread_id, if_exists="do_nothing")["thread_id"]
        client.runs.wait(thread, "chat", input=say(text), config={"configurable": {"user_id": user}})
    return thread


@pytest.fixture
def processes(cluster: Cluster, server: DevServer, model: StubModel) -> list[str]:
    """The address of each process, each of which has looked for what it found at its start."""
    urls = [url for _, url in all_running(cluster, server)]
    model.respond = warmed = Timed()
    talk(urls[0], "I like thing0.", user="somebody else")
    eventually(lambda: warmed.extractions, PATIENCE)
    model.clear()
    return urls


def test_what_is_said_to_several_processes_is_learned_once_all_are_quiet(
    server: DevServer, processes: list[str], timed: Timed
) -> None:
    thread_id = None
    for number in range(6):
        thread_id = talk(processes[number % len(processes)], f"I like thing{number}.", thread_id)
        assert timed.extractions == []
    eventually(lambda: pending(server.url) == 0, PATIENCE)
    assert sorted(facts(server.url)) == [f"Likes thing{number}" for number in range(6)]
    (learned_at,) = timed.extractions
    assert learned_at - timed.chats[-1] >= QUIET
