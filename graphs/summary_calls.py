"""The calls of a model that writes summaries: counted, and within the user's budget of the day."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.store.base import BaseStore

from graphs.models import ainvoke
from graphs.service import MemoryService
from memory.budget import BudgetUsedUp, DailyBudget, spend
from memory.effects import in_daemon_thread, run, tolerated
from memory.namespaces import Owner

logger = logging.getLogger(__name__)

_UNKNOWN = "what was used of a budget is not known, and a summary is not counted"


@dataclass(slots=True, kw_only=True)
class SummaryCalls:
    """The calls for one summary.

    Attributes:
        service: The process's memory work, which counts.
        whose: Whose memory, and the store that it is in, to be asked from any thread; `None` knows no budget.
        load: Returns the model, on a thread.
        aload: Does the same on an event loop.
        seconds: How long a call on an event loop may take, with the loading.
        has_begun: Whether a call was made: portions of a summary are of no use, so that one that began is finished.
    """

    service: MemoryService
    whose: tuple[BaseStore, Owner] | None
    load: Callable[[], BaseChatModel]
    aload: Callable[[], Awaitable[BaseChatModel]]
    seconds: float | None = None
    has_begun: bool = False

    def model(self) -> RunnableLambda[LanguageModelInput, str]:
        """Return what is called like a model, and answers with a text; `BudgetUsedUp` if none may begin today.

        With a text alone: a message that a runnable returns inside a node is streamed to the user.
        """

        def ask(prompt: LanguageModelInput, config: RunnableConfig) -> str:
            until = None
            with tolerated(logger, _UNKNOWN):
                until = self._spent_until()
            self._begin(until)
            model = self.load()
            with self.service.metrics.call("summary"):
                return model.invoke(prompt, config).text

        async def aask(prompt: LanguageModelInput, config: RunnableConfig) -> str:
            until = None
            with tolerated(logger, _UNKNOWN):
                async with asyncio.timeout(self.service.settings.memory.read_timeout_seconds):
                    until = await asyncio.wrap_future(in_daemon_thread(self._spent_until, "palimpsest-budget"))
            self._begin(until)
            async with asyncio.timeout(self.seconds):
                model = await self.aload()
                with self.service.metrics.call("summary"):
                    return (await ainvoke(model, prompt, config)).text

        return RunnableLambda(ask, aask)

    def _spent_until(self) -> float | None:
        """Count the call, and return until when none may be made; `None` if it may."""
        budget = DailyBudget.of(self.service.settings.memory)
        if self.whose is None or not budget.calls or self.service.stores.is_away(self.whose[0], "write"):
            return None
        store, owner = self.whose
        return run(store, spend(owner, budget, self.service.clock(), has_begun=self.has_begun))

    def _begin(self, until: float | None) -> None:
        if until is not None:
            raise BudgetUsedUp(until)
        self.has_begun = True
