"""What outlives a process: a store, a saver, rows of threads and a clock; prepared once, and copied for each cell."""

import copy
import pickle
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import BaseStore, ListNamespacesOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from palimpsest import MemoryService, RunningSummary, open_checkpointer, open_postgres_store, open_store
from tests.fakes import Clock
from tests.laws.doors import NO_FOLDER, House
from tests.laws.interruptions import Tap, tapped

_MEMORY_DISK = Path("/dev/shm")
_PARTS = ("storage", "writes", "blobs")


@dataclass
class Snapshot:
    """A world at rest.

    Attributes:
        rows: Of the server's threads.
        ids: Of facts, by their words.
        seconds: Of the clock.
        saved: Parts of the saver, where it is in memory.
        items: Of the store, where it is no file, pickled.
        folder: Where the files are.
    """

    rows: dict[str, Any] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    seconds: float = Clock().seconds
    saved: dict[str, Any] = field(default_factory=dict)
    items: bytes = pickle.dumps([])
    folder: Path | None = None


class World:
    """What one deployment keeps, opened.

    Attributes:
        is_atomic: Whether a batch of its store is written whole or not at all.
    """

    def __init__(self, snapshot: Snapshot, *, is_atomic: bool = False) -> None:
        self.rows, self.ids, self.clock = dict(snapshot.rows), snapshot.ids, Clock(snapshot.seconds)
        self.is_atomic = is_atomic
        self.folder = NO_FOLDER
        self.store: BaseStore = InMemoryStore()
        self.saver: BaseCheckpointSaver[str] = _saver(snapshot.saved)
        self._services: list[MemoryService] = []

    @asynccontextmanager
    async def ending(self) -> AsyncIterator[None]:
        """End all processes with what is inside: what one that was killed has left is not written down by this one."""
        yield
        for service in self._services:
            service.close(0)

    def house(self, tap: Tap | None = None, folder: Path = NO_FOLDER) -> House:
        """Return a fresh process; what it asks of the store goes through the tap.

        Who names the folder has an erase leave no bytes in its files: that takes a process for each erase.
        """
        store = tapped(self.store, tap) if tap else self.store
        house = House(store, self.saver, self.rows, self.clock, folder)
        house.ids = self.ids
        self._services.append(house.service)
        return house

    async def fill(self, snapshot: Snapshot) -> None:
        """Have the store hold what the snapshot does, and nothing else."""
        if old := [op._replace(value=None) for op in await self.items()]:
            await self.store.abatch(old)
        if items := pickle.loads(snapshot.items):
            await self.store.abatch(items)

    async def restart(self) -> None:
        """Let the process end and another one open the same data."""

    async def snapshot(self) -> Snapshot:
        saved = {part: _copied(getattr(self.saver, part)) for part in _PARTS}
        return Snapshot(dict(self.rows), dict(self.ids), self.clock(), saved, pickle.dumps(await self.items()))

    async def items(self) -> list[PutOp]:
        (found,) = await self.store.abatch([ListNamespacesOp(limit=10_000)])
        namespaces: Any = found
        searched: Any = await self.store.abatch([SearchOp(each, limit=10_000) for each in namespaces])
        rows = {(item.namespace, item.key): item.value for each in searched for item in each}
        return [PutOp(tuple(place), key, value, index=False) for (place, key), value in rows.items()]

    async def text(self) -> str:
        """All that is kept, as text; nothing is asked of the world after this."""
        return repr([await self.items(), *(getattr(self.saver, part) for part in _PARTS)])


def _copied(kept: Any) -> Any:
    """Copy dictionaries, and those within: what a saver keeps in them is replaced, and never changed."""
    if not isinstance(kept, dict):
        return kept
    new = copy.copy(kept)
    new.update((key, _copied(value)) for key, value in kept.items())
    return new


class _ServersSaver(InMemorySaver):
    """Keeps nothing that tasks write after their thread was deleted: a server stops a run first, ours refuse it."""

    def put_writes(self, config: Any, *written: Any) -> None:
        at = config["configurable"]
        if at["checkpoint_id"] in self.storage[at["thread_id"]][at["checkpoint_ns"]]:
            super().put_writes(config, *written)


