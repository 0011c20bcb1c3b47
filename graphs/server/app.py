"""The app that `graphs/http.py` makes: it drains memory at start, sweeps while the server runs, and drains at stop."""

import asyncio
import contextlib
import importlib
import logging
import warnings
from collections.abc import AsyncIterator
from functools import partial

from langgraph.store.base import BaseStore
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from graphs.persistence import leave_no_bytes
from graphs.process.address import ROWS, close_to_others, leave, take_away
from graphs.process.data_folder import FILES
from graphs.process.deployment import service_of_process
from graphs.process.failures import ModelUnavailable, WithoutTraceback
from graphs.process.models import load_chat_model
from graphs.process.service import MemoryService
from graphs.server.api import MemoryApi, service_of
from graphs.server.asgi import Guarded
from graphs.server.assistants import AssistantContexts
from graphs.server.bodies import WholeBodies
from graphs.server.data_folder import data_is_there
from graphs.server.deletions import DeletionDoor, Deletions, drop_old_threads, is_there
from graphs.server.page import load_page, page_door, routes
from graphs.server.this_machine import this_machine_only
from graphs.server.workarounds.lost_rows import give_back
from graphs.server.workarounds.named_checkpointer import delete_at_server
from graphs.settings import Settings
from graphs.turn.stores import StoreAway
from memory.door import in_daemon_thread, tolerated

logger = logging.getLogger(__name__)

_LISTING_SECONDS = 20.0
_DAY = 86_400.0
_WITHOUT_TRACEBACK = WithoutTraceback()
_TRACES = logging.getLogger("langsmith.client")


@contextlib.asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Look for what an earlier process left behind, then sweep until the server stops; then drain, within bounds.

    It serves once threads have their rows again: a client that came before would be told that its thread is not there.
    """
    service, stopping, store = service_of_process(), asyncio.Event(), await _store()
    app.state.service = service_of(service, store)
    if service.embedder:
        service.embedder.start()  # so that the first turns need not go without it
    looking = in_daemon_thread(partial(look_for_model, service.settings), "palimpsest-import")  # nor wait
    listing = asyncio.create_task(_list_threads(service.settings))
    await asyncio.wait({listing}, timeout=_LISTING_SECONDS)
    sweeper = asyncio.create_task(_sweep(service, store, stopping, listing))
    # The server logs why a run failed, and at each turn that traces are not sent.
    logging.getLogger("langgraph_api.worker").addFilter(_WITHOUT_TRACEBACK)
    _TRACES.addFilter(_once)
    try:
        if service.settings.own_url:
            with tolerated(logger, "commands in this folder do not find this server by themselves"):
                await asyncio.to_thread(close_to_others, [ROWS])
                await asyncio.to_thread(leave, service.settings.data_dir, service.settings.own_url)
        yield
    finally:
        if service.settings.own_url:
            with tolerated(logger, "the address of this server stays written down"):
                await asyncio.to_thread(take_away, service.settings.data_dir, service.settings.own_url)
        stopping.set()
        # As `close` does, a sweep is not waited for while a store is away.
        seconds = 0.0 if service.stores.any_away() else service.settings.memory.drain_seconds
        drained = asyncio.wait({sweeper}, timeout=seconds)
        # The queue's threads use the store through this loop: blocking it here would leave them waiting for it.
        # A process that ends in the middle of imports is aborted: what is not Python in them bears no thread that ends.
        imported = asyncio.wait({asyncio.wrap_future(looking)}, timeout=_LISTING_SECONDS)
        await asyncio.gather(asyncio.to_thread(service.close), drained, imported)
        sweeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sweeper


def _once(record: logging.LogRecord) -> bool:
    record.msg, record.args = f"traces are not sent, which is said once: {record.getMessage()[:200]}", ()
    _TRACES.setLevel(logging.CRITICAL)
    return True


def look_for_model(settings: Settings) -> None:
    """Import what asks the deployment's model, and log why it cannot be asked: only the first turn would say so."""
    try:
        load_chat_model("", settings, purpose="chat")
    except ModelUnavailable as error:
        logger.warning("a turn that names no other model will fail: %s", error)


async def _store() -> BaseStore:
    # `langgraph.config.get_store()` does not do: inside an app it is for ever the store that the server had before it
    # opened the one that `store.path` names (langgraph-api 0.16.7).
    found: BaseStore = await importlib.import_module("langgraph_api.store").get_store()
    return found


