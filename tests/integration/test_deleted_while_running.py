"""A thread is deleted while a run is going on in it: nothing of the run stays on disk, and the id can be used again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph

from graphs.persistence.durable_saver import KEPT_SECONDS
from graphs.persistence.sqlite_saver import DurableSqliteSaver, open_checkpointer

Meanwhile = Callable[[], Awaitable[object]]
THREAD: RunnableConfig = {"configurable": {"thread_id": "thread"}}


@pytest.fixture
async def saver(tmp_path: Path) -> AsyncIterator[DurableSqliteSaver]:
    async with open_checkpointer(tmp_path / "checkpoints.sqlite") as saver:
        yield saver


def two_steps(
    saver: DurableSqliteSaver, meanwhile: list[Meanwhile], *, nested: bool = False
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """A graph in whose first step something else happens."""

    async def first(state: Any) -> Any:
        while meanwhile:
            await meanwhile.pop()()
        return {"messages": [AIMessage(f"re: {state['messages'][-1].text}")]}

    async def second(state: Any) -> Any:
        return {"messages": [AIMessage("done")]}

    inner = (
        StateGraph(MessagesState).add_node(first).add_node(second).set_entry_point("first").add_edge("first", "second")
    )
    if not nested:
        return inner.compile(checkpointer=saver)
    outer = StateGraph(MessagesState).add_node("inner", inner.compile(checkpointer=True)).add_node(second)
    return outer.set_entry_point("inner").add_edge("inner", "second").compile(checkpointer=saver)


async def say(graph: CompiledStateGraph[Any, Any, Any, Any], text: str, **options: Any) -> list[str]:
    state = await graph.ainvoke({"messages": [HumanMessage(text)]}, THREAD, **options)
    return [message.text for message in state["messages"]]


async def rows(saver: DurableSqliteSaver, table: str) -> int:
    await saver.adelete_for_runs([])  # comes after the deletions that are under way
    async with saver.conn.execute(f"SELECT COUNT(*) FROM {table}") as cursor:
        row = await cursor.fetchone()
    return int(row[0]) if row else -1


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("durability", "turns_before"),
    [("sync", 0), ("sync", 2), ("async", 0), ("async", 2), ("exit", 2)],  # a first run saved at exit descends from none
)
async def test_nothing_of_a_run_stays_whose_thread_was_deleted(
    saver: DurableSqliteSaver, durability: Literal["sync", "async", "exit"], turns_before: int, nested: bool
) -> None:
    meanwhile: list[Meanwhile] = []
    graph = two_steps(saver, meanwhile, nested=nested)
    for _ in range(turns_before):
        await say(graph, "hello", durability=durability)
    meanwhile.append(lambda: saver.adelete_thread("thread"))
    assert (await say(graph, "my secret is xyzzy", durability=durability))[-1] == "done"
    assert [await rows(saver, table) for table in ("checkpoints", "writes")] == [0, 0]


async def test_a_thread_made_anew_under_the_id_lives_beside_a_run_of_the_deleted_one(saver: DurableSqliteSaver) -> None:
    meanwhile: list[Meanwhile] = []
    graph = two_steps(saver, meanwhile)
    await say(graph, "one")

    async def make_anew() -> None:
        await saver.adelete_thread("thread")
        assert await say(graph, "two") == ["two", "re: two", "done"]

    meanwhile.append(make_anew)
    await say(graph, "of the deleted one")
    assert await say(graph, "three") == ["two", "re: two", "done", "three", "re: three", "done"]


async def test_what_was_written_before_its_dead_checkpoint_goes_with_it(saver: DurableSqliteSaver) -> None:
    begun = await saver.aput({"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}, empty_checkpoint(), {}, {})
    await saver.adelete_thread("thread")
    late = empty_checkpoint()
    of_late: RunnableConfig = {
        "configurable": {"thread_id": "thread", "checkpoint_ns": "", "checkpoint_id": late["id"]}
    }
    waiting = asyncio.create_task(saver.aput_writes(of_late, [("messages", "xyzzy")], "early"))
    await asyncio.sleep(0.01)
    assert (await saver.aput(begun, late, {}, {}))["configurable"]["checkpoint_id"] == late["id"]
    await waiting
    await saver.aput_writes(of_late, [("messages", "xyzzy")], "task")
    assert await rows(saver, "writes") == 0


async def test_what_a_task_writes_waits_for_the_first_checkpoint_of_its_thread(saver: DurableSqliteSaver) -> None:
    first = empty_checkpoint()
    of_first: RunnableConfig = {
        "configurable": {"thread_id": "thread", "checkpoint_ns": "", "checkpoint_id": first["id"]}
    }
    waiting = asyncio.create_task(saver.aput_writes(of_first, [("messages", "xyzzy")], "task"))
    await asyncio.sleep(0.01)
    assert await rows(saver, "writes") == 0
    await saver.aput({"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}, first, {}, {})
    await waiting
    assert await rows(saver, "writes") == 1


async def test_what_is_remembered_of_deleted_threads_is_forgotten_after_a_week(saver: DurableSqliteSaver) -> None:
    graph = two_steps(saver, [])
    await say(graph, "one")
    await saver.adelete_thread("thread")
    assert await rows(saver, "palimpsest_dead_checkpoints") > 0
    await saver.conn.execute("UPDATE palimpsest_dead_checkpoints SET at = at - ?", (KEPT_SECONDS + 1,))
    await saver.adelete_thread("another")
    assert await rows(saver, "palimpsest_dead_checkpoints") == 0
