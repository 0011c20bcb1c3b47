"""One call of the memory model: structured where the model can, hidden from the user's stream, with a deadline."""

import asyncio
import contextvars
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import TAG_NOSTREAM

# What a server answers that does not know JSON schemas: bad request, or not to be processed.
_REFUSES_SCHEMA: Final = frozenset({400, 422})

Prompt = Sequence[BaseMessage]


def ask(model: BaseChatModel, prompt: Prompt, schema: dict[str, Any], timeout: float) -> str:
    """Return the text of the model's answer.

    Args:
        model: Any chat model.
        prompt: What it is sent.
        schema: The JSON schema of the answer, for models that take one.
        timeout: Seconds after which the call is given up.

    Raises:
        TimeoutError: If there is no answer in time.
        Exception: What the model raises.
    """
    structured = _structured(model, schema)
    if structured is not None:
        try:
            return _text(_within(timeout, structured, prompt))
        except Exception as error:  # whatever a provider's client raises for "I know no schemas"
            if not _is_refused(error):
                raise
    return _text(_within(timeout, model, prompt))


async def aask(model: BaseChatModel, prompt: Prompt, schema: dict[str, Any], timeout: float) -> str:
    """Do what `ask` does, asynchronously."""
    structured = _structured(model, schema)
    async with asyncio.timeout(timeout):
        if structured is not None:
            try:
                return _text(await structured.ainvoke(list(prompt), _config()))
            except Exception as error:  # whatever a provider's client raises for "I know no schemas"
                if not _is_refused(error):
                    raise
        return _text(await model.ainvoke(list(prompt), _config()))


def _structured(model: BaseChatModel, schema: dict[str, Any]) -> Runnable[Any, Any] | None:
    """Return the model bound to a schema, or `None` if it brings no way of its own to do so.

    The inherited way is a forced tool call, which small local servers answer with prose.
    """
    if type(model).with_structured_output is BaseChatModel.with_structured_output:
        return None
    try:
        return model.with_structured_output(schema, method="json_schema", include_raw=True)
    except (NotImplementedError, TypeError, ValueError):
        return None


def _is_refused(error: Exception) -> bool:
    return getattr(error, "status_code", None) in _REFUSES_SCHEMA


def _config() -> RunnableConfig:
    return {"tags": [TAG_NOSTREAM], "run_name": "extract_facts"}


def _text(answer: Any) -> str:
    message = answer.get("raw") if isinstance(answer, Mapping) else answer
    return message.text if isinstance(message, BaseMessage) else str(message)


def _within(timeout: float, model: Runnable[Any, Any], prompt: Prompt) -> Any:
    """Call in a thread that nothing waits for at exit: a hung call must not keep the process alive."""
    answer: Future[Any] = Future()
    context = contextvars.copy_context()

    def call() -> None:
        try:
            answer.set_result(context.run(model.invoke, list(prompt), _config()))
        except BaseException as error:  # it belongs to the one who waits, not to this thread
            answer.set_exception(error)

    threading.Thread(target=call, name="palimpsest-extract", daemon=True).start()
    return answer.result(timeout)
