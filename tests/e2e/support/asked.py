"""A process that has turns and updates on a Postgres when it is told to, and says what became of them.

`python -m tests.e2e.support.asked DATABASE` reads a JSON object from each line: `{"say": …, "thread": …, "mode": …}`,
`{"drain": true}`, `{"erase": true}` or `{"receipts": true}`, and answers with one.
"""

import asyncio
import json
import sys
import time
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from graphs.chat import build_graph
from graphs.persistence.postgres_saver import open_postgres_checkpointer
from graphs.persistence.postgres_store import open_postgres_store
from graphs.settings import Settings
from graphs.turn.context import Context
from graphs.turn.state import InputState
from memory.config import MemoryConfig
from memory.control import read_epoch
from memory.effects import arun
from memory.erase import erase_user
from memory.namespaces import Owner
from memory.outbox.receipts import read_receipts
from tests.fakes import RecordingModel, learns
from tests.untriggered import Untriggered

LOCAL = Owner.of("local")


async def work(database: str) -> None:
    """Do what each line says until there is none."""
    chat, memory = RecordingModel(respond=lambda _: "Noted."), RecordingModel(respond=learns)
    # Updates come when told to, and a turn waits for memory as long as a slow machine takes.
    patient = MemoryConfig(
        debounce_seconds=3600,
        max_wait_seconds=3600,
        update_spacing_seconds=0,
        read_timeout_seconds=60,
        write_timeout_seconds=60,
    )
    settings = Settings(single_user=True, memory=patient, database_uri=database)
    service = Untriggered(settings, lambda _, purpose: memory if purpose == "memory" else chat)
    async with open_postgres_store(database, 3) as store, open_postgres_checkpointer(database, 3) as saver:
        graph = build_graph(service=service, tools=()).compile(checkpointer=saver, store=store)

        async def do(asked: dict[str, Any]) -> object:
            if "say" in asked:
                config: RunnableConfig = {"configurable": {"thread_id": asked["thread"]}}
                said = InputState(messages=[HumanMessage(asked["say"])])
                state = await graph.ainvoke(said, config, context=Context(memory_mode=asked["mode"]))
                return {"receipt": state["memory"]["receipt"], "prompt": repr(chat.prompts[-1])}
            if "drain" in asked:
                drained = await service.adrain(store, LOCAL)
                return [receipt.to_json() for receipt in drained.receipts]
            if "erase" in asked:
                return await arun(store, erase_user("local", time.time()))
            epoch = await arun(store, read_epoch(LOCAL))
            return [receipt.to_json() for receipt in await arun(store, read_receipts(LOCAL, epoch))]

        while line := await asyncio.to_thread(sys.stdin.readline):
            sys.stdout.write(json.dumps(await do(json.loads(line))) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