def _saver(saved: dict[str, Any]) -> InMemorySaver:
    saver = _ServersSaver(serde=JsonPlusSerializer(allowed_msgpack_modules=[RunningSummary]))
    for part, value in saved.items():
        getattr(saver, part).update(_copied(value))
    return saver


class FileWorld(World):
    """Our two SQLite files; the one of the checkpoints is opened only where threads are written or deleted."""

    def __init__(self, snapshot: Snapshot, folder: Path, *, with_threads: bool) -> None:
        super().__init__(snapshot, is_atomic=True)
        self.folder, self._open, self._with_threads = folder, AsyncExitStack(), with_threads

    async def begin(self) -> None:
        self.store = await self._open.enter_async_context(open_store(self.folder / "store.sqlite"))
        if self._with_threads:
            self.saver = await self._open.enter_async_context(open_checkpointer(self.folder / "checkpoints.sqlite"))

    async def close(self) -> None:
        await self._open.aclose()

    async def restart(self) -> None:
        await self.close()
        await self.begin()

    async def snapshot(self) -> Snapshot:
        await self.close()
        folder = _folder()
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Snapshot(dict(self.rows), dict(self.ids), self.clock(), folder=folder)

    async def text(self) -> str:
        """All rows, and the bytes of every other file."""
        await self.close()  # what a log still holds goes at the latest when the last process closes the file
        texts = []
        for path in sorted(self.folder.iterdir()):
            if path.suffix == ".sqlite":
                with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as file:
                    tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                    texts += [repr(file.execute(f"SELECT * FROM {name}").fetchall()) for name in tables]
            else:
                texts.append(path.read_bytes().decode("utf-8", "ignore"))
        return "".join(texts)

    async def bytes(self) -> str:
        """All bytes of all files, those that belong to no row any more included."""
        await self.close()
        return "".join(path.read_bytes().decode("utf-8", "ignore") for path in sorted(self.folder.iterdir()))


@cache
def root() -> Path:
    """Return where this process keeps files of worlds; who runs the matrix deletes it."""
    return Path(tempfile.mkdtemp(prefix="palimpsest-laws-", dir=_MEMORY_DISK if _MEMORY_DISK.is_dir() else None))


def _folder() -> Path:
    return Path(tempfile.mkdtemp(dir=root()))


@asynccontextmanager
async def in_memory(snapshot: Snapshot, **_: bool) -> AsyncIterator[World]:
    world = World(snapshot)
    await world.fill(snapshot)
    yield world


@asynccontextmanager
async def on_files(snapshot: Snapshot, *, with_threads: bool = True) -> AsyncIterator[FileWorld]:
    folder = _folder()
    if snapshot.folder:
        shutil.copytree(snapshot.folder, folder, dirs_exist_ok=True)
    world = FileWorld(snapshot, folder, with_threads=with_threads)
    await world.begin()
    try:
        yield world
    finally:
        await world.close()
        shutil.rmtree(folder)


@asynccontextmanager
async def on_stock_sqlite(snapshot: Snapshot, **_: bool) -> AsyncIterator[World]:
    world = World(snapshot)
    async with AsyncSqliteStore.from_conn_string(":memory:") as world.store:
        await world.fill(snapshot)
        yield world


@asynccontextmanager
async def on_postgres(snapshot: Snapshot, **_: bool) -> AsyncIterator[World]:
    world = World(snapshot, is_atomic=True)
    async with open_postgres_store(POSTGRES.get(), 4) as world.store:
        await world.fill(snapshot)
        yield world


POSTGRES: ContextVar[str] = ContextVar("where a Postgres with nothing else in it is")
NATIVE: dict[str, Callable[..., Any]] = {"memory": in_memory, "sqlite": on_files}
"""Kinds in which a world is prepared; others are given the items of one in memory."""
KINDS = {**NATIVE, "stock sqlite": on_stock_sqlite, "postgres": on_postgres}
ATOMIC = frozenset({"sqlite", "postgres"})
