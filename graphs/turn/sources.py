"""What a reply was shown: ids of memory, and tokens of each part, in its `response_metadata`, for any client."""

from collections.abc import Mapping
from typing import Final, TypeVar

from langchain_core.messages import AIMessage, BaseMessage
from typing_extensions import TypedDict

from memory.facts.snapshot import MemorySnapshot
from memory.injection.injected import Injected

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


def with_sources(answer: AIMessage, sources: Sources | None) -> AIMessage:
    """Return the answer with what it was shown; nothing is noted where that is nothing."""
    if sources is None:
        return answer
    return answer.model_copy(update={"response_metadata": {**answer.response_metadata, SOURCES_KEY: sources}})


def with_tokens(answer: AIMessage, tokens: Mapping[str, int]) -> AIMessage:
    """Return the answer with the tokens of each part of its prompt."""
    return answer.model_copy(update={"response_metadata": {**answer.response_metadata, TOKENS_KEY: {**tokens}}})


def without_sources(message: Message) -> Message:
    """Return the message as a provider may have it: what earlier replies were shown is no business of it."""
    ours = {SOURCES_KEY, TOKENS_KEY}
    if ours.isdisjoint(message.response_metadata):
        return message
    kept: Mapping[str, object] = {key: value for key, value in message.response_metadata.items() if key not in ours}
    return message.model_copy(update={"response_metadata": kept})
