"""What the server's `/metrics` shows of memory: what this process counted, and what waits in the store.

A scrape is answered at once, on the event loop, with no look at the store: with what was found after the scrape before.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from langgraph.store.base import BaseStore
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from graphs.metrics import away_metric, backlog_metrics
from graphs.service import MemoryService
from memory.effects import arun, tolerated
from memory.outbox.backlog import Backlog, read_backlog

logger = logging.getLogger(__name__)

_FRESH_SECONDS = 15.0
_LONGEST_SECONDS = 20.0


class Scraped(Collector):
    """The metrics of a server's memory.

    What waits is read after a scrape, in the background, at most every 15 seconds and never while a store is away. A
    server that nobody scrapes never reads it, but for once at its start.

    Args:
        service: The process's memory work.
        store: Where updates wait.
        loop: The server's event loop, on which the store is asked.
    """

    def __init__(self, service: MemoryService, store: BaseStore, loop: asyncio.AbstractEventLoop) -> None:
        self._service, self._store, self._loop = service, store, loop
        self._backlog: Backlog | None = None
        self._looked = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield every metric; of what waits, what is known, and have it looked at again."""
        yield from self._service.accounts.metrics.registry.collect()
        yield away_metric(self._service.stores.away())
        yield from backlog_metrics(self._backlog, self._service.clock())
        # A scrape may be answered on another thread.
        self._loop.call_soon_threadsafe(self._look_again)

    def _look_again(self) -> None:
        is_looking = self._looking is not None and not self._looking.done()
        if is_looking or self._loop.time() - self._looked < _FRESH_SECONDS or self._service.stores.any_away():
            return
        self._looked = self._loop.time()
        self._looking = self._loop.create_task(self._look())

    async def _look(self) -> None:
        with tolerated(logger, "what waits could not be counted"):  # the next scrape tries again
            async with asyncio.timeout(_LONGEST_SECONDS):
                self._backlog = await arun(self._store, read_backlog())

    def stop(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()


@contextmanager
def scraped(service: MemoryService, store: BaseStore, registry: CollectorRegistry = REGISTRY) -> Iterator[Scraped]:
    """Show memory's metrics in the registry that the server's `/metrics` is made of, as long as this is entered."""
    collector = Scraped(service, store, asyncio.get_running_loop())
    registry.register(collector)  # which collects once, to know the names
    try:
        yield collector
    finally:
        registry.unregister(collector)
        collector.stop()
