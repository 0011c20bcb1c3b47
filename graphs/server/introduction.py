"""What a server does to its folder at its start: it says where it listens, and closes what is kept there."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from graphs.address import ROWS, close_to_others, leave, take_away
from graphs.model_failures import WithoutTraceback
from graphs.settings import Settings
from memory.effects import tolerated

logger = logging.getLogger(__name__)

_WORKER = logging.getLogger("langgraph_api.worker")  # writes down why a run failed
_without_traceback = WithoutTraceback()
_TRACES = logging.getLogger("langsmith.client")


def _once(record: logging.LogRecord) -> bool:
    """Let the first failure to send traces pass, in short: with nobody there each turn says it at length."""
    record.msg, record.args = f"traces are not sent, which is said once: {record.getMessage()[:200]}", ()
    _TRACES.setLevel(logging.CRITICAL)
    return True


_TRACES.addFilter(_once)


@asynccontextmanager
async def introduced(settings: Settings) -> AsyncIterator[None]:
    """While the block runs, the folder knows the server's address, and only its owner reads it."""
    _WORKER.addFilter(_without_traceback)
    if not settings.own_url:
        yield
        return
    with tolerated(logger, "commands in this folder do not find this server by themselves"):
        await asyncio.to_thread(close_to_others, [ROWS])
        await asyncio.to_thread(leave, settings.data_dir, settings.own_url)
    try:
        yield
    finally:
        with tolerated(logger, "the address of this server stays written down"):
            await asyncio.to_thread(take_away, settings.data_dir)
