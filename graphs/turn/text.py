"""Replies that say nothing, and those with half a character (a lone surrogate): no later prompt takes one.

Some servers cut a character in two where a reply breaks off, or between two pieces of a stream.
"""

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, get_async_callback_manager_for_config

from graphs.model_failures import ModelUnavailable
from graphs.turn.calls import GARBLED
from memory.context.turns import is_empty
from memory.message import TOLD_KEY, spoken


def check_text(answer: AIMessage, name: str) -> None:
    """Raise `ModelUnavailable` for a reply of a model that is no text."""
    _check_encodes(answer.model_dump(), name)


def told(answer: AIMessage, name: str) -> AIMessage:
    """Return an answer; in the place of one that says nothing, a sentence for the user, which no model is sent."""
    if not is_empty(spoken(answer)):
        return answer
    sentence = f"{name!r} answered nothing: try again, or choose another model."
    kept = {**answer.additional_kwargs, TOLD_KEY: True}
    # Under an id of its own: of a message that it has streamed, LangGraph streams no more.
    return answer.model_copy(update={"id": str(uuid4()), "content": sentence, "additional_kwargs": kept})


class Pieces(BaseCallbackHandler):
    """The pieces of a reply, if it is streamed.

    Args:
        name: The model's name, for errors.
    """

    run_inline = raise_error = True

    def __init__(self, name: str) -> None:
        self._name = name
        self._arguments: dict[object, str] = {}

    def config(self) -> RunnableConfig:
        """Return the configuration of the call of the model, which fails with the first piece that is no text."""
        callbacks = get_async_callback_manager_for_config(ensure_config()).copy()
        callbacks.add_handler(self)
        return {"callbacks": callbacks}

    def without_completed(self, answer: AIMessage) -> AIMessage:
        """Return the answer that came of the pieces; a call whose arguments broke off is one that cannot be read."""
        garbled = [call["args"] for call in answer.invalid_tool_calls]
        told = [each for each in self._arguments.values() if each not in garbled]
        if not told or len(told) != len(answer.tool_calls):
            return answer
        calls = [
            call if _is_json(args or "{}") else {**call, "args": {GARBLED: args}}
            for call, args in zip(answer.tool_calls, told, strict=True)
        ]
        return answer.model_copy(update={"tool_calls": calls})

    def on_llm_new_token(self, token: object, *, chunk: Any = None, **_: Any) -> None:
        """Look at one piece; of one that is no text, those who are told of it too see what is."""
        message = getattr(chunk, "message", None)
        kept = ("content", "tool_call_chunks", "additional_kwargs") if isinstance(message, AIMessageChunk) else ()
        for each in message.tool_call_chunks if isinstance(message, AIMessageChunk) else ():
            place = len(self._arguments) if each["index"] is None else each["index"]
            self._arguments[place] = self._arguments.get(place, "") + (each["args"] or "")
        try:
            _check_encodes([token, *(getattr(message, name) for name in kept)], self._name)
        except ModelUnavailable:
            # In place: a server that streams it would fail in words of its own before this error is told.
            for name in kept:
                setattr(message, name, _text_of(getattr(message, name)))
            raise


def _is_json(said: str) -> bool:
    try:
        json.loads(said)
    except ValueError:
        return False
    return True


def _text_of(said: Any) -> Any:
    if isinstance(said, str):
        return said.encode("utf-8", "replace").decode()
    if isinstance(said, Mapping):
        return {key: _text_of(value) for key, value in said.items()}
    return [_text_of(value) for value in said] if isinstance(said, list) else said


def _check_encodes(said: object, name: str) -> None:
    try:
        json.dumps(said, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise ModelUnavailable(
            f"{name!r} answered with characters that are no text: try again, or choose another model."
        ) from None
