"""The HTTP app that the server mounts: it drains memory at start, sweeps while it runs, and drains at stop."""

import asyncio
import contextlib
import logging
import warnings
from collections.abc import AsyncIterator

from langgraph_sdk import get_client
from starlette.applications import Starlette
from starlette.middleware import Middleware

from graphs.background import DUE
from graphs.delayed_runs import MEMORY_GRAPH
from graphs.service import MemoryService, service_of_process
from graphs.settings import Settings
from graphs.web import memory_routes, service_of_server
from graphs.web.debug_routes import ClosedDebugRoutes
from graphs.web.this_machine import ThisMachineOnly
from memory.tolerance import tolerated

logger = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    """Look for what an earlier process left behind, then sweep until the server stops; then drain, within bounds."""
    # A sweep has no thread, so no checkpointer; the server passes its own durability all the same.
    warnings.filterwarnings("ignore", message="`durability` has no effect", category=UserWarning)
    service = service_of_process()
    sweeper = asyncio.create_task(_sweep(service))
    try:
        yield
    finally:
        sweeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sweeper
        # The queue's threads use the store through this loop: blocking it here would leave them waiting for it.
        await asyncio.to_thread(service.close)


async def _sweep(service: MemoryService) -> None:
    """Run the memory graph at start and then at intervals; it has the server's store, which the app has not."""
    client = get_client()
    while service.settings.memory.enabled:
        with tolerated(logger, "the sweep of pending updates failed"):  # the next one finds what this one could not
            await client.runs.wait(None, MEMORY_GRAPH, input={"drain": DUE}, on_completion="delete")
            await client.runs.wait(None, MEMORY_GRAPH, input={"rollup": DUE}, on_completion="delete")
        await asyncio.sleep(service.settings.memory.sweep_seconds)


def make_app(settings: Settings) -> Starlette:
    """Return the app for these settings."""
    guards = [
        Middleware(ThisMachineOnly, settings=settings),
        Middleware(ClosedDebugRoutes, single_user=settings.single_user),
    ]
    return Starlette(routes=memory_routes(service_of_server(settings)), middleware=guards, lifespan=lifespan)


app = make_app(Settings.from_environment())
