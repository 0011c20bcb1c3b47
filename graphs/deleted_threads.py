"""A thread that a person deletes takes along what memory learned from it, whatever saver and store a server has."""

import logging
from collections.abc import Awaitable, Callable

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from memory.erase import aerase_thread
from memory.storage import arun
from memory.tolerance import tolerated
from memory.updates import deletions
from memory.updates.deletions import Deletion

logger = logging.getLogger(__name__)


class DeletedThreads:
    """Carries deletions out: recorded first, so that a later start finishes what this process cannot.

    Args:
        store: Where memory is kept.
        saver: Our own saver, if the server has it: its deletions return before they are on disk.
        clock: Returns seconds since the epoch.
    """

    def __init__(self, store: BaseStore, saver: BaseCheckpointSaver[str] | None, clock: Callable[[], float]) -> None:
        self._store, self._saver, self._clock = store, saver, clock

    async def ask(self, thread_id: str) -> Deletion | None:
        """Record the request of somebody who may delete the thread; `None` if memory fails, which stops nobody."""
        with tolerated(logger, "what came from thread %s will not be erased", thread_id, level=logging.ERROR):
            return await arun(self._store, deletions.ask(thread_id, self._clock()))
        return None

    async def refuse(self, asked: Deletion) -> None:
        """Forget a request: the thread lives."""
        with tolerated(logger, "a refused deletion stays recorded"):  # the sweep sees that the thread is there
            await arun(self._store, deletions.settle(asked))

    async def carry_out(self, asked: Deletion) -> None:
        """Erase what came from a thread that is deleted; what fails is tried again by the sweep."""
        with tolerated(logger, "what came from thread %s is not erased yet", asked.thread_id, level=logging.ERROR):
            await arun(self._store, deletions.confirm(asked))
            if self._saver is not None:
                await self._saver.adelete_thread(asked.thread_id)
                await self._saver.aget_tuple({"configurable": {"thread_id": asked.thread_id}})  # once it is on disk
            erased = await aerase_thread(self._store, asked.thread_id, clock=self._clock)
            await arun(self._store, deletions.settle(asked))
            logger.info("erased what came from thread %s: items %d", asked.thread_id, erased)

    async def finish(self, is_there: Callable[[str], Awaitable[bool]]) -> None:
        """Carry out what earlier processes were asked for and could not finish.

        Args:
            is_there: Says whether the server has a thread: if so, nobody knows that its deletion was granted.
        """
        for asked in await arun(self._store, deletions.left_behind(self._clock())):
            if asked.state == "asked" and await is_there(asked.thread_id):
                await self.refuse(asked)
            else:
                await self.carry_out(asked)
