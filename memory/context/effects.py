"""What the decisions of the context tier want done, and who does it: ask a model, call a function of the program."""

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
from memory.door import Ask, Handlers
from memory.provider_reason import reason_logged

logger = logging.getLogger(__name__)

# A summary's tokens are no part of the answer that a user watches.
_CALL: RunnableConfig = {"tags": [TAG_NOSTREAM], "run_name": "summarize"}

FlushHook = Callable[[list[BaseMessage]], Awaitable[None] | None]
"""Takes exactly the messages that are about to leave; returns at once. It may be a coroutine function."""

PreparedSummary = Callable[[], Awaitable[WrittenSummary | None] | WrittenSummary | None]
"""Returns the summary that was written ahead of time, if there is one; it may be a coroutine function."""

SoFar = Callable[[WrittenSummary], bool]
"""Takes what a summary that is being written stands for already, and says whether to go on."""


@dataclass(frozen=True, slots=True)
class Call:
    """The effect of calling a program's function, which may be a coroutine function; its value is sent back."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


T = TypeVar("T")
SummaryEffects = Generator[Ask | Call, Any, T]
"""Asks a model, is sent its reply's text, and calls functions of the program."""


def summary_handlers(config: RunnableConfig | None = None) -> Handlers:
    """Return what asks the model and calls functions in this thread; a coroutine gets an event loop of its own."""

    def ask(effect: Ask) -> str:
        with reason_logged(logger, "a summary call"):
            return _text(effect.model.invoke(effect.prompt, merge_configs(config, _CALL)))

    def call(effect: Call) -> Any:
        called = effect.function(*effect.arguments)
        if not inspect.isawaitable(called):
            return called

        async def wait() -> Any:
            return await called

        # On another thread: this one may have an event loop that is running, which must not be entered again.
        with ThreadPoolExecutor(max_workers=1) as pool:
            return pool.submit(contextvars.copy_context().run, asyncio.run, wait()).result()

    return {Ask: ask, Call: call}


def async_summary_handlers(config: RunnableConfig | None = None) -> Handlers:
    """Return what asks the model and calls functions on the event loop; a synchronous function runs in a thread."""

    async def ask(effect: Ask) -> str:
        with reason_logged(logger, "a summary call"):
            return _text(await effect.model.ainvoke(effect.prompt, merge_configs(config, _CALL)))

    async def call(effect: Call) -> Any:
        function = effect.function
        # An object with an `async def __call__` is no coroutine function itself.
        is_coroutine = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
        run = function if is_coroutine else lambda *arguments: asyncio.to_thread(function, *arguments)
        called = await run(*effect.arguments)
        return await called if inspect.isawaitable(called) else called

    return {Ask: ask, Call: call}


def _text(reply: Any) -> str:
    return reply.text if isinstance(reply, BaseMessage) else str(reply)
