"""What an update writes into the journal."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo

from langgraph.store.base import Op

from memory.config import Approval
from memory.journal.entry import JournalEntry, day_of, entries_of
from memory.journal.journal import HeldJournal, writes_of
from memory.message import with_replies
from memory.namespaces import Owner
from memory.outbox.entry import Entry
from memory.outbox.transcript import exchanges
from memory.worker.reading import Reading


@dataclass(frozen=True, slots=True)
class Journaling:
    """The lines of one update.

    Attributes:
        owner: Whose journal.
        counts: How many of its messages come from a `turn`, and how many a summary `cut`.
        writes: What writes them down, with the journal's new revision; empty if there are none.
        gone: Messages that go with deleted facts, and the replies to them, by their thread.
        hides: Whether a message that may be in prompts says something else now, which waits for the user's yes.
    """

    owner: Owner
    counts: Mapping[str, int]
    writes: tuple[Op, ...]
    gone: Mapping[str, frozenset[str]]
    hides: bool = False

    @classmethod
    def of(
        cls,
        entry: Entry,
        reading: Reading,
        held: HeldJournal,
        forgotten: Collection[str],
        *,
        zone: tzinfo | None,
        now: str,
        approval: Approval = "off",
        harmless: Collection[str] = (),
    ) -> "Journaling":
        """Return the lines of what entries of one thread hold.

        Args:
            entry: The newest of them.
            reading: What they hold.
            held: What the journal has of it.
            forgotten: Ids of messages that go with deleted facts, and with them the replies.
            zone: The user's time zone, if that is known.
            now: ISO 8601.
            approval: What waits for the user's yes.
            harmless: Ids of the messages that the model marked so.
        """
        here = zone or UTC
        draft = JournalEntry(day_of(now, here), entry.thread_id, (), entry.epoch, entry.model)
        cut = {message.id for message in reading.cut}
        gone = with_replies(reading.said, forgotten)
        said = [message for message in reading.said if message.id not in gone]
        fresh = entries_of(draft, exchanges(said), here, cut, approval, harmless)
        told = {one.id: one.text for each in held.entries.values() for one in each.messages if one.id not in each.held}
        waits = [one for each in fresh for one in each.messages if one.id in each.held]
        hides = any(told.get(one.id, one.text) != one.text for one in waits)
        sources = ["cut" if message.id in cut else "turn" for message in said]
        counts = {source: sources.count(source) for source in sorted(set(sources))}
        writes = tuple(writes_of(entry.owner, held, fresh))
        return cls(entry.owner, counts, writes, {entry.thread_id: gone} if gone else {}, hides)
