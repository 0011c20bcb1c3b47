"""What a model replied, as a thread can keep it: text, that says something, with what the model was shown.

Some servers answer nothing, and some cut a character in two (a lone surrogate) where a reply breaks off, or between two
pieces of a stream: no later prompt, and no checkpoint, takes one.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, TypeVar
from uuid import uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, get_async_callback_manager_for_config
from typing_extensions import TypedDict

from graphs.process.model_failures import ModelUnavailable
from graphs.turn.calls import GARBLED
from memory.context.turns import is_empty
from memory.facts.rows import MemorySnapshot
from memory.injection.injected import Injected
from memory.message import TOLD_KEY, spoken
from memory.turn import MemoryMode, with_mode

SOURCES_KEY: Final = "palimpsest"
TOKENS_KEY: Final = "palimpsest_tokens"
"""A key of its own: that there are sources says that a reply drew on memory."""

Message = TypeVar("Message", bound=BaseMessage)


class Sources(TypedDict):
    """What of memory stood before the model when it replied; ids, never a text."""

    facts: list[str]
    """Ids of facts, in the memory block and before messages."""
    recalled: list[str]
    """Keys of the journal entries of which lines were shown."""
    profile: list[str]
    """Names of the profile's sections, such as `user.work`."""


def sources_of(injected: Injected | None, snapshot: MemorySnapshot | None) -> Sources | None:
    """Return what a prompt shows of memory; `None` where it shows nothing.

    Args:
        injected: What the thread's prompt is to show.
        snapshot: Memory as it is read for the prompt: what is gone meanwhile is not shown. `None`: it was not read.
    """
    if injected is None or snapshot is None:
        return None
    current = {fact.id for fact in snapshot.facts}
    sources = Sources(
        facts=[fact_id for fact_id in injected.fact_ids() if fact_id in current],
        recalled=list(dict.fromkeys(entry for entry, line in injected.lines() if line in snapshot.lines)),
        profile=[name for name, _ in injected.block if name in snapshot.profile],
    )
    return sources if any(sources.values()) else None


def noted(
    answer: AIMessage, name: str, mode: MemoryMode, sources: Sources | None, tokens: Mapping[str, int] | None = None
) -> AIMessage:
    """Return an answer as its thread keeps it, with what its model was shown, for any client.

    In the place of one that says nothing stands a sentence for the user, which no model is sent.

    Args:
        answer: The answer.
        name: The model's name.
        mode: The mode of its question, so that a later, looser mode does not learn it.
        sources: What of memory the model was shown.
        tokens: Of each part of its prompt.
    """
    if is_empty(spoken(answer)):
        sentence = f"{name!r} answered nothing: try again, or choose another model."
        kept = {**answer.additional_kwargs, TOLD_KEY: True}
        # Under an id of its own: of a message that it has streamed, LangGraph streams no more.
        answer = answer.model_copy(update={"id": str(uuid4()), "content": sentence, "additional_kwargs": kept})
    told = {key: {**said} for key, said in ((SOURCES_KEY, sources), (TOKENS_KEY, tokens)) if said is not None}
    if told:
        answer = answer.model_copy(update={"response_metadata": {**answer.response_metadata, **told}})
    return with_mode(answer, mode)


def without_sources(message: Message) -> Message:
    """Return the message as a provider may have it: what earlier replies were shown is no business of it."""
    ours = {SOURCES_KEY, TOKENS_KEY}
    if ours.isdisjoint(message.response_metadata):
        return message
    kept = {key: value for key, value in message.response_metadata.items() if key not in ours}
    return message.model_copy(update={"response_metadata": kept})


def check_text(said: object, name: str) -> None:
    """Raise `ModelUnavailable` for what a model said if that is no text."""
    try:
        json.dumps(said.model_dump() if isinstance(said, AIMessage) else said, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise ModelUnavailable(
            f"{name!r} answered with characters that are no text: try again, or choose another model."
        ) from None


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
        calls = [*answer.tool_calls]
        for at, args in enumerate(told):
            try:
                json.loads(args or "{}")
            except ValueError:
                calls[at] = {**calls[at], "args": {GARBLED: args}}
        return answer.model_copy(update={"tool_calls": calls})

    def on_llm_new_token(self, token: object, *, chunk: Any = None, **_: Any) -> None:
        """Look at one piece; of one that is no text, those who are told of it too see what is."""
        message, parts = getattr(chunk, "message", None), dict[str, Any]()
        if isinstance(message, AIMessageChunk):
            parts = {name: getattr(message, name) for name in ("content", "tool_call_chunks", "additional_kwargs")}
            for each in message.tool_call_chunks:
                place = len(self._arguments) if each["index"] is None else each["index"]
                self._arguments[place] = self._arguments.get(place, "") + (each["args"] or "")
        try:
            check_text([token, *parts.values()], self._name)
        except ModelUnavailable:
            # In place: a server that streams it would fail in words of its own before this error is told.
            for name, said in parts.items():
                setattr(message, name, _text_of(said))
            raise


def _text_of(said: Any) -> Any:
    if isinstance(said, str):
        return said.encode("utf-8", "replace").decode()
    if isinstance(said, Mapping):
        return {key: _text_of(value) for key, value in said.items()}
    return [_text_of(value) for value in said] if isinstance(said, list) else said
