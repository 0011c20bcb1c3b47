"""A summary that is written though the hook did not take its messages: kept for the next turn, which pays for none."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from memory.text import digest

UNFLUSHED = "unflushed_summary"
"""Where a state's `context` holds it, as plain data."""


def unflushed(summary: str, existing: str, messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """Return what a state keeps of a summary: its text, the ids that went into it, and a digest of all it is made of.

    Args:
        summary: The new summary.
        existing: The one before it, which went into it.
        messages: What else went into it.
    """
    return {"summary": summary, "ids": [message.id for message in messages], "of": _made_of(existing, messages)}


def still_leaving(kept: object, existing: str, live: Sequence[BaseMessage]) -> tuple[list[int], str] | None:
    """Return where the messages of a kept summary stand, and the summary; `None` unless nothing of them changed."""
    if not isinstance(kept, Mapping) or not isinstance(kept.get("ids"), list):
        return None
    ids, summary = {str(identity) for identity in kept["ids"]}, kept.get("summary")
    places = [at for at, message in enumerate(live) if message.id in ids]
    is_same = kept.get("of") == _made_of(existing, [live[at] for at in places])
    return (places, summary) if places and is_same and isinstance(summary, str) and summary else None


def _made_of(existing: str, messages: Sequence[BaseMessage]) -> str:
    return digest(existing, *(part for message in messages for part in (str(message.id), message.text)))
