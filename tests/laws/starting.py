"""What a server does at its start, before its routes of threads, and at a locked file, and no public name does."""

from collections.abc import Container

import pytest
from langgraph.store.base import BaseStore
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from graphs.persistence import connection
from graphs.server.assistants import AssistantContexts
from graphs.server.bodies import WholeBodies
from graphs.server.deletions import DeletionDoor, Deletions, by_retention
from graphs.server.unwritten import write_down_left
from palimpsest import MemoryService
from tests.fakes import Clock


async def look_back(service: MemoryService, store: BaseStore) -> int:
    """Write down what states name as unwritten, as a server does at its start; return how many turns.

    It reads two threads at a time: three are enough to see that none behind the first page is left out.
    """
    return await write_down_left(service, store, page=2)


def deletions_of(app: ASGIApp, store: BaseStore, clock: Clock) -> ASGIApp:
    """Return what stands before a server's routes of threads."""

    async def deletions() -> Deletions:
        return Deletions(store, clock, _nothing_else)

    return DeletionDoor(app, deletions=deletions)


def reading_bodies(between: Middleware, seconds: float) -> list[Middleware]:
    """Return the layers of a server that wait so long for a body's next piece, and read one, with a layer between."""
    return [Middleware(WholeBodies, seconds=seconds), between, Middleware(AssistantContexts)]


async def _nothing_else(_thread_id: str, _is_left: bool) -> None:
    """There is nothing else of a thread."""


async def finish_deletions(store: BaseStore, clock: Clock, rows: Container[str]) -> None:
    """Carry out what an earlier process was asked for, as a server with these threads does at its start."""

    async def is_there(thread_id: str) -> bool:
        return thread_id in rows

    await Deletions(store, clock, _nothing_else).finish(is_there)


def deleting_by_age() -> None:
    """Let all that the task deletes from here on go because it is old."""
    by_retention.set(True)


def locked_files_wait(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Choose how long one waits for a file that another program has locked."""
    monkeypatch.setattr(connection, "BUSY_SECONDS", seconds)