async def _deletions() -> Deletions:
    service = service_of_process()
    saver = service.saver_of_server()

    async def clear(thread_id: str, is_left: bool) -> None:
        service.forget(thread_id)
        if saver is not None:
            await saver.adelete_thread(thread_id)
        if is_left and service.settings.keeps_its_own:
            await delete_at_server(thread_id)
        await leave_no_bytes(service.settings.data_dir)

    return Deletions(await _store(), service.clock, clear)


async def _list_threads(settings: Settings) -> None:
    if settings.own_url and not settings.database_uri:  # else its rows are in a database, or another server has them
        with tolerated(logger, "the rows of threads that a crash took are not given back"):
            # Deletions first: a deleted thread must not come back.
            await (await _deletions()).finish(is_there)
            await give_back(settings)


async def _sweep(
    service: MemoryService, store: BaseStore, stopping: asyncio.Event, listing: asyncio.Task[None]
) -> None:
    """Work off what is due at start and then at intervals. No run does it: a run would take a worker from a user."""
    settings, deletions, is_looked_for, dropped_at = service.settings, await _deletions(), False, -_DAY
    await listing
    while settings.memory.enabled and not stopping.is_set():
        # The next one finds what this one could not.
        with tolerated(logger, "the sweep of pending updates failed"), contextlib.suppress(StoreAway):
            if service.stores.is_away(store, "write"):
                raise StoreAway("write")  # each try would leave a hanging call behind
            await deletions.finish(is_there)
            if not is_looked_for:
                with tolerated(logger, "could not look for turns that were not written down"):
                    # Only here, and beside the event loop: LangChain's agents come with it, for which no start waits.
                    unwritten = await asyncio.to_thread(importlib.import_module, "graphs.server.unwritten")
                    await unwritten.write_down_left(service, store)
                    is_looked_for = True
            await service.asweep(store)
            await service.arollup(store)
            await service.aclean(store)
            now = service.clock()
            if settings.thread_days and not 0 <= now - dropped_at < _DAY:
                dropped_at = now
                with tolerated(logger, "old threads could not be looked for"):
                    await drop_old_threads(settings.thread_days, now)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(settings.memory.sweep_seconds):
                await stopping.wait()


class ServerApp(MemoryApi):
    """The app of a LangGraph server, which puts its own layers behind those that this one is made with."""

    def build_middleware_stack(self) -> ASGIApp:
        """Put the server's CORS layer before those of ours that say what is wrong: else no page can read it.

        It is told to let pages of the network ask this machine, as Studio's do in Chrome.
        """
        kind: object = CORSMiddleware
        for cors in [each for each in self.user_middleware if each.cls is kind]:
            cors.kwargs["allow_private_network"] = True
            self.user_middleware.remove(cors)
            self.user_middleware.insert(1, cors)  # behind the layer that answers this machine only
        return super().build_middleware_stack()


def make_app(settings: Settings) -> MemoryApi:
    """Return the app for these settings."""
    is_in_files = not (settings.database_uri or settings.keeps_its_own)
    closed = ("/internal/",) if settings.single_user else ("/internal/", "/deploy/")  # Studio may still deploy

    async def closed_debug_routes(asked: HTTPConnection) -> ASGIApp | None:
        # With the slash, as `/internals` is not below `/internal`.
        return JSONResponse({"detail": "Not Found"}, 404) if f"{asked.scope['path']}/".startswith(closed) else None

    # For every route of the server, the outermost first: a machine that may not ask learns nothing from those below,
    # nor may a page of another site read why it is refused.
    layers = [
        Middleware(Guarded, guard=this_machine_only(settings)),
        Middleware(Guarded, guard=data_is_there([settings.data_dir / name for name in FILES] if is_in_files else [])),
        Middleware(WholeBodies),
        Middleware(Guarded, guard=page_door(settings)),
        Middleware(Guarded, guard=closed_debug_routes),
        Middleware(AssistantContexts),
        Middleware(DeletionDoor, deletions=_deletions),
    ]
    load_page()
    # The server sets it in stateless runs, too; nobody here can change that.
    warnings.filterwarnings("ignore", "`durability` has no effect")
    app = ServerApp(routes, middleware=layers, lifespan=lifespan)
    app.exception_handlers[NotImplementedError] = _refused  # such as an item of the store that is to expire
    return app


async def _refused(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 422)
