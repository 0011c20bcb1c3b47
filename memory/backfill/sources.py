"""What was imported, by the name under which it can be taken back: items of the user's own, ids and counts only."""

import uuid
from dataclasses import dataclass
from typing import TypeVar

from langgraph.store.base import Item

from memory.backfill.conversation import Conversation, Origin
from memory.control import belongs, read_epoch
from memory.door import StoreEffects, put, read, scan, side_by_side, transaction
from memory.facts.fact import timestamp
from memory.forms import plain, read_as
from memory.namespaces import Owner, checked_source, imported_thread, source_unit
from memory.text import digest

_SOURCE = "source."
_TALK = "talk."

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ImportSource:
    """Conversations that are imported together.

    Attributes:
        name: What a person calls it.
        origin: Where the first of them were held.
        token: Random; another one says that it was erased and begun anew.
        begun: When the import began, ISO 8601.
        epoch: The user's epoch then.
    """

    name: str
    origin: Origin
    token: str
    begun: str
    epoch: str

    def unit(self, owner: Owner) -> str:
        """Return what the ids of its threads begin with."""
        return source_unit(owner, self.name)


@dataclass(frozen=True, slots=True)
class ConversationProgress:
    """How far one conversation is imported: no text, and no id of a message as it was given.

    Attributes:
        source: The name of the source that brought it.
        thread_id: Under which id memory knows it.
        epoch: The user's epoch then.
        told: By `short_id`, the messages that were written into the journal.
        known: The messages that were written down to be learned.
    """

    source: str
    thread_id: str
    epoch: str
    told: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()


def noted(kind: type[T], item: Item | None, epoch: str) -> T | None:
    """Return the source, or the progress, of an item; `None` if there is none, or it was erased."""
    if item is None or not belongs(item.value, epoch):
        return None
    try:
        return read_as(kind, item.value)
    except ValueError:
        return None


def source_key(name: str) -> str:
    """Return the key of a source."""
    return _SOURCE + checked_source(name)


def talk_key(conversation: Conversation) -> str:
    """Return the key under which it is noted how far a conversation is imported, whichever source brings it."""
    return _TALK + digest(conversation.origin, conversation.id)[:32]


def thread_of(owner: Owner, source: ImportSource, conversation: Conversation) -> str:
    """Return the id under which memory knows an imported conversation."""
    return imported_thread(source.unit(owner), f"{conversation.origin}\0{conversation.id}")


@transaction
def open_source(owner: Owner, name: str, origin: Origin, now: float) -> StoreEffects[ImportSource]:
    """Return the source of a name, as it is there or begun now (seconds since 1970)."""
    epoch, there = yield from side_by_side(read_epoch(owner), read_source(owner, name))
    if there is not None:
        return there
    fresh = ImportSource(name, origin, uuid.uuid4().hex, timestamp(now), epoch)
    yield [put(owner.namespace("sources"), source_key(name), plain(fresh))]
    return fresh


def read_source(owner: Owner, name: str) -> StoreEffects[ImportSource | None]:
    """Read the source of a name."""
    epoch, item = yield from side_by_side(read_epoch(owner), read(owner.namespace("sources"), source_key(name)))
    return noted(ImportSource, item, epoch)


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """What a source holds: conversations, messages in the journal, and those that were written down to be learned."""

    source: ImportSource
    conversations: int
    messages: int
    learned: int


def read_sources(owner: Owner) -> StoreEffects[list[SourceCounts]]:
    """Read what was imported, oldest first."""
    epoch, items = yield from side_by_side(read_epoch(owner), scan(owner.namespace("sources")))
    talks = [talk for each in items if (talk := noted(ConversationProgress, each, epoch))]
    found = [source for each in items if (source := noted(ImportSource, each, epoch))]
    counts = []
    for source in sorted(found, key=lambda source: (source.begun, source.name)):
        own = [talk for talk in talks if talk.source == source.name]
        messages = sum(len(talk.told | talk.known) for talk in own)
        counts.append(SourceCounts(source, len(own), messages, sum(len(talk.known) for talk in own)))
    return counts
