"""Checkpointer and store on Postgres; a file beside the server says where that is."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.store.base import BaseStore

from tests.postgres import open_async

DATABASE = Path("postgres.uri").read_text()


@asynccontextmanager
async def checkpointer() -> AsyncIterator[AsyncPostgresSaver]:
    async with AsyncPostgresSaver.from_conn_string(DATABASE) as saver:
        await saver.setup()
        yield saver


@asynccontextmanager
async def store() -> AsyncIterator[BaseStore]:
    async with open_async(DATABASE) as store:
        yield store
