"""Each fault of others that we work around is there without us, so that we learn when it is mended, and not with us."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from graphs.server.workarounds import lost_rows
from graphs.settings import Settings
from palimpsest import open_checkpointer
from tests.laws.server import ThreadServer

DELETES = """
import asyncio, os, sys
os.environ.update(LANGGRAPH_RUNTIME_EDITION="inmem", DATABASE_URI=":memory:", REDIS_URI="fake")
os.environ.update(MIGRATIONS_PATH="__inmem")
from types import SimpleNamespace
from uuid import uuid4
from langgraph_runtime_inmem import ops
from graphs.server.workarounds.wrong_row import delete_one_at_a_time

async def wait(thread_id, conn, run_id=None):
    await asyncio.sleep(0)

async def adas(*_):
    return {"owner": "ada"}

async def main():
    if "mended" in sys.argv:
        delete_one_at_a_time()
        delete_one_at_a_time()
    ops._delete_checkpoints_for_thread = wait
    ids = [uuid4() for _ in range(6)]
    rows = [{"thread_id": each, "metadata": {}} for each in ids]
    conn = SimpleNamespace(store={"threads": rows, "runs": [], "crons": []})
    await asyncio.gather(*(ops.Threads.delete(conn, each) for each in ids[:3]))
    print("all are there" if [row["thread_id"] for row in rows] == ids[3:] else "one is lost")
    ops.Threads.handle_event = adas
    rows.clear()
    try:
        await ops.Threads.delete(conn, ids[0])
    except Exception as error:
        print(getattr(error, "status_code", type(error).__name__))

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("mended", "said"),
    [("as it is", ["one is lost", "UnboundLocalError"]), ("mended", ["all are there", "404"])],
)
def test_deletions_at_once_take_no_other_threads_row_and_none_fails_where_no_thread_is(
    mended: str, said: list[str]
) -> None:
    pytest.importorskip("langgraph_runtime_inmem")
    done = subprocess.run([sys.executable, "-c", DELETES, mended], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-2:] == said, done.stderr


def test_a_state_after_an_input_that_is_no_message_can_be_read_as_history_alone() -> None:
    builder = StateGraph(MessagesState).add_node("answer", lambda _: {"messages": [("ai", "Hello.")]})
    graph: Any = builder.set_entry_point("answer").compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    graph.invoke({"messages": [("user", "Hi.")]}, config)
    with pytest.raises(ValueError, match="nobody"):
        graph.invoke({"messages": [{"role": "nobody", "content": "x"}]}, config)
    with pytest.raises(ValueError, match="nobody"):
        graph.get_state(config)
    (newest,) = graph.get_state_history(config, limit=1)
    assert [one.text for one in newest.values["messages"]] == ["Hi.", "Hello."]


class SavingLate(ThreadServer):
    """A server that has lost rows: threads whose values are there, and how many it was asked for."""

    def __init__(self, rows: dict[str, dict[str, Any]]) -> None:
        super().__init__(rows, InMemorySaver())
        self.valued, self.asked_for = list[str](), 0

    async def search(self, *, ids: Sequence[str] | None = None, **options: Any) -> list[dict[str, Any]]:
        self.asked_for += len(ids or ())
        return await super().search(ids=ids, **options)

    async def get_state(self, thread_id: str) -> Any:
        return self.rows[thread_id]["graph_id"]

    async def set_status(self, _: object, thread_id: UUID, state: str, error: None) -> None:
        assert (state, error) == ("chat", None)
        self.valued.append(str(thread_id))

    async def given_back(self, patch: pytest.MonkeyPatch, **settings: Any) -> None:
        patch.setattr(lost_rows, "get_client", self.client)
        patch.setitem(sys.modules, "langgraph_runtime_inmem.ops", SimpleNamespace(Threads=self))
        patch.setitem(sys.modules, "langgraph_runtime_inmem.database", SimpleNamespace(connect=nullcontext))
        await lost_rows.give_back(Settings(**settings))


async def begun(folder: Path, threads: Mapping[str, str]) -> None:
    """Have threads begun one after another, each by a user."""
    async with open_checkpointer(folder / "checkpoints.sqlite"):
        pass
    rows = [
        (thread_id, json.dumps({"graph_id": "chat", "langgraph_auth_user_id": user} if user else {"graph_id": "chat"}))
        for thread_id, user in threads.items()
    ]
    with closing(sqlite3.connect(folder / "checkpoints.sqlite")) as file, file:
        values = "(?, '', '1', 'json', '{}', CAST(? AS BLOB))"
        columns = "thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata"
        file.executemany(f"INSERT INTO checkpoints ({columns}) VALUES {values}", rows)


async def test_all_threads_that_were_begun_last_are_given_back_and_no_others_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [str(UUID(int=number)) for number in range(1, 701)]
    await begun(tmp_path, dict.fromkeys(ids, ""))
    server = SavingLate({each: {"graph_id": "chat"} for each in ids[:450]})
    await server.given_back(monkeypatch, data_dir=tmp_path, single_user=True)
    assert (sorted(server.rows), sorted(server.valued)) == (ids, ids[450:])
    assert server.asked_for == 400


async def test_a_row_that_was_saved_before_the_first_run_becomes_its_owners_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adas, bobs, known = (str(UUID(int=number)) for number in (1, 2, 3))
    await begun(tmp_path, {adas: "ada", bobs: "bob", known: "ada"})
    server = SavingLate(
        {
            adas: {"owner": "ada", "title": "Who I am"},
            bobs: {"owner": "eve"},
            known: {"owner": "ada", "graph_id": "other"},
        }
    )
    await server.given_back(monkeypatch, data_dir=tmp_path)
    assert server.valued == [adas]
    assert server.rows == {
        adas: {"owner": "ada", "title": "Who I am", "graph_id": "chat"},
        bobs: {"owner": "eve"},
        known: {"owner": "ada", "graph_id": "other"},
    }
