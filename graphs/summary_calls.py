"""The calls of a model that writes summaries: counted, and within the user's budget of the day."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.store.base import BaseStore

from graphs.models import ainvoke
from graphs.service import MemoryService
from memory.effects import in_daemon_thread, run, tolerated
from memory.namespaces import Owner

logger = logging.getLogger(__name__)

_UNKNOWN = "what other processes used of a budget is not known"


@dataclass(slots=True, kw_only=True)
class SummaryCalls:
    """The calls for one summary.

    Attributes:
        service: The process's memory work, which counts.
        whose: Whose memory, and the store that it is in, to be asked from any thread; `None` knows no budget.
        load: Returns the model, on a thread.
        aload: Does the same on an event loop.
        alook: Reads on an event loop what other processes used; called once a day at most.
        seconds: How long a call on an event loop may take, with the loading.
        has_begun: Whether a call was made: portions of a summary are of no use, so that one that began is finished.
    """

    service: MemoryService
    whose: tuple[BaseStore, Owner] | None
    load: Callable[[], BaseChatModel]
    aload: Callable[[], Awaitable[BaseChatModel]]
    alook: Callable[[], Awaitable[object]]
    seconds: float | None = None
    has_begun: bool = False

    def model(self) -> RunnableLambda[LanguageModelInput, str]:
        """Return what is called like a model, and answers with a text; `BudgetUsedUp` if none may begin today.

        With a text alone: a message that a runnable returns inside a node is streamed to the user.
        """

        def ask(prompt: LanguageModelInput, config: RunnableConfig) -> str:
            if self.whose and self._wants_a_look():
                with tolerated(logger, _UNKNOWN):
                    run(self.whose[0], self.service.purse.look(self.whose[1]))
            self._begin()
            model = self.load()
            with self._counted():
                return model.invoke(prompt, config).text

        async def aask(prompt: LanguageModelInput, config: RunnableConfig) -> str:
            if self._wants_a_look():
                with tolerated(logger, _UNKNOWN):
                    await self.alook()
            self._begin()
            async with asyncio.timeout(self.seconds):
                model = await self.aload()
                with self._counted():
                    return (await ainvoke(model, prompt, config)).text

        return RunnableLambda(ask, aask)

    def _wants_a_look(self) -> bool:
        return not self.has_begun and self.whose is not None and not self.service.purse.is_known(self.whose[1])

    def _begin(self) -> None:
        if self.whose is not None and not self.has_begun:
            self.service.purse.check(self.whose[1])
        self.has_begun = True

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self.service.metrics.call("summary"):
            if self.whose is None or not self.service.purse.budget.calls:
                yield
                return
            store, owner = self.whose
            self.service.purse.note(owner)

            def save() -> None:
                with tolerated(logger, "what %s used of the budget is not written down", owner.due_key):
                    run(store, self.service.purse.save(owner))

            try:
                yield
            finally:
                in_daemon_thread(save, "palimpsest-budget")  # behind whoever calls; the next one saves what this cannot
