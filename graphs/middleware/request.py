"""What the middleware changes in a call of the model: the system message, and what stands before a user's message."""

from collections.abc import Mapping, Sequence

from langchain_core.messages import AnyMessage, SystemMessage

from graphs.turn.view import with_recalled

_MARK = {"type": "ephemeral"}


def with_text(system: SystemMessage | None, text: str, *, marks_stable: bool = False) -> SystemMessage | None:
    """Return the system message with a text behind it: what changes least comes first.

    Args:
        system: The system message so far.
        text: What is put behind it; nothing changes where it is empty.
        marks_stable: Whether the end of what was there so far is marked, so that the provider caches all up to there.
            Marks that somebody else set stay, and none is added: providers take only a few.
    """
    if not text:
        return system
    if system is None or not system.content:
        return SystemMessage(text)
    if isinstance(system.content, str) and not marks_stable:
        return system.model_copy(update={"content": f"{system.content}\n\n{text}"})
    content = [system.content] if isinstance(system.content, str) else system.content
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    if marks_stable and not any("cache_control" in block for block in blocks):
        blocks[-1] = {**blocks[-1], "cache_control": _MARK}
    return system.model_copy(update={"content": [*blocks, {"type": "text", "text": f"\n\n{text}"}]})


def with_recalled_texts(messages: Sequence[AnyMessage], recalled: Mapping[str, str]) -> list[AnyMessage]:
    """Return the messages, each with what was recalled for it before it."""
    return [with_recalled(message, recalled.get(str(message.id), "")) for message in messages]
