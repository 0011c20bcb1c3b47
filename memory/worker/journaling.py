"""What an update writes into the journal, and what is looked at after it was written."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo

from langgraph.store.base import Item, Op

from memory.config import Topic
from memory.control import count_edit
from memory.effects import StoreEffects
from memory.facts.deletions import forgotten_messages
from memory.journal.entry import JournalEntry, day_of, entries_of
from memory.journal.journal import HeldJournal, JournalRevision, redact, revision_get, revision_put, writes_of
from memory.message import StoredMessage, with_replies
from memory.namespaces import Owner
from memory.outbox.entry import Entry
from memory.outbox.transcript import exchanges
from memory.worker.reading import Reading


@dataclass(frozen=True, slots=True)
class Journaling:
    """The lines of one update.

    Attributes:
        owner: Whose journal.
        epoch: The epoch under which it was said.
        thread_id: In which thread.
        said: What was said; empty if the update brings no lines.
        counts: How many of these messages come from a `turn`, and how many a summary `cut`.
        known: The journal's revision as it was read before.
        writes: What writes them down, with the journal's new revision; empty if there are none.
        hides: Whether a message that may be in prompts says something else now, which waits for the user's yes.
    """

    owner: Owner
    epoch: str
    thread_id: str
    said: tuple[StoredMessage, ...]
    counts: Mapping[str, int]
    known: JournalRevision
    writes: tuple[Op, ...]
    hides: bool = False

    @classmethod
    def of(
        cls,
        entry: Entry,
        reading: Reading,
        held: HeldJournal,
        *,
        zone: tzinfo | None,
        now: str,
        approval: Collection[Topic] = (),
    ) -> "Journaling":
        """Return the lines of what entries of one thread hold.

        Args:
            entry: The newest of them.
            reading: What they hold.
            held: What the journal has of it.
            zone: The user's time zone, if that is known.
            now: ISO 8601.
            approval: The topics that wait for the user's yes.
        """
        here = zone or UTC
        draft = JournalEntry(day_of(now, here), entry.thread_id, (), entry.epoch, entry.model)
        cut = {message.id for message in reading.cut}
        fresh = entries_of(draft, exchanges(reading.said), here, cut, approval)
        told = {one.id: one.text for each in held.entries.values() for one in each.messages if one.id not in each.held}
        waits = [one for each in fresh for one in each.messages if one.id in each.held]
        hides = any(told.get(one.id, one.text) != one.text for one in waits)
        writes = writes_of(entry.owner, held, fresh)
        if reading.said and not writes:
            # Whoever wrote these lines may have been killed before it looked whether it was the only writer.
            writes, hides = [revision_put(entry.owner)], bool(waits)
        sources = ["cut" if message.id in cut else "turn" for message in reading.said]
        counts = {source: sources.count(source) for source in sorted(set(sources))}
        return cls(entry.owner, entry.epoch, entry.thread_id, reading.said, counts, held.revision, tuple(writes), hides)

    def with_reading(self, *more: Op) -> list[Op]:
        """Return a batch of the writes and more, whose first result is the revision that it overwrites."""
        return [revision_get(self.owner), *self.writes, *more]

    def read_forgotten(self) -> StoreEffects[frozenset[str]]:
        """Read, after the last write, which of the messages a deleted fact came from."""
        ids = [message.id for message in self.said]
        return forgotten_messages(self.owner, self.epoch, self.thread_id, ids)

    def settle(self, overwritten: Item | None, forgotten: Collection[str]) -> StoreEffects[None]:
        """Take out again what was forgotten, and have readers read anew if somebody else wrote in between.

        Args:
            overwritten: The first result of `with_reading`.
            forgotten: Ids of messages that go, with the replies to them.
        """
        if forgotten:
            yield from redact(self.owner, {self.thread_id: with_replies(self.said, forgotten)})
        elif self.writes and JournalRevision.of_item(overwritten).token != self.known.token:
            # These writes know nothing of the other's: whoever follows their revision would never see those lines.
            yield [revision_put(self.owner)]
        if self.hides:
            # The prompts that show a line know it by its id: after an edit by hand they choose anew.
            yield from count_edit(self.owner)
