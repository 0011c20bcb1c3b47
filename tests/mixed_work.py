"""What one of several processes on one folder does: turns, reads, deletions, store writes, all at once."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import GetOp, Op, PutOp, SearchOp

from graphs.persistence import empty_logs
from graphs.persistence.sqlite_saver import DurableSqliteSaver, open_checkpointer
from graphs.persistence.sqlite_store import DurableSqliteStore, open_store
from memory.facts.store import FactStore

THREADS = 4


class Workers:
    """Several tasks of one process; what fails in them is counted by name."""

    def __init__(self, folder: Path, process: int, saver: DurableSqliteSaver, store: DurableSqliteStore) -> None:
        self._folder, self._process, self._saver, self._store = folder, process, saver, store
        self._graph = _echo(saver)
        self.done: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    async def work(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        jobs = (self.turn, self.turn, self.read, self.read, self.remember, self.delete, self.search, self.forget)
        await asyncio.gather(*(self._repeat(job, number, until) for number, job in enumerate(jobs)))

    async def _repeat(self, job: Callable[[str, int], Awaitable[object]], number: int, until: float) -> None:
        n = 0
        while n < 3 or time.monotonic() < until:
            n += 1
            try:
                await job(f"process{self._process}-{number % 2}-{n % THREADS}", n)
                self.done[job.__name__] += 1
            except Exception as error:  # whatever a caller would see
                self.errors[f"{job.__name__}: {type(error).__name__}: {error}"] += 1

    async def turn(self, thread: str, n: int) -> None:
        await self._graph.ainvoke({"messages": [HumanMessage(f"turn {n} " + "word " * 200)]}, _on(thread))

    async def read(self, thread: str, n: int) -> None:
        await self._graph.aget_state(_on(thread))
        async for found in self._graph.aget_state_history(_on(thread), limit=20):
            assert found.values

    async def remember(self, thread: str, n: int) -> None:
        facts = FactStore(self._store, f"user{n % 3}")
        fact = await facts.acreate(f"Likes thing{self._process}-{n}", "preference", 0.9)
        assert await facts.aget(fact.id)
        if n % 2:
            await facts.adelete(fact.id)

    async def search(self, thread: str, n: int) -> None:
        namespace = ("shelf", thread)
        batch: list[Op] = [GetOp(namespace, "counter"), SearchOp(("shelf",)), PutOp(namespace, "counter", {"n": n})]
        await self._store.abatch(batch)
        await self._store.asearch(("shelf",))

    async def delete(self, thread: str, n: int) -> None:
        await self._saver.adelete_thread(thread)

    async def forget(self, thread: str, n: int) -> None:
        await self._store.adelete(("shelf", thread), "counter")
        await empty_logs(self._folder)
        await asyncio.sleep(0.2)


def work(folder: Path, process: int, seconds: float) -> tuple[Counter[str], Counter[str]]:
    """Work for so many seconds and return how much was done, and what failed."""

    async def run() -> Workers:
        async with (
            open_checkpointer(folder / "checkpoints.sqlite") as saver,
            open_store(folder / "store.sqlite") as store,
        ):
            workers = Workers(folder, process, saver, store)
            await workers.work(seconds)
            return workers

    workers = asyncio.run(run())
    return workers.done, workers.errors


def _on(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread}}


def _echo(saver: DurableSqliteSaver) -> CompiledStateGraph[Any, Any, Any, Any]:
    def answer(state: MessagesState) -> MessagesState:
        return {"messages": [AIMessage(f"re: {state['messages'][-1].text}")]}

    return StateGraph(MessagesState).add_node(answer).set_entry_point("answer").compile(checkpointer=saver)
