"""How a process gets an embedder, and when it has embedded all."""

import asyncio

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore

from palimpsest import Embedder, FactStore, MemoryService


def embedder(embeddings: Embeddings) -> Embedder:
    """Return what a process finds texts by their meaning with; a turn waits for it as long as a busy machine takes."""
    return Embedder("of tests", lambda: embeddings, query_seconds=60)


async def embedded(service: MemoryService, store: BaseStore, user: str) -> None:
    """Return once every text of a user has its vector."""
    await asyncio.wrap_future(service.recalling.making.ask(store, FactStore(store, user).owner))


async def indexed(service: MemoryService, store: BaseStore, user: str) -> None:
    """Return once the process recalls from all that is there now."""
    await asyncio.wrap_future(service.recalling.behind.ask(store, FactStore(store, user).owner))
