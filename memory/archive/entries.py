"""What is remembered about a user as lines of JSON: a header, then each entry under the name of its part.

Each entry that comes back is checked by itself.
"""

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from langgraph.store.base import BaseStore

from memory.control import INITIAL_EDIT
from memory.door import arun, side_by_side
from memory.facts.chain import by_time, with_ends
from memory.facts.changes import Change, Reason, Section
from memory.facts.fact import (
    HELD,
    MAX_CONTENT_CHARS,
    Fact,
    from_item,
    moment,
    period_end,
    to_item,
)
from memory.facts.fact_set import FactSet
from memory.facts.profile import SECTIONS, read_profile, texts_of
from memory.facts.records import message_keys
from memory.facts.rows import read_fact_set
from memory.forms import plain, read_as
from memory.journal.entry import JournalEntry
from memory.journal.journal import read_journal
from memory.message import StoredMessage, iso_time, with_replies
from memory.namespaces import Owner
from memory.recall.past import exported
from memory.screening.door import screened
from memory.text import sanitize
from memory.updates.entry import Entry
from memory.updates.outbox import read_entries

Json = Mapping[str, object]

FORMAT: Final = "palimpsest.memory"
SCHEMA: Final = 1


# What a document may say of a fact: not its links to others, nor its history.
_TAKEN: Final = (
    "content", "category", "confidence", "createdAt", "editedAt", "source", "pinned", "thread_id", "message_ids",
    "validFrom", "validTo", "topic", "why",
)  # fmt: skip


# What it may say of a pending update: its failures are of no use elsewhere.
_TOLD: Final = ("kind", "thread_id", "created", "model", "edited_away", "messages")


def read_fact(raw: object, now: str, *also: str) -> Fact | Reason:
    """Return the fact that an entry of a document describes, or why it is refused.

    Args:
        raw: The entry.
        now: ISO 8601; all facts of a document come at one time.
        also: What else is taken of it, where it comes back to the memory that it is from.
    """
    if not isinstance(raw, Mapping):
        return "malformed"
    taken = {name: raw[name] for name in (*_TAKEN, *also) if name in raw}
    try:
        fact = from_item(taken, created_at=now)
    except ValueError as error:
        is_long = len(str(raw.get("content"))) > MAX_CONTENT_CHARS
        reasons: dict[str, Reason] = {
            "category": "unknown_category",
            "confidence": "bad_confidence",
            "content": "too_long" if is_long else "empty",
        }
        return reasons.get(str(error).partition(" ")[0], "malformed")
    verdict = screened(fact.content)
    if verdict == "secret":
        return "secret"
    # What waited for a person waits on; a document must not say yes in their place.
    held = next((status for status in HELD if status == raw.get("status")), None)
    return replace(
        fact,
        updated_at=now,
        status="quarantined" if verdict else held or "active",
        thread_id=sanitize(fact.thread_id, 200),
        message_ids=_bounded_ids(fact.message_ids),
    )


def read_entry(value: Json) -> JournalEntry:
    """Return the journal entry that an entry of a document describes; `ValueError` if it is none."""
    entry = read_as(JournalEntry, {**value, "is_screened": False})
    # Both are compared as text: other forms of ISO 8601 sort otherwise.
    if any(len(day) != 10 or not day.isascii() or period_end(day) is None for day in (entry.day, entry.written)):
        raise ValueError("day and written must be days of ISO 8601")
    messages = _messages(entry.messages)
    return replace(entry, thread_id=sanitize(entry.thread_id, 200), messages=messages)


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
    told = {name: value[name] for name in _TOLD if name in value}
    entry = read_as(Entry, {"created": now, **told, "owner": owner, "epoch": epoch, "due": now})
    if not (entry.messages and sanitize(entry.thread_id)):
        raise ValueError("an update must have thread_id and messages")
    return replace(
        entry,
        thread_id=sanitize(entry.thread_id, 200),
        created=entry.created if 0 <= entry.created <= now else now,
        # Said before every edit that this store knows of.
        messages=tuple(replace(message, edit=INITIAL_EDIT) for message in _messages(entry.messages)),
        edited_away=_bounded_ids(entry.edited_away),
        model=sanitize(entry.model, 200),
    )


