"""Whatever saver and store a server has: who deletes a thread deletes what memory learned from it, and nobody else."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import NotFoundError

from tests.e2e.dev_server import DevServer
from tests.e2e.guarded_server import api, sdk
from tests.e2e.scripted import Scripted
from tests.e2e.speaking import say
from tests.e2e.waiting import eventually
from tests.postgres import running_postgres
from tests.stories.serving import PROJECT, SECRET
from tests.stub_model import StubModel

FIGS, PLUMS, PEARS = "User likes figs.", "User likes plums.", "User likes pears."
STOCK_SAVER = {"checkpointer": {"path": "tests.e2e.support.stock.checkpointer"}, "store": {}}
POSTGRES = {name: {"path": f"tests.e2e.support.on_postgres.{name}"} for name in ("checkpointer", "store")}
OURS = {name: {"path": f"graphs.persistence.{name}"} for name in ("checkpointer", "store")}


@pytest.fixture(
    params=[{}, STOCK_SAVER, POSTGRES, OURS],
    ids=["server's own saver", "stock saver, server's own store", "stock on Postgres", "ours on Postgres"],
)
def server(tmp_path: Path, stub: StubModel, request: pytest.FixtureRequest) -> Iterator[DevServer]:
    stub.respond = Scripted(learns={"like figs": FIGS, "like plums": PLUMS, "like pears": PEARS})
    shipped = json.loads((PROJECT / "langgraph.prod.json").read_text())
    config = tmp_path / "langgraph.json"
    config.write_text(json.dumps({**shipped, **request.param}))
    model = {"OPENAI_BASE_URL": stub.url, "OPENAI_API_KEY": "stub"}
    variables = {"PALIMPSEST_AUTH_SECRET": SECRET, "PALIMPSEST_DEBOUNCE_SECONDS": "0.2", **model}
    with ExitStack() as running:
        if request.param in (POSTGRES, OURS):
            required = bool(request.config.getoption("--postgres"))
            postgres = running.enter_context(running_postgres(required=required))
            database = postgres.database()
            (tmp_path / "postgres.uri").write_text(database)
            # Not in the stock case: a server of `langgraph dev` has its own value for the variable without prefix.
            variables |= {"PALIMPSEST_DATABASE_URI": database} if request.param is OURS else {}
        yield running.enter_context(DevServer(tmp_path, config=config, environment=variables))


def facts(memory: httpx.Client) -> list[str]:
    return sorted(fact["content"] for fact in memory.get("/facts").json()["facts"])


def tell(client: SyncLangGraphClient, text: str, assistant: str = "chat") -> str:
    thread_id = str(client.threads.create()["thread_id"])
    client.runs.wait(thread_id, assistant, input=say(text))
    return thread_id


def test_a_thread_is_forgotten_when_its_owner_deletes_it_and_only_then(server: DevServer) -> None:
    with sdk(server, "ada") as ada, sdk(server, "eve") as eve, api(server, "ada") as memory:
        figs = tell(ada, "I like figs.")
        ada.runs.wait(None, "chat", input=say("I like plums."))  # its temporary thread goes, what it says stays
        assistant = ada.assistants.create("chat")
        tell(ada, "I like pears.", assistant["assistant_id"])
        eventually(lambda: facts(memory) == [FIGS, PEARS, PLUMS] and memory.get("/overview").json()["pending"] == 0)

        with pytest.raises(NotFoundError):
            eve.threads.delete(figs)
        assert facts(memory) == [FIGS, PEARS, PLUMS]
        ada.threads.delete(figs)
        assert facts(memory) == [PEARS, PLUMS]
        ada.assistants.delete(assistant["assistant_id"], delete_threads=True)
        assert facts(memory) == [PLUMS]
