"""The memory API in this process, on the files that `palimpsest dev` keeps in a folder: no rule is written twice."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NoReturn

import httpx

from graphs.cli.shell import Refused
from graphs.data_folder import CHECKPOINTS, STORE, unfit
from graphs.identity import LOCAL_USER
from graphs.persistence import leave_no_bytes
from graphs.persistence.sqlite_saver import CheckpointFile
from graphs.persistence.sqlite_store import open_store
from graphs.server.api import MemoryApi, Service
from graphs.server.api.guard import RateLimit, RefusedRequest
from graphs.server.threads import Json, ServerCrons, ServerThreads
from graphs.settings import Settings, under_langgraph_dev

Files = Literal["there", "made", "alone"]
"""What a command needs of the files: that they are there, are made if not, or are open in no other process."""


@asynccontextmanager
async def open_files(environ: Mapping[str, str], files: Files) -> AsyncIterator[tuple[httpx.AsyncBaseTransport, str]]:
    """Open the API on the local files; yield what carries requests to it, and the folder's name.

    The files are opened with the first request: a command that asks nothing makes none.

    Reading and writing is safe beside a running server: several processes may use the files. Erasing is not, as
    another process may hold words in its own memory.

    Args:
        environ: The variables; `PALIMPSEST_DATA_DIR` names the folder.
        files: What is needed of the files.

    Raises:
        Refused: If they cannot be used so.
    """
    try:
        settings = Settings.from_environment(under_langgraph_dev(environ, authenticates=False))
    except ValueError as error:
        raise Refused(f"{error}.") from error
    if not settings.single_user:
        raise Refused(
            "--local is for the one user of a machine of one's own, and PALIMPSEST_SINGLE_USER=false says that users "
            "log in here: ask the server, with --token"
        )
    if settings.database_uri:
        raise Refused("--local reads files, and DATABASE_URI says that memory is in a database: ask the server")
    path = settings.data_dir / STORE
    if files != "made" and not path.exists():
        raise Refused(
            f"there is no memory in {path}: run this in the folder of your `palimpsest dev`, or set PALIMPSEST_DATA_DIR"
        )
    if why := await asyncio.to_thread(unfit, settings.data_dir):
        raise Refused(why)
    if files == "alone" and await asyncio.to_thread(_is_open_elsewhere, path):
        raise Refused(f"another process has {path} open, a server perhaps: stop it, or ask it (without --local)")
    async with AsyncExitStack() as opened:
        yield _WhenAsked(lambda: opened.enter_async_context(_api_on(settings))), str(settings.data_dir)


@dataclass(slots=True)
class _WhenAsked(httpx.AsyncBaseTransport):
    """Opens what carries requests when the first one comes."""

    open: Callable[[], Awaitable[httpx.AsyncBaseTransport]]
    opened: httpx.AsyncBaseTransport | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Hand a request on."""
        self.opened = self.opened or await self.open()
        return await self.opened.handle_async_request(request)


@asynccontextmanager
async def _api_on(settings: Settings) -> AsyncIterator[httpx.AsyncBaseTransport]:
    """Open the files of a folder, made where they are not there, and yield what carries requests to the API on them."""
    async with open_store(settings.data_dir / STORE) as store:
        checkpoints = CheckpointFile(settings.data_dir / CHECKPOINTS)
        api = MemoryApi()
        api.state.service = Service(
            settings=settings,
            store=store,
            threads=_FileThreads(checkpoints),
            crons=_NoCrons(True, _no_server),
            checkpoints=checkpoints,
            empty_logs=partial(leave_no_bytes, settings.data_dir),
            limit=RateLimit(1_000_000_000),
            forget=lambda _: None,
            wake=lambda _owner, _thread: None,  # a server, or the next one, finds what waits
        )
        yield httpx.ASGITransport(api)


def _is_open_elsewhere(path: Path) -> bool:
    """Say whether another connection has a database file open."""
    there = f"{path.absolute().as_uri()}?mode=rw"
    with closing(sqlite3.connect(there, uri=True, timeout=1.0, isolation_level=None)) as connection:
        try:
            # In WAL mode whoever has the file open shares a lock on it, beside which the exclusive one is refused.
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            return True
    return False


def _no_server() -> NoReturn:
    raise RefusedRequest(409, "only the server has this in its files, in the rows of its threads: start it, and ask it")


class _FileThreads(ServerThreads):
    """The threads as their checkpoints tell of them. What only a server knows of them, their rows, is not here.

    Args:
        checkpoints: Knows which threads there are.
    """

    def __init__(self, checkpoints: CheckpointFile) -> None:
        super().__init__(True, _no_server)
        self._checkpoints = checkpoints

    async def all_of(self, _user_id: str) -> AsyncIterator[str]:
        """Yield the ids of the threads."""
        for thread_id in await self._checkpoints.threads_of(["", LOCAL_USER]):
            yield thread_id


class _NoCrons(ServerCrons):
    """The crons as the files tell of them: only a server knows of any."""

    async def all_of(self, _user_id: str) -> AsyncIterator[tuple[str, Json]]:
        """Yield nothing."""
        return
        yield  # makes it a generator
