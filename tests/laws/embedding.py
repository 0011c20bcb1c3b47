"""How a process gets an embedder, and when it has embedded all: of this `palimpsest` has no public names yet."""

import asyncio

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore

from graphs.embedders import Embedder
from memory.namespaces import Owner
from palimpsest import MemoryService


def embedder(embeddings: Embeddings) -> Embedder:
    """Return what a process finds texts by their meaning with; a turn waits for it as long as a busy machine takes."""
    return Embedder("of tests", lambda: embeddings, query_seconds=60)


async def embedded(service: MemoryService, store: BaseStore, user: str) -> None:
    """Return once every text of a user has its vector."""
    making = service.vectors.make(store, Owner.of(user))
    assert making
    await asyncio.wrap_future(making)


async def indexed(service: MemoryService, store: BaseStore, user: str) -> None:
    """Return once the process recalls from all that is there now."""
    following = service.recalling.follow(store, Owner.of(user))
    if following:
        await asyncio.wrap_future(following)
