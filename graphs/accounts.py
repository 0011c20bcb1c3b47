"""What one process keeps account of: the numbers of its metrics, and what its users' memory has spent of the day."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from uuid import uuid4

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.store.base import BaseStore

from graphs.metrics import Count, Metrics, of_call, of_update
from graphs.models import ainvoke, resolve
from graphs.settings import Settings
from memory.budget import BudgetUsedUp, DailyBudget, Purse
from memory.effects import in_daemon_thread, run, tolerated
from memory.namespaces import Owner
from memory.usage import CallPurpose, ModelUsage, observed
from memory.worker.update import Drained

logger = logging.getLogger(__name__)

_UNKNOWN = "what other processes used of a budget is not known"


class Accounts:
    """The accounts of one process.

    Args:
        settings: The deployment's: budgets, prices, models.
        clock: Returns seconds since the epoch.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings, self._patience = settings, settings.memory.store_timeout_seconds
        self.metrics = Metrics()
        self.purse = Purse(DailyBudget.of(settings.memory), clock, uuid4().hex)

    def called(self, usage: ModelUsage) -> None:
        """Count a model call that has ended; an empty name stands for the deployment's model."""
        named = replace(usage, model=resolve(usage.model, self._settings))
        self.metrics.add(of_call(named, self._settings.prices))

    def called_behind(self, usage: ModelUsage) -> None:
        """Count a call of an update or a roll-up, whose model the deployment may have chosen for all."""
        self.called(replace(usage, model=self._settings.memory_model or usage.model))

    def drained(self, drained: Drained) -> None:
        """Count what a drain came to."""
        ended = {"failed": drained.failed, "cancelled": drained.cancelled}
        self.metrics.add(Count("palimpsest_updates", (outcome,), n) for outcome, n in ended.items())
        if drained.put_off:
            self.put_off("extraction")
        self.metrics.add(count for receipt in drained.receipts for count in of_update(receipt))

    def put_off(self, purpose: CallPurpose) -> None:
        """Count a call that waits for the next day, as the user's budget is used up."""
        self.metrics.add([Count("palimpsest_budget_refusals", (purpose,))])

    async def acheck(self, owner: Owner, look: Callable[[], Awaitable[object]]) -> None:
        """Raise `BudgetUsedUp` if a summary may ask no model.

        Args:
            owner: Whose memory.
            look: Reads what other processes used; called once a day at most.
        """
        if not self.purse.is_known(owner):
            with tolerated(logger, _UNKNOWN):
                await look()
        self._check(owner)

    def check(self, store: BaseStore | None, owner: Owner | None) -> None:
        """Do what `acheck` does, on a thread; where nobody's memory is kept, nothing."""
        if store is None or owner is None:
            return
        if not self.purse.is_known(owner):
            with tolerated(logger, _UNKNOWN):
                run(store, self.purse.look(owner))
        self._check(owner)

    def _check(self, owner: Owner) -> None:
        try:
            self.purse.check(owner)
        except BudgetUsedUp:
            self.put_off("summary")
            raise

    def counted(
        self, model: BaseChatModel, store: BaseStore | None, owner: Owner | None
    ) -> RunnableLambda[LanguageModelInput, str]:
        """Return the summary calls of a model that somebody else has made: counted, and within a user's budget.

        Args:
            model: Writes summaries.
            store: Where the user's memory is, to be asked from any thread.
            owner: Whose memory; `None` counts, and knows no budget.
        """
        # A summary that began is finished: portions of one are of no use.
        begun: list[bool] = []
        name, observe = _name_of(model), partial(self.spent, store, owner)

        def ask(prompt: LanguageModelInput, config: RunnableConfig) -> str:
            if not begun:
                self.check(store, owner)
                begun.append(True)
            with observed("summary", name, observe):
                return model.invoke(prompt, config).text

        async def aask(prompt: LanguageModelInput, config: RunnableConfig) -> str:
            if not begun and store is not None and owner is not None:
                looking = partial(asyncio.to_thread, run, store, self.purse.look(owner))
                await self.acheck(owner, lambda: asyncio.wait_for(looking(), self._patience))
            begun.append(True)
            with observed("summary", name, observe):
                return (await ainvoke(model, prompt, config)).text

        return RunnableLambda(ask, aask)

    def spent(self, store: BaseStore | None, owner: Owner | None, usage: ModelUsage) -> None:
        """Count a summary's call, and write down, behind whoever calls, what the user has used of a budget."""
        self.called(usage)
        if store is None or owner is None:
            return
        self.purse.note(owner, usage)

        def save() -> None:
            with tolerated(logger, "what %s used of the budget is not written down", owner.due_key):  # the next one is
                run(store, self.purse.save(owner))

        if self.purse.budget.is_limited:
            in_daemon_thread(save, "palimpsest-budget")


def _name_of(model: BaseChatModel) -> str:
    """Return a model's name as prices have it, `provider:model`, by what LangChain's tracing says of it."""
    told = model._get_ls_params()  # what LangChain asks every integration to fill in, and has no public name for
    return f"{told.get('ls_provider', '')}:{told.get('ls_model_name', '')}"