def _bounded_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """Return ids as a store takes them, at most 100."""
    return tuple(sanitize(each, 200) for each in islice(ids, 100))


def _messages(messages: Sequence[StoredMessage]) -> tuple[StoredMessage, ...]:
    """Return the messages as a store takes them; `ValueError` if a time is none."""
    if any(moment(message.time) is None for message in messages):
        raise ValueError("times must be ISO 8601")
    return tuple(replace(each, id=sanitize(each.id, 200), text=sanitize(each.text)) for each in messages)


def read_sections(profile: Json) -> list[Section]:
    """Return the sections of a document's profile that say something; `ValueError` if they are none."""
    if any(name not in SECTIONS or not isinstance(text, str) for name, text in profile.items()):
        raise ValueError(f"profile must hold texts under {', '.join(SECTIONS)}")
    return [Section(name=name, text=text) for name, text in profile.items() if isinstance(text, str) and text.strip()]


# What means something in its own store only: epochs and edits are compared there.
_INNER = frozenset({"epoch", "schema", "edit"})


async def aexport(store: BaseStore, owner: Owner, seconds: float) -> AsyncIterator[str]:
    """Yield the lines: a header, facts, profile, the facts' history, journal, pending updates.

    Args:
        store: Where memory is kept.
        owner: Whose memory.
        seconds: Now, in seconds since 1970.
    """
    # At one moment, what waits first: what is learned while others are read would be in none of them.
    updates, facts, profile, journal = await arun(
        store, side_by_side(read_entries(owner), read_fact_set(owner), read_profile(owner), read_journal(owner))
    )
    for line in fact_lines(owner, [*facts.rows.values()], seconds):
        yield line
    yield _json_line("profile", texts_of(profile))
    past = with_ends(facts.past, facts.every, facts.control.zone)
    for fact in sorted(past, key=by_time):
        yield _json_line("history", _outer_fields(to_item(fact)))
    for entry in exported(facts, journal):
        yield _said_line("journal", plain(entry), entry.messages)
    for update in updates:
        if update.epoch == facts.control.epoch and (left := _to_be_learned(update, facts)):
            yield _said_line("update", {name: getattr(update, name) for name in _TOLD}, left)


def _to_be_learned(update: Entry, facts: FactSet) -> list[StoredMessage]:
    """Return an update's messages but those of deleted facts, and replies: the records that tell stand in no export."""
    gone = {
        one.id
        for one in update.messages
        if facts.is_forgotten(Change(said_at=one.time, said_after=one.edit), message_keys({update.thread_id: [one.id]}))
    }
    dropped = with_replies(update.messages, gone)
    return [one for one in update.messages if one.id not in dropped]


def fact_lines(owner: Owner, facts: Sequence[Fact], seconds: float) -> Iterator[str]:
    """Yield the header, and these facts: an export that an import takes."""
    header = {"format": FORMAT, "schema": SCHEMA, "exported_at": iso_time(seconds), "agent": owner.agent_name}
    yield json.dumps(header, ensure_ascii=False) + "\n"
    for fact in facts:
        yield _json_line("fact", _outer_fields(to_item(fact)))


def _said_line(part: str, told: Json, messages: Iterable[StoredMessage]) -> str:
    return _json_line(part, {**_outer_fields(told), "messages": [_outer_fields(each.to_json()) for each in messages]})


def _outer_fields(item: Json) -> Json:
    return {name: value for name, value in item.items() if name not in _INNER}


def _json_line(part: str, entry: Json) -> str:
    return json.dumps({part: entry}, ensure_ascii=False) + "\n"
