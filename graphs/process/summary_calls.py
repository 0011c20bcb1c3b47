"""The calls of a model that writes summaries: counted, and within the user's budget of the day."""

import asyncio
import logging
from collections.abc import Callable

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.store.base import BaseStore

from graphs.process.models import ainvoke, in_background
from graphs.process.service import MemoryService
from memory.door import in_daemon_thread, run, tolerated
from memory.namespaces import Owner
from memory.updates.budget import BudgetUsedUp, DailyBudget, spend

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
    limits, has_begun = service.settings.memory, False

    def count() -> None:
        """Count the call; portions of one summary are of no use, so that one that began is finished."""
        nonlocal has_begun
        is_further, has_begun, budget, until = has_begun, True, DailyBudget.of(limits), None
        if place and budget.calls and not service.stores.is_away(place[0], "write"):
            with tolerated(logger, _UNKNOWN):
                until = run(place[0], spend(place[1], budget, service.clock(), has_begun=is_further))
        if until is not None:
            raise BudgetUsedUp(until)

    def ask(prompt: LanguageModelInput, config: RunnableConfig) -> str:
        # Behind the turns, on a thread: a local model does so when nobody waits for it.
        count()
        model = in_background(load())
        with service.metrics.call("summary"):
            return model.invoke(prompt, config).text

    async def aask(prompt: LanguageModelInput, config: RunnableConfig) -> str:
        try:
            async with asyncio.timeout(limits.read_timeout_seconds):
                await asyncio.wrap_future(in_daemon_thread(count, "palimpsest-budget"))
        except TimeoutError:
            logger.warning("%s: the store takes its time", _UNKNOWN)
        async with asyncio.timeout(limits.model_timeout_seconds):
            model = await asyncio.wrap_future(in_daemon_thread(load))
            with service.metrics.call("summary"):
                return (await ainvoke(model, prompt, config)).text

    return RunnableLambda(ask, aask)
