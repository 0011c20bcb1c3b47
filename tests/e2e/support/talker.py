"""A process that chats with the real graph on SQLite or Postgres and says on its standard output what became of it.

`python -m tests.e2e.support.talker '{"folder": …}'`; see `Orders`. It is there to be killed.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from graphs.chat import build_graph
from graphs.middleware import PalimpsestMemory, PalimpsestState, PalimpsestSummary
from graphs.persistence.sqlite_saver import open_checkpointer
from graphs.persistence.sqlite_store import open_store
from graphs.process.models import Purpose
from graphs.process.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from graphs.turn.state import InputState
from memory.config import MemoryConfig
from memory.door import arun
from memory.namespaces import Owner
from memory.updates.outbox import read_entries
from tests.fakes import RecordingModel, learns

TURNS_A_THREAD = 8
# So small that every thread is summarized, and its oldest messages are written down a second time.
CONTEXT = Context(max_tokens=700, max_summary_tokens=32, reply_tokens=16, memory_tokens=0)
LONG = "It was a long day and there is much to tell about it. " * 4


@dataclass(frozen=True)
class Orders:
    """What the process is told.

    Attributes:
        folder: Where its SQLite files are.
        first: Number of its first turn; turn n says "I like thing<n>.".
        turns: How many turns it has.
        drain: Whether it applies all that is pending before the first turn.
        thinks: How many seconds the memory model takes.
        debounce: Quiet period, in seconds.
        stays: How many seconds it stays after its last turn.
        grace: How many seconds stopping may take at most; on a slow machine a drain takes several.
        max_facts: How many facts may be held.
        database: The Postgres that takes the files' place, if any.
        door: `graph`, or through the middleware: `agent` or `deep agent`; with ` sync` behind it, without `await`.
    """

    folder: str
    first: int = 0
    turns: int = 0
    drain: bool = False
    thinks: float = 0.0
    debounce: float = 0.05
    stays: float = 0.0
    grace: float = 60.0
    max_facts: int = 2000
    database: str = ""
    door: str = "graph"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[BaseStore, BaseCheckpointSaver[str]]]:
        """Open where memory and threads are kept."""
        if self.database:
            from graphs.persistence.postgres_saver import open_postgres_checkpointer
            from graphs.persistence.postgres_store import open_postgres_store

            async with (
                open_postgres_store(self.database, 4) as kept,
                open_postgres_checkpointer(self.database, 4) as put,
            ):
                yield kept, put
            return
        folder = Path(self.folder)
        async with (
            open_store(folder / "store.sqlite") as store,
            open_checkpointer(folder / "checkpoints.sqlite") as saver,
        ):
            yield store, saver

    def memory(self) -> MemoryConfig:
        return MemoryConfig(
            debounce_seconds=self.debounce,
            max_wait_seconds=max(1.0, self.debounce),
            update_spacing_seconds=0.01,
            drain_seconds=self.grace,
            max_facts=self.max_facts,
            # The killed process' leases must be void because it is dead, not because they ran out.
            lease_seconds=600,
            # A turn that a slow machine makes late is written down by a later one; the last one of all has none.
            read_timeout_seconds=60,
            write_timeout_seconds=60,
        )

    def models(self) -> Callable[[str, Purpose], RecordingModel]:
        def answer(messages: list[BaseMessage]) -> str:
            if "Messages:" not in messages[-1].text:
                return "They talked about what they like."
            time.sleep(self.thinks)
            return learns(messages)

        chat = RecordingModel(respond=lambda _: "Noted. " + LONG)
        memory = RecordingModel(respond=answer)
        return lambda _, purpose: chat if purpose == "chat" else memory

    def chat(self, service: MemoryService, **options: Any) -> Any:
        """Return what is talked to."""
        if self.door == "graph":
            return build_graph(service=service).compile(**options)
        memory = PalimpsestMemory(service=service, memory_tokens=0, tools=())
        model = service.load_model("", "memory")
        summary = PalimpsestSummary(model, trigger=("tokens", 600), max_summary_tokens=32, memory=memory)
        chat = service.load_model("", "chat")
        if self.door.startswith("deep"):
            from deepagents import create_deep_agent  # in an environment of its own

            return create_deep_agent(chat, middleware=[memory, summary], **options)
        return create_agent(chat, state_schema=PalimpsestState, middleware=[memory, summary], **options)

    def kept(self, values: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the receipt and the running summary of a thread's state."""
        if self.door == "graph":
            return values.get("memory", {}).get("receipt", {}), values.get("context", {}).get("running_summary")
        memory = values.get("palimpsest_memory", {}).get("PalimpsestMemory", {})
        return memory.get("receipt", {}), values.get("palimpsest_summary", {}).get("running_summary")


async def talk(orders: Orders) -> None:
    """Carry the orders out; stop in time when told to."""
    settings = Settings(single_user=True, memory=orders.memory(), database_uri=orders.database)
    service = MemoryService(settings, orders.models())
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    async with orders.opened() as (store, saver):
        try:
            if orders.drain:
                while await arun(store, read_entries(Owner.of("local"))):
                    await service.asweep(store)
                    await asyncio.sleep(0.05)  # another process may have the user
                say("drained")
            graph = orders.chat(service, checkpointer=saver, store=store)
            for number in range(orders.first, orders.first + orders.turns):
                config: RunnableConfig = {"configurable": {"thread_id": f"T{number // TURNS_A_THREAD}"}}
                asked = InputState(messages=[HumanMessage(f"I like thing{number}. {LONG}")])
                if orders.door.endswith("sync"):
                    await asyncio.to_thread(graph.invoke, asked, config)
                else:
                    await graph.ainvoke(asked, config, context=CONTEXT if orders.door == "graph" else None)
                receipt, _ = orders.kept((await graph.aget_state(config)).values)
                say(f"written {number}" if receipt["queued"] else f"forgotten {number}")
            say("talked")
            await asyncio.sleep(orders.stays)
        finally:
            await asyncio.to_thread(service.close)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits that it is ignored
    try:
        asyncio.run(talk(Orders(**json.loads(sys.argv[1]))))
    except (KeyboardInterrupt, asyncio.CancelledError):
        say("stopped")
