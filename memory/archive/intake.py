"""The facts of a document, each checked as what a model extracted is. Pure."""

from collections.abc import Mapping

from memory.facts.changes import Reason
from memory.facts.fact import HELD, SOURCES, Fact, checked_category, checked_confidence, checked_content, moment
from memory.screening.door import holds_secret, is_instruction_like
from memory.text import sanitize


def read_fact(raw: object, *, epoch: str, now: str) -> Fact | Reason:
    """Return the fact that an entry of a document describes, or why it is refused.

    Args:
        raw: The entry.
        epoch: The user's current epoch.
        now: ISO 8601; all facts of a document come at one time.
    """
    if not isinstance(raw, Mapping):
        return "malformed"
    try:
        content = checked_content(raw.get("content"))
        category = checked_category(raw.get("category"))
        confidence = checked_confidence(raw.get("confidence"))
    except ValueError as error:
        said = str(error)
        if said.startswith("category"):
            return "unknown_category"
        if said.startswith("confidence"):
            return "bad_confidence"
        return "too_long" if "at most" in said else "empty"
    if holds_secret(content):
        return "secret"
    # What waited for a person waits on; a document must not say yes in their place.
    held = next((status for status in HELD if status == raw.get("status")), None)
    return Fact(
        id="",
        content=content,
        category=category,
        confidence=confidence,
        created_at=_time(raw.get("createdAt"), now),
        updated_at=now,
        source=next((source for source in SOURCES if source == raw.get("source")), "api"),
        status="quarantined" if is_instruction_like(content) else held or "active",
        pinned=raw.get("pinned") is True,
        epoch=epoch,
        thread_id=short_text(raw.get("thread_id")),
        message_ids=short_texts(raw.get("message_ids")),
        edited_at=_time(raw.get("editedAt"), ""),
    )


def _time(value: object, otherwise: str) -> str:
    return value if isinstance(value, str) and moment(value) is not None else otherwise


def short_text(value: object) -> str:
    """Return an id or a name as a store takes it; empty for what is no text."""
    return sanitize(value, 200) if isinstance(value, str) else ""


def short_texts(value: object) -> tuple[str, ...]:
    """Return the ids of a list, at most 100."""
    return tuple(short_text(each) for each in value[:100] if isinstance(each, str)) if isinstance(value, list) else ()
