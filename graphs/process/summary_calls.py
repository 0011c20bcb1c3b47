"""The calls of a model that writes summaries: counted, and within the user's budget of the day."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.store.base import BaseStore

from graphs.process.models import ainvoke, in_background
from graphs.process.service import MemoryService
from memory.budget import BudgetUsedUp, DailyBudget, spend
from memory.door import in_daemon_thread, run, tolerated
from memory.namespaces import Owner

logger = logging.getLogger(__name__)

_UNKNOWN = "what was used of a budget is not known, and a summary is not counted"


def summary_model(
    service: MemoryService, place: tuple[BaseStore, Owner] | None, load: Callable[[], BaseChatModel]
) -> RunnableLambda[LanguageModelInput, str]:
    """Return what is called like a model, for one summary; `BudgetUsedUp` if none may begin today.

    It answers with a text alone: a message that a runnable returns inside a node is streamed to the user.

    Args:
        service: The process's memory work, which counts.
        place: Where memory is, and whose, to be asked from any thread; `None` knows no budget.
        load: Returns the model; it may block, and its lack fails only the summary.
    """
    calls = _Calls(service, place, load)
    return RunnableLambda(calls.ask, calls.aask)


@dataclass(slots=True)
class _Calls:
    """The calls for one summary; portions of one are of no use, so that one that began is finished."""

    service: MemoryService
    place: tuple[BaseStore, Owner] | None
    load: Callable[[], BaseChatModel]
    has_begun: bool = False

    def ask(self, prompt: LanguageModelInput, config: RunnableConfig) -> str:
        """Ask behind the turns, on a thread: a local model does so when nobody waits for it."""
        until = None
        with tolerated(logger, _UNKNOWN):
            until = self._spent_until()
        self._begin(until)
        model = in_background(self.load())
        with self.service.metrics.call("summary"):
            return model.invoke(prompt, config).text

    async def aask(self, prompt: LanguageModelInput, config: RunnableConfig) -> str:
        """Ask in a turn, which waits."""
        until = None
        with tolerated(logger, _UNKNOWN):
            async with asyncio.timeout(self.service.settings.memory.read_timeout_seconds):
                until = await asyncio.wrap_future(in_daemon_thread(self._spent_until, "palimpsest-budget"))
        self._begin(until)
        async with asyncio.timeout(self.service.settings.memory.model_timeout_seconds):
            model = await asyncio.wrap_future(in_daemon_thread(self.load))
            with self.service.metrics.call("summary"):
                return (await ainvoke(model, prompt, config)).text

    def _spent_until(self) -> float | None:
        """Count the call, and return until when none may be made; `None` if it may."""
        budget = DailyBudget.of(self.service.settings.memory)
        if self.place is None or not budget.calls or self.service.stores.is_away(self.place[0], "write"):
            return None
        store, owner = self.place
        return run(store, spend(owner, budget, self.service.clock(), has_begun=self.has_begun))

    def _begin(self, until: float | None) -> None:
        if until is not None:
            raise BudgetUsedUp(until)
        self.has_begun = True
