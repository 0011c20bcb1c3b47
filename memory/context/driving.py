"""The two drivers of a summarization: what its steps ask for, done synchronously or asynchronously."""

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM

from memory.context.summarizer import Ask, Flush, SummarizationResult, SummaryEffects
from memory.effects import adrive, drive
from memory.provider_reason import reason_logged

logger = logging.getLogger(__name__)

FlushHook = Callable[[list[BaseMessage]], Awaitable[None] | None]
"""Takes exactly the messages that are about to leave; returns at once. It may be a coroutine function."""

_SUMMARY = "a summary call"
_CALL: RunnableConfig = {"tags": [TAG_NOSTREAM], "run_name": "summarize"}


def run(
    steps: SummaryEffects, model: LanguageModelLike, hook: FlushHook | None, config: RunnableConfig | None = None
) -> SummarizationResult:
    """Carry the steps out in this thread and return their result; a coroutine hook gets an event loop of its own."""

    def do(step: Ask | Flush) -> str:
        if isinstance(step, Ask):
            with reason_logged(logger, _SUMMARY, step.prompt):
                return _text(model.invoke(step.prompt, merge_configs(config, _CALL)))
        called = hook(step.messages) if hook else None
        if inspect.isawaitable(called):
            _finish(called)
        return ""

    return drive(steps, do)


async def arun(
    steps: SummaryEffects, model: LanguageModelLike, hook: FlushHook | None, config: RunnableConfig | None = None
) -> SummarizationResult:
    """Carry the steps out on the event loop and return their result; a synchronous hook runs in a thread."""

    async def do(step: Ask | Flush) -> str:
        if isinstance(step, Ask):
            with reason_logged(logger, _SUMMARY, step.prompt):
                return _text(await model.ainvoke(step.prompt, merge_configs(config, _CALL)))
        if hook is not None:
            await _call(hook, step.messages)
        return ""

    return await adrive(steps, do)


async def _call(hook: FlushHook, messages: list[BaseMessage]) -> None:
    is_coroutine = inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(type(hook).__call__)
    called = hook(messages) if is_coroutine else await asyncio.to_thread(hook, messages)
    if inspect.isawaitable(called):
        await called


def _finish(awaitable: Awaitable[None]) -> None:
    """Wait for an awaitable where no event loop may be running, or where one is that must not be re-entered."""

    async def wait() -> None:
        await awaitable

    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(contextvars.copy_context().run, asyncio.run, wait()).result()


def _text(reply: Any) -> str:
    return reply.text if isinstance(reply, BaseMessage) else str(reply)
