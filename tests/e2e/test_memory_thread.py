"""The thread on which a server with several workers updates a user's memory: the user may follow it, nobody else."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError, PermissionDeniedError

from graphs.delayed_runs import memory_thread_id
from graphs.events import MemoryUpdated
from memory.namespaces import Owner
from tests.e2e.dev_server import DevServer
from tests.e2e.guarded_server import api, guarded_server, headers_of, sdk
from tests.e2e.scripted import Scripted
from tests.e2e.speaking import opens_when_joined, say
from tests.e2e.waiting import PATIENCE, eventually
from tests.limits import limits
from tests.stub_model import StubModel

LEARNS = {"moved to Bergen": "User lives in Bergen.", "green tent": "User has a tent."}
QUICK = {"PALIMPSEST_DEBOUNCE_SECONDS": "1", "PALIMPSEST_TRIGGER": "run", **limits(sweep_seconds=1)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, stub: StubModel) -> Iterator[DevServer]:
    # The sweep takes what is older than the longest wait: the run must be sooner, or it finds nothing to tell of.
    with guarded_server(tmp_path_factory.mktemp("guarded"), stub.url, **QUICK) as server:
        yield server


def client_of(server: DevServer, user: str) -> LangGraphClient:
    return get_client(url=server.url, headers=headers_of(user))


async def queued(client: LangGraphClient, text: str) -> str:
    """Say something and return the thread that the turn named for its update."""
    thread_id = (await client.threads.create())["thread_id"]
    async for part in client.runs.stream(thread_id, "chat", input=say(text), stream_mode="custom"):
        if part.data.get("name") == "memory.queued":
            return str(part.data["payload"]["thread_id"])
    raise AssertionError("nothing was queued")


async def heard(client: LangGraphClient, thread_id: str) -> list[Any]:
    """What a client hears on a thread until its memory was updated; nothing if it may not listen."""
    with suppress(NotFoundError):
        async for part in await client.threads.join_stream(thread_id):
            if part.event == "custom":
                return [part.data]
    return []


async def test_S5_who_spoke_hears_the_update_and_nobody_else_does(server: DevServer, model: StubModel) -> None:
    model.respond = Scripted(learns=LEARNS, extraction_gate=(gate := threading.Event()))
    async with client_of(server, "alice") as alice, client_of(server, "bob") as bob, asyncio.timeout(PATIENCE):
        opens_when_joined(alice, gate)
        thread_id = await queued(alice, "I moved to Bergen.")
        (updated,), overheard = await asyncio.gather(heard(alice, thread_id), heard(bob, thread_id))
        assert updated["name"] == "memory.updated"
        assert len(MemoryUpdated.model_validate(updated["payload"]).created) == 1
        assert overheard == []
        assert thread_id in [each["thread_id"] for each in await alice.threads.search(limit=100)]
        assert await bob.threads.search(limit=100) == []
        with pytest.raises(NotFoundError):
            await bob.threads.get(thread_id)
        # The run tells of the update before it ends, and its state is there once it has.
        (run,) = await alice.runs.list(thread_id)
        await alice.runs.join(thread_id, run["run_id"])
        values: Any = (await alice.threads.get_state(thread_id))["values"]
        assert values["updates"] == 1


async def test_even_the_user_may_only_look(server: DevServer, model: StubModel) -> None:
    model.respond = Scripted(learns=LEARNS, extraction_gate=(gate := threading.Event()))
    async with client_of(server, "anna") as client, asyncio.timeout(PATIENCE):
        opens_when_joined(client, gate)
        thread_id = await queued(client, "I moved to Bergen.")
        assert await heard(client, thread_id)
    with sdk(server, "anna") as anna:
        run = anna.runs.list(thread_id)[0]
        attempts: list[Callable[[], object]] = [
            lambda: anna.threads.delete(thread_id),
            lambda: anna.threads.update(thread_id, metadata={"owner": "anna"}),
            lambda: anna.threads.update_state(thread_id, {"drain": "due"}),
            lambda: anna.runs.create(thread_id, "chat", input=say("Hello")),
            lambda: anna.runs.cancel(thread_id, run["run_id"]),
            lambda: anna.runs.delete(thread_id, run["run_id"]),
        ]
        for attempt in attempts:
            with pytest.raises((NotFoundError, PermissionDeniedError)):
                attempt()


def test_nobody_is_let_in_by_naming_them(server: DevServer) -> None:
    with sdk(server, "mallory") as mallory, sdk(server, "carol") as carol:
        mallory.threads.create(metadata={"reader": "carol"})
        thread_id = mallory.threads.create()["thread_id"]
        mallory.threads.update(thread_id, metadata={"reader": "carol"})
        assert carol.threads.search(limit=100) == []


def test_a_thread_that_another_made_under_its_id_gets_no_run_and_costs_no_fact(
    tmp_path: Path, model: StubModel
) -> None:
    model.respond = Scripted(learns=LEARNS)
    thread_id = memory_thread_id(Owner.of("victor"))
    # There is no run that the sweep could be too soon for.
    server = guarded_server(tmp_path, model.url, **QUICK | limits(sweep_seconds=1, max_wait_seconds=1))
    with server, sdk(server, "mallory") as mallory, sdk(server, "victor") as victor, api(server, "victor") as memory:
        mallory.threads.create(thread_id=thread_id)
        victor.runs.wait(victor.threads.create()["thread_id"], "chat", input=say("My tent is a green tent."))
        facts = eventually(lambda: memory.get("/facts").json()["facts"])
        assert [fact["content"] for fact in facts] == ["User has a tent."]
        assert mallory.runs.list(thread_id) == []


def test_erasing_everything_erases_the_memory_thread_too(server: DevServer, model: StubModel) -> None:
    model.respond = Scripted(learns=LEARNS)
    with sdk(server, "erna") as erna, api(server, "erna") as memory:
        erna.runs.wait(erna.threads.create()["thread_id"], "chat", input=say("I moved to Bergen."))
        eventually(lambda: memory.get("/facts").json()["facts"])
        assert len(erna.threads.search(limit=100)) == 2
        assert memory.post("/erase/everything", json={"erase": "everything"}).status_code == 200
        assert erna.threads.search(limit=100) == []
