"""CPU of an agent's turn with the middleware, beside the same agent without it, and with langmem's tools.

    python -m benchmarks.agent

Each agent answers in threads of `TURNS` turns, on an in-memory store with 50 facts and a model that answers at once.
Agents take turns with each other, thread by thread, so that a machine that gets busy slows all of them. langmem's
tools are told to the model, which does not call them: that is the least that an agent with them does, and it is shown
nothing of what is known. Updates in the background are not part of it.
"""

import asyncio
import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from graphs.middleware import PalimpsestMemory, PalimpsestState, PalimpsestSummary
from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from palimpsest import FactStore, RunningSummary
from tests.fakes import RecordingModel

TURNS, ROUNDS, FACTS = 20, 9, 50
PLAIN = "create_agent"


def service() -> MemoryService:
    settings = Settings(memory=MemoryConfig(debounce_seconds=3600, max_wait_seconds=7200))
    return MemoryService(settings, lambda *_: RecordingModel())


def store() -> InMemoryStore:
    filled = InMemoryStore()
    facts = FactStore(filled, "ada")
    for number in range(FACTS):
        facts.create(f"User has been to harbour number {number} and liked the boats there", "knowledge", 0.9)
    return filled


def agent(**options: Any) -> Any:
    saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=[RunningSummary]))
    model = RecordingModel(respond=lambda _: "Noted, that is good to know. " * 3)
    return create_agent(model, system_prompt="Be brief.", checkpointer=saver, **options)


def with_memory(**choices: Any) -> Any:
    memory = PalimpsestMemory(user="ada", service=service(), **choices)
    return agent(state_schema=PalimpsestState, middleware=[memory], store=store())


def with_summaries() -> Any:
    memory = PalimpsestMemory(user="ada", service=service(), tools=())
    model = RecordingModel(respond=lambda _: "They talked.")
    summary = PalimpsestSummary(model, trigger=("tokens", 1000), memory=memory)
    return agent(state_schema=PalimpsestState, middleware=[memory, summary], store=store())


class DoesNothing(AgentMiddleware[AgentState[Any], Any, Any]):
    """Has the hooks of `PalimpsestMemory`, each of which is a node and costs a checkpoint."""

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        return None

    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        return None

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        return None

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        return None

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        return None

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        return None


def with_langmem() -> Any:
    from langmem import create_manage_memory_tool, create_search_memory_tool

    namespace = ("memories", "ada")
    tools = [create_manage_memory_tool(namespace), create_search_memory_tool(namespace)]
    return agent(tools=tools, store=store())


def agents() -> dict[str, Callable[[], Any]]:
    nothing = "create_agent, a middleware of three hooks that do nothing"
    peers: dict[str, Callable[[], Any]] = {PLAIN: agent, nothing: lambda: agent(middleware=[DoesNothing()])}
    if importlib.util.find_spec("langmem"):
        peers["create_agent, langmem's two tools"] = with_langmem
    return peers | {
        "create_agent, PalimpsestMemory(tools=())": lambda: with_memory(tools=()),
        "create_agent, PalimpsestMemory()": with_memory,
        "create_agent, PalimpsestMemory(tools=()) and PalimpsestSummary": with_summaries,
    }


async def talk(made: Any, thread: str, *, awaited: bool) -> float:
    """Return the milliseconds of CPU of one turn, on average of a thread."""
    config: Any = {"configurable": {"thread_id": thread}}
    began = time.process_time()
    for number in range(TURNS):
        said: Any = {"messages": [HumanMessage(f"{number}: I went to the harbour again, and it rained all day.")]}
        if awaited:
            await made.ainvoke(said, config)
        else:
            made.invoke(said, config)
    return 1000 * (time.process_time() - began) / TURNS


async def measured(*, awaited: bool) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in agents()}
    for number in range(ROUNDS + 1):
        for name, make in agents().items():
            # A new store each time: on a server, what a thread left behind is learned and gone before the next.
            taken = await talk(make(), str(number), awaited=awaited)
            if number:  # the first warms up
                times[name].append(taken)
    return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    warnings.simplefilter("ignore")
    for awaited in (True, False):
        print(f"{'ainvoke' if awaited else 'invoke'}: CPU of a turn, median of {ROUNDS} threads of {TURNS} turns")
        found = asyncio.run(measured(awaited=awaited))
        for name, milliseconds in found.items():
            print(f"  {milliseconds:6.2f} ms  {milliseconds / found[PLAIN]:4.1f} x  {name}")


if __name__ == "__main__":
    main()
