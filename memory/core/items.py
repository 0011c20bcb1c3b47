"""Facts as store items: flat, with readable field names, because a person may open one in Studio. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from memory.core.facts import (
    BY_HAND,
    STATUSES,
    Fact,
    Source,
    Status,
    checked_category,
    checked_confidence,
    checked_content,
    checked_source,
    is_fact_id,
)

SCHEMA: Final = 1
_KEY_CHARS: Final = frozenset("0123456789abcdef")


def to_item(fact: Fact) -> dict[str, object]:
    """Return the JSON form of a fact that the store keeps."""
    item: dict[str, object] = {
        "id": fact.id,
        "content": fact.content,
        "category": fact.category,
        "confidence": fact.confidence,
        "createdAt": fact.created_at,
        "updatedAt": fact.updated_at,
        "source": fact.source,
        "status": fact.status,
        "pinned": fact.pinned,
        "revision": fact.revision,
        "epoch": fact.epoch,
        "schema": SCHEMA,
        "thread_id": fact.thread_id,
        "message_ids": list(fact.message_ids),
    }
    rare = {"replaced_by": fact.replaced_by, "editedAt": fact.edited_at, "edit": fact.edit, "reviewed": fact.reviewed}
    return {**item, **{name: value for name, value in rare.items() if value}}


def from_item(value: Mapping[str, object], *, epoch: str, written_at: datetime) -> Fact:
    """Return the fact of a store item, also of one that a person edited or added by hand.

    Content, category and confidence must be there and valid; what else is missing is filled in. An item without a
    source was written by hand.

    Args:
        value: The item's value.
        epoch: The epoch an item without one belongs to.
        written_at: The creation time of an item that has none.

    Raises:
        ValueError: If it cannot be read as a fact; the message names the field.
    """
    created_at = _text(value.get("createdAt")) or written_at.isoformat()
    return Fact(
        id=found if is_fact_id(found := _text(value.get("id"))) else "",
        content=checked_content(value.get("content")),
        category=checked_category(value.get("category")),
        confidence=checked_confidence(value.get("confidence")),
        created_at=created_at,
        updated_at=_text(value.get("updatedAt")) or created_at,
        source=_source(value),
        status=_status(value.get("status", "active")),
        pinned=value.get("pinned") is True,
        revision=_revision(value.get("revision")),
        epoch=_text(value.get("epoch")) or epoch,
        thread_id=_text(value.get("thread_id")),
        message_ids=_texts(value.get("message_ids")),
        replaced_by=_text(value.get("replaced_by")),
        edited_at=_text(value.get("editedAt")),
        edit=_text(value.get("edit")),
        reviewed=_text(value.get("reviewed")),
    )


def is_proper(key: str, value: Mapping[str, object]) -> bool:
    """Say whether an item has the key, id and epoch that our own writes give it."""
    return len(key) == 64 and set(key) <= _KEY_CHARS and is_fact_id(value.get("id")) and bool(value.get("epoch"))


def _source(value: Mapping[str, object]) -> Source:
    return checked_source(value["source"]) if "source" in value else min(BY_HAND)


def _status(value: object) -> Status:
    for status in STATUSES:
        if value == status:
            return status
    raise ValueError(f"status must be one of {', '.join(STATUSES)}, not {value!r}")


def _revision(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()
