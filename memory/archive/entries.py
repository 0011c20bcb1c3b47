"""The entries of an exported document as what memory keeps: each is checked for itself. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from memory.control import INITIAL_EDIT
from memory.facts.changes import Reason
from memory.facts.fact import (
    HELD,
    SOURCES,
    Fact,
    checked_category,
    checked_confidence,
    checked_content,
    checked_period,
    checked_topic,
    moment,
    period_end,
)
from memory.facts.profile import SECTIONS
from memory.journal.entry import JournalEntry
from memory.message import StoredMessage
from memory.namespaces import Owner
from memory.outbox.entry import Entry
from memory.screening.door import screened
from memory.text import sanitize

Json = Mapping[str, object]


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
    verdict = screened(content)
    if verdict == "secret":
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
        status="quarantined" if verdict else held or "active",
        pinned=raw.get("pinned") is True,
        epoch=epoch,
        thread_id=_short_text(raw.get("thread_id")),
        message_ids=_short_texts(raw.get("message_ids")),
        edited_at=_time(raw.get("editedAt"), ""),
        valid_from=checked_period(raw.get("validFrom")),
        valid_to=checked_period(raw.get("validTo")),
        topic=checked_topic(raw.get("topic")),
    )


def _time(value: object, otherwise: str) -> str:
    return value if isinstance(value, str) and moment(value) is not None else otherwise


def _short_text(value: object) -> str:
    """Return an id or a name as a store takes it; empty for what is no text."""
    return sanitize(value, 200) if isinstance(value, str) else ""


def _short_texts(value: object) -> tuple[str, ...]:
    """Return the ids of a list, at most 100."""
    return tuple(_short_text(each) for each in value[:100] if isinstance(each, str)) if isinstance(value, list) else ()


def read_entry(value: Json, *, epoch: str) -> JournalEntry:
    """Return the journal entry that an entry of a document describes; `ValueError` if it is none."""
    entry = JournalEntry.from_json({**value, "epoch": "", "screened": False})
    # Both are compared as text, and roll-ups count from them: another form of ISO 8601 is another order.
    if not (_is_day(entry.day) and _is_day(entry.written)):
        raise ValueError("day and written must be days of ISO 8601")
    messages = _messages(entry.messages)
    return replace(entry, thread_id=_short_text(entry.thread_id), messages=messages, epoch=epoch)


def _is_day(text: str) -> bool:
    return len(text) == len("2026-05-08") and text.isascii() and period_end(text) is not None


def read_update(value: Json, *, owner: Owner, epoch: str, now: float) -> Entry:
    """Return the pending update of an entry, as if it had been written down now; its messages keep their times.

    Args:
        value: The entry.
        owner: Whose memory it is.
        epoch: The user's current epoch.
        now: Seconds since 1970.

    Raises:
        ValueError: If it is none.
    """
    kind, thread_id = value.get("kind"), _short_text(value.get("thread_id"))
    said = value.get("messages")
    if kind not in ("turn", "cut") or not thread_id or not isinstance(said, list):
        raise ValueError("an update must have kind, thread_id and messages")
    messages = _messages(map(StoredMessage.from_json, said))
    if not messages:
        raise ValueError("an update must have messages")
    created = moment(str(value.get("created")))
    return Entry(
        kind="turn" if kind == "turn" else "cut",
        owner=owner,
        thread_id=thread_id,
        epoch=epoch,
        created=min(now, created.timestamp()) if created else now,
        due=now,
        # These were said before any edit that this store knows of: all that were made here count as later.
        messages=tuple(replace(message, edit=INITIAL_EDIT) for message in messages),
        edited_away=_short_texts(value.get("edited_away")),
        model=_short_text(value.get("model")),
    )


def _messages(messages: Iterable[StoredMessage]) -> tuple[StoredMessage, ...]:
    """Return the messages as a store takes them; `ValueError` if a time is none."""
    read = tuple(messages)
    if any(moment(message.time) is None for message in read):
        raise ValueError("times must be ISO 8601")
    return tuple(replace(each, id=_short_text(each.id), text=sanitize(each.text)) for each in read)


def read_texts(profile: object) -> dict[str, str]:
    """Return the texts of a document's profile, by section; `ValueError` if they are none."""
    if not isinstance(profile, Mapping):
        raise ValueError("profile must be an object of texts")
    for name, text in profile.items():
        if name not in SECTIONS or not isinstance(text, str):
            raise ValueError(f"profile must hold texts under {', '.join(SECTIONS)}")
    return dict(profile)
