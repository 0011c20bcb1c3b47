"""Each fault of others that we work around is there without us, so that we learn when it is mended, and not with us."""

import subprocess
import sys
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

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

asyncio.run(main())
"""


@pytest.mark.parametrize(("mended", "said"), [("as it is", "one is lost"), ("mended", "all are there")])
def test_deletions_at_once_take_no_other_threads_row(mended: str, said: str) -> None:
    pytest.importorskip("langgraph_runtime_inmem")
    done = subprocess.run([sys.executable, "-c", DELETES, mended], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == [said], done.stderr


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
