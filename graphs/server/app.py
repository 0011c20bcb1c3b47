"""The app that `graphs/http.py` makes: it drains memory at start, sweeps while the server runs, and drains at stop."""

import asyncio
import contextlib
import importlib
import logging
import warnings
from collections.abc import AsyncIterator
from functools import partial

from langgraph.store.base import BaseStore
from prometheus_client import REGISTRY
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from graphs.data_folder import FILES
from graphs.deployment import service_of_process
from graphs.persistence import checkpoints_of_server, leave_no_bytes
from graphs.server.api import MemoryApi, service_of
from graphs.server.assistants import AssistantContexts
from graphs.server.bodies import WholeBodies
from graphs.server.data_folder import DataIsThere
from graphs.server.introduction import introduced
from graphs.server.old_threads import OldThreads
from graphs.server.page import PageDoor, load_page, routes
from graphs.server.this_machine import ClosedDebugRoutes, PrivateNetworkPreflight, ThisMachineOnly
from graphs.server.thread_doors import DeletedThreads, DeletionDoor, RecreatedThreads, is_there
from graphs.server.workarounds.lost_rows import TemporaryThreads, give_back
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.deadlines import StoreAway
from memory.effects import in_daemon_thread, tolerated

logger = logging.getLogger(__name__)

_LISTING_SECONDS = 20.0


@contextlib.asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Look for what an earlier process left behind, then sweep until the server stops; then drain, within bounds.

    It serves once threads have their rows again: a client that came before would be told that its thread is not there.
    """
    service, stopping, are_listed, store = service_of_process(), asyncio.Event(), asyncio.Event(), await _store()
    app.state.service = service_of(service, store)
    if service.embedder:
        service.embedder.start()  # so that the first turns need not go without it
    in_daemon_thread(partial(importlib.import_module, "graphs.provider_models"), "palimpsest-import")  # nor wait
    sweeper = asyncio.create_task(_sweep(service, store, stopping, are_listed))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LISTING_SECONDS):
            await are_listed.wait()
    REGISTRY.register(service.metrics.registry)  # the server's `/metrics` is made of it
    try:
        async with introduced(service.settings):
            yield
    finally:
        REGISTRY.unregister(service.metrics.registry)
        stopping.set()
        # As `close` does, a sweep is not waited for while a store is away.
        seconds = 0.0 if service.stores.any_away() else service.settings.memory.drain_seconds
        drained = asyncio.wait({sweeper}, timeout=seconds)
        # The queue's threads use the store through this loop: blocking it here would leave them waiting for it.
        await asyncio.gather(asyncio.to_thread(service.close), drained)
        sweeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sweeper


async def _store() -> BaseStore:
    # `langgraph.config.get_store()` does not do: inside an app it is for ever the store that the server had before it
    # opened the one that `store.path` names (langgraph-api 0.16.7).
    found: BaseStore = await importlib.import_module("langgraph_api.store").get_store()
    return found


async def _deleted_threads() -> DeletedThreads:
    service = service_of_process()
    servers = checkpoints_of_server(service.settings)
    drop = servers.delete if servers else None
    empty = partial(leave_no_bytes, service.settings.data_dir)
    return DeletedThreads(await _store(), service.saver_of_server(), service.clock, service.forget, drop, empty)


async def _sweep(service: MemoryService, store: BaseStore, stopping: asyncio.Event, are_listed: asyncio.Event) -> None:
    """Work off what is due at start and then at intervals. No run does it: a run would take a worker from a user."""
    old_threads, deleted = OldThreads(service.settings.thread_days, service.clock), await _deleted_threads()
    if service.settings.own_url:
        with tolerated(logger, "the rows of threads that a crash took are not given back"):
            await deleted.finish(is_there)  # before: a thread that is being deleted must not come back
            await give_back(service.settings)
    are_listed.set()
    is_looked_for = False
    while service.settings.memory.enabled and not stopping.is_set():
        # The next one finds what this one could not.
        with tolerated(logger, "the sweep of pending updates failed"), contextlib.suppress(StoreAway):
            if service.stores.is_away(store, "write"):
                raise StoreAway("write")  # each try would leave a call behind that hangs
            await deleted.finish(is_there)
            await service.awrite_left(store)
            if not is_looked_for:
                with tolerated(logger, "could not look for turns that were not written down"):
                    # Only here, and beside the event loop: LangChain's agents come with it, for which no start waits.
                    unwritten = await asyncio.to_thread(importlib.import_module, "graphs.server.unwritten")
                    await unwritten.write_down_left(service, store)
                    is_looked_for = True
            await service.asweep(store)
            await service.arollup(store, None)
            await service.aclean(store)
            await old_threads.drop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(service.settings.memory.sweep_seconds):
                await stopping.wait()


class ServerApp(MemoryApi):
    """The app of a LangGraph server, which puts its own layers behind those that this one is made with."""

    def build_middleware_stack(self) -> ASGIApp:
        """Put the server's CORS layer before those of ours that say what is wrong: else no page can read it."""
        outside: tuple[object, ...] = (ThisMachineOnly, PrivateNetworkPreflight, CORSMiddleware)
        placed = [each for kind in outside for each in self.user_middleware if each.cls is kind]
        self.user_middleware = [*placed, *(each for each in self.user_middleware if each not in placed)]
        return super().build_middleware_stack()


def make_app(settings: Settings) -> MemoryApi:
    """Return the app for these settings."""
    is_in_files = not (settings.database_uri or settings.keeps_its_own)
    # For every route of the server, the outermost first: a machine that may not ask learns nothing from those below,
    # nor may a page of another site read why it is refused.
    guards = [
        Middleware(ThisMachineOnly, settings=settings),
        Middleware(PrivateNetworkPreflight),
        Middleware(DataIsThere, files=[settings.data_dir / name for name in FILES] if is_in_files else []),
        Middleware(WholeBodies),
        Middleware(PageDoor, settings=settings),
        Middleware(ClosedDebugRoutes, single_user=settings.single_user),
        Middleware(AssistantContexts),
        Middleware(RecreatedThreads),
        Middleware(TemporaryThreads),
        Middleware(DeletionDoor, deleted=_deleted_threads),
    ]
    load_page()
    # The server asks for it in stateless runs, too: nothing that anybody here could mend.
    warnings.filterwarnings("ignore", "`durability` has no effect")
    app = ServerApp(routes, middleware=guards, lifespan=lifespan)
    app.exception_handlers[NotImplementedError] = _refused  # such as an item of the store that is to expire
    return app


async def _refused(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 422)
