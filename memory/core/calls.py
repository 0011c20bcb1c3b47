"""One call of the memory model: structured where the model can, hidden from the user's stream, with a deadline."""

import asyncio
import contextvars
import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import TAG_NOSTREAM

from memory.daemons import in_daemon_thread
from memory.provider_reason import reason_logged
from memory.steps import adrive, drive

logger = logging.getLogger(__name__)

# What a server answers that does not know JSON schemas: bad request, or not to be processed.
_REFUSES_SCHEMA: Final = frozenset({400, 422})
# They keep a small model from never ending its answer, but not every server that takes a schema takes them.
_BOUNDS: Final = frozenset({"maxItems", "maxLength"})
_EXTRACTION: Final = "an extraction call"

Prompt = Sequence[BaseMessage]


def ask(model: BaseChatModel, prompt: Prompt, schema: dict[str, Any], timeout: float) -> str:
    """Return the text of the model's answer; of one that reached the length limit, what there is.

    Args:
        model: Any chat model.
        prompt: What it is sent.
        schema: The JSON schema of the answer, for models that take one, without its bounds for those that refuse them.
        timeout: Seconds after which the call is given up.

    Raises:
        TimeoutError: If there is no answer in time.
        Exception: What the model raises.
    """
    with reason_logged(logger, _EXTRACTION, _material(prompt)):
        return drive(_asking(model, schema), lambda asked: _within(timeout, asked, prompt))


async def aask(model: BaseChatModel, prompt: Prompt, schema: dict[str, Any], timeout: float) -> str:
    """Do what `ask` does, asynchronously."""
    with reason_logged(logger, _EXTRACTION, _material(prompt)):
        async with asyncio.timeout(timeout):
            return await adrive(_asking(model, schema), lambda asked: asked.ainvoke(list(prompt), _config()))


def _material(prompt: Prompt) -> Prompt:
    """Return what of the prompt is the user's: its rules are ours, and a provider may say their words."""
    return [message for message in prompt if not isinstance(message, SystemMessage)]


def _asking(model: BaseChatModel, schema: dict[str, Any]) -> Generator[Runnable[Any, Any], Any, str]:
    """Yield whom to ask, in turn, until one answers, and return the answer's text."""
    for structured in _structured(model, schema):
        try:
            return _text((yield structured))
        except Exception as error:  # whatever a provider's client raises for "I know no schemas"
            if broken_off := _broken_off(error):
                return broken_off
            if not _is_refused(error):
                raise
    return _text((yield model))


def _structured(model: BaseChatModel, schema: dict[str, Any]) -> Iterator[Runnable[Any, Any]]:
    """Yield the model bound to the schema, then to the schema without bounds; nothing if it has no way of its own.

    The inherited way is a forced tool call, which small local servers answer with prose.
    """
    if type(model).with_structured_output is BaseChatModel.with_structured_output:
        return
    for each in (schema, _unbounded(schema)):
        try:
            yield model.with_structured_output(each, method="json_schema", include_raw=True)
        except (NotImplementedError, TypeError, ValueError):
            return


def _unbounded(schema: Any) -> Any:
    """Return a JSON schema without its bounds."""
    if isinstance(schema, Mapping):
        return {name: _unbounded(value) for name, value in schema.items() if name not in _BOUNDS}
    return [_unbounded(each) for each in schema] if isinstance(schema, list) else schema


def _broken_off(error: Exception) -> str:
    """Return the text of an answer that reached the length limit; empty if it is another error.

    OpenAI's client raises for it where a schema was asked for, and hands over the completion.
    """
    choices = getattr(getattr(error, "completion", None), "choices", None)
    if not choices or choices[0].finish_reason != "length":
        return ""
    text = choices[0].message.content or ""
    logger.warning("an answer broke off at the length limit after %d characters: what is whole of it counts", len(text))
    return str(text)


def _is_refused(error: Exception) -> bool:
    return getattr(error, "status_code", None) in _REFUSES_SCHEMA


def _config() -> RunnableConfig:
    return {"tags": [TAG_NOSTREAM], "run_name": "extract_facts"}


def _text(answer: Any) -> str:
    message = answer.get("raw") if isinstance(answer, Mapping) else answer
    return message.text if isinstance(message, BaseMessage) else str(message)


def _within(timeout: float, model: Runnable[Any, Any], prompt: Prompt) -> Any:
    """Call in a thread that nothing waits for at exit: a hung call must not keep the process alive."""
    call = partial(contextvars.copy_context().run, model.invoke, list(prompt), _config())
    return in_daemon_thread(call, "palimpsest-extract").result(timeout)
