"""The memory API in this process, on the files that `palimpsest dev` keeps in a folder: no rule is written twice."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Self, cast

import httpx
from starlette.types import ASGIApp

from graphs.cli.shell import Refused
from graphs.persistence.sqlite_store import open_store
from graphs.process.data_folder import STORE, unfit
from graphs.server.api import MemoryApi, Service
from graphs.server.api.guard import RateLimit
from graphs.server.threads import ServerThreads
from graphs.settings import Settings, under_langgraph_dev

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient

_MAKE_FILES = ("/memory/import", "/memory/sources/")


class LocalFiles(httpx.BaseTransport):
    """Carries requests to the API on the local files, which are open while one is answered.

    Reading and writing is safe beside a running server: several processes may use the files. Erasing is not, as
    another process may hold words in its own memory: no command asks for it here.

    Args:
        environ: The variables; `PALIMPSEST_DATA_DIR` names the folder.

    Raises:
        Refused: If the files are not those of the one user of a machine of one's own.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        try:
            self.settings = Settings.from_environment(under_langgraph_dev(environ, authenticates=False))
        except ValueError as error:
            raise Refused(f"{error}.") from error
        if not self.settings.single_user:
            raise Refused(
                "--local is for the one user of a machine of one's own, and PALIMPSEST_SINGLE_USER=false says that "
                "users log in here: ask the server, with --token"
            )
        if self.settings.database_uri:
            raise Refused("--local reads files, and DATABASE_URI says that memory is in a database: ask the server")
        self.folder, self.api = self.settings.data_dir, MemoryApi()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Have a request answered, if it may be on these files."""
        path, asked = self.folder / STORE, request.url.path
        if not path.exists() and not asked.startswith(_MAKE_FILES):
            raise Refused(
                f"there is no memory in {path}: run this in the folder of your `palimpsest dev`, or set "
                "PALIMPSEST_DATA_DIR"
            )
        if why := unfit(self.folder):
            raise Refused(why)
        return asyncio.run(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        async with open_store(self.folder / STORE) as store:
            self.api.state.service = Service(
                settings=self.settings,
                store=store,
                threads=ServerThreads(True, lambda: cast("LangGraphClient", _NoServer())),
                limit=RateLimit(1_000_000_000),
                forget=lambda _: None,
                wake=lambda _owner, _thread: None,  # a server, or the next one, finds what waits
            )
            return await ask_app(self.api, request)


async def ask_app(app: ASGIApp, request: httpx.Request) -> httpx.Response:
    """Have an app answer the request of a synchronous client, whose body it reads in pieces."""

    async def pieces() -> AsyncIterator[bytes]:
        for piece in cast("httpx.SyncByteStream", request.stream):
            yield piece

    asked = httpx.Request(request.method, request.url, headers=request.headers, content=pieces())
    answer = await httpx.ASGITransport(app).handle_async_request(asked)
    return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())


class _NoServer:
    """What asks a server for threads or crons finds none: threads of files are known by their checkpoints."""

    async def search(self, **_: object) -> list[object]:
        """Find nothing."""
        return []

    @property
    def threads(self) -> Self:
        """No threads."""
        return self

    crons = threads
