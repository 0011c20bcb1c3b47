"""Exports that are in memory as a whole, taken in as the server takes them in piece by piece."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from langgraph.store.base import BaseStore

from memory.archive.importing import Imported, aimport
from memory.config import MemoryConfig
from memory.namespaces import Owner
from tests.archive_lines import lines_of


def import_document(
    store: BaseStore, owner: Owner, document: Mapping[str, object], config: MemoryConfig, seconds: float
) -> Imported:
    """Take in a document."""
    return import_lines(store, owner, lines_of(document).encode(), config, seconds)


def import_lines(store: BaseStore, owner: Owner, given: bytes, config: MemoryConfig, seconds: float) -> Imported:
    """Take in what an export holds, and raise what `aimport` raises."""

    async def lines() -> AsyncIterator[bytes]:
        for line in given.splitlines():
            yield line

    with ThreadPoolExecutor(1) as pool:  # the test may have an event loop that runs
        return pool.submit(asyncio.run, aimport(store, owner, config, seconds, lines())).result()
