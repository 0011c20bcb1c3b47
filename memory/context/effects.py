"""What the decisions of the context tier want done, and who does it: ask a model, call the hook, look for a summary."""

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM

from memory.context.running_summary import WrittenSummary
from memory.effects import Ask, AsyncHandlers, Handlers
from memory.provider_reason import reason_logged

logger = logging.getLogger(__name__)

# A summary's tokens are no part of the answer that a user watches.
_CALL: RunnableConfig = {"tags": [TAG_NOSTREAM], "run_name": "summarize"}

FlushHook = Callable[[list[BaseMessage]], Awaitable[None] | None]
"""Takes exactly the messages that are about to leave; returns at once. It may be a coroutine function."""


@dataclass(frozen=True, slots=True)
class Flush:
    """The effect of calling the hook with the messages that are about to leave; nothing is sent back."""

    hook: FlushHook
    messages: list[BaseMessage]


PreparedSummary = Callable[[], Awaitable[WrittenSummary | None] | WrittenSummary | None]
"""Returns the summary that was written ahead of time, if there is one; it may be a coroutine function."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """The effect of looking for a summary that was written ahead of time; it is sent back, or `None`."""

    source: PreparedSummary


SoFar = Callable[[WrittenSummary], bool]
"""Takes what a summary that is being written stands for already, and says whether to go on."""


@dataclass(frozen=True, slots=True)
class SummaryProgress:
    """The effect of telling what a summary that is being written stands for already; whether to go on is sent back."""

    written: WrittenSummary


T = TypeVar("T")
SummaryEffects = Generator[Ask | Flush | Fetch | SummaryProgress, Any, T]
"""Asks a model, is sent its reply's text, calls the flush hook, and looks for a summary written ahead of time."""


def summary_handlers(config: RunnableConfig | None = None, so_far: SoFar = lambda _: True) -> Handlers:
    """Return what asks the model and calls the hook in this thread; a coroutine hook gets an event loop of its own."""

    def ask(effect: Ask) -> str:
        with reason_logged(logger, "a summary call"):
            return _text(effect.model.invoke(effect.prompt, merge_configs(config, _CALL)))

    return {
        Ask: ask,
        Flush: lambda effect: _finished(effect.hook(effect.messages)),
        Fetch: lambda effect: _finished(effect.source()),
        SummaryProgress: lambda effect: so_far(effect.written),
    }


def async_summary_handlers(config: RunnableConfig | None = None) -> AsyncHandlers:
    """Return what asks the model and calls the hook on the event loop; a synchronous hook runs in a thread."""

    async def ask(effect: Ask) -> str:
        with reason_logged(logger, "a summary call"):
            return _text(await effect.model.ainvoke(effect.prompt, merge_configs(config, _CALL)))

    async def flush(effect: Flush) -> None:
        hook = effect.hook
        # An object with an `async def __call__` is no coroutine function itself.
        is_coroutine = inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(type(hook).__call__)
        called = hook(effect.messages) if is_coroutine else await asyncio.to_thread(hook, effect.messages)
        if inspect.isawaitable(called):
            await called

    async def fetch(effect: Fetch) -> Any:
        found = effect.source()
        return await found if inspect.isawaitable(found) else found

    return {Ask: ask, Flush: flush, Fetch: fetch}


def _finished(called: Any) -> Any:
    """Return a call's value; a coroutine's, once it is done."""
    if not inspect.isawaitable(called):
        return called

    async def wait() -> Any:
        return await called

    # On another thread: this one may have an event loop that is running, which must not be entered again.
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(contextvars.copy_context().run, asyncio.run, wait()).result()


def _text(reply: Any) -> str:
    return reply.text if isinstance(reply, BaseMessage) else str(reply)
