"""What was imported, by the name under which it can be taken back: items of the user's own, ids and counts only."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from langgraph.store.base import Item, Op

from memory.backfill.conversation import ORIGINS, Conversation, Origin
from memory.control import belongs, read_epoch
from memory.door import transaction
from memory.effects import StoreEffects, delete, put, read, scan, side_by_side
from memory.facts.fact import timestamp
from memory.namespaces import Owner, checked_source, imported_thread, source_unit
from memory.text import digest

_SOURCE = "source."
_TALK = "talk."


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

    def to_json(self) -> dict[str, object]:
        """Return the JSON form that the store keeps."""
        return asdict(self)

    @classmethod
    def of_item(cls, item: Item | None, epoch: str) -> Self | None:
        """Return the source of an item; `None` if there is none, or it was erased."""
        if item is None or not belongs(item.value, epoch):
            return None
        name, origin, token, begun = (item.value.get(key) for key in ("name", "origin", "token", "begun"))
        known = next((one for one in ORIGINS if one == origin), None)
        if known is None or not (isinstance(name, str) and isinstance(token, str)):
            return None
        return cls(name, known, token, str(begun or ""), epoch)

    def unit(self, owner: Owner) -> str:
        """Return what the ids of its threads begin with."""
        return source_unit(owner, self.name)


@dataclass(frozen=True, slots=True)
class ConversationProgress:
    """How far one conversation is imported.

    Attributes:
        source: The name of the source that brought it.
        thread_id: Under which id memory knows it.
        told: By `short_id`, the messages that were written into the journal.
        known: The messages that were written down to be learned.
    """

    source: str
    thread_id: str
    told: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()

    def to_json(self, epoch: str) -> dict[str, object]:
        """Return the JSON form that the store keeps; no text, and no id of a message as it was given."""
        notes = {"told": sorted(self.told), "known": sorted(self.known)}
        return {"source": self.source, "thread_id": self.thread_id, **notes, "epoch": epoch}

    @classmethod
    def of_item(cls, item: Item | None, epoch: str) -> Self | None:
        """Return what an item notes; `None` if it notes nothing of this epoch."""
        if item is None or not belongs(item.value, epoch):
            return None
        value: Mapping[str, Any] = item.value
        told, known = (value.get(name) for name in ("told", "known"))
        if not (isinstance(value.get("source"), str) and isinstance(told, list) and isinstance(known, list)):
            return None
        return cls(value["source"], str(value.get("thread_id")), frozenset(map(str, told)), frozenset(map(str, known)))


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
    epoch, item = yield from side_by_side(read_epoch(owner), read(owner.namespace("sources"), source_key(name)))
    if (there := ImportSource.of_item(item, epoch)) is not None:
        return there
    fresh = ImportSource(name, origin, uuid.uuid4().hex, timestamp(now), epoch)
    yield [put(owner.namespace("sources"), source_key(name), fresh.to_json())]
    return fresh


def read_source(owner: Owner, name: str) -> StoreEffects[ImportSource | None]:
    """Read the source of a name."""
    epoch, item = yield from side_by_side(read_epoch(owner), read(owner.namespace("sources"), source_key(name)))
    return ImportSource.of_item(item, epoch)


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
    talks = [
        talk for item in items if item.key.startswith(_TALK) and (talk := ConversationProgress.of_item(item, epoch))
    ]
    found = [source for item in items if item.key.startswith(_SOURCE) and (source := ImportSource.of_item(item, epoch))]

    def counted(source: ImportSource) -> SourceCounts:
        own = [talk for talk in talks if talk.source == source.name]
        messages, learned = sum(len(talk.told | talk.known) for talk in own), sum(len(talk.known) for talk in own)
        return SourceCounts(source, len(own), messages, learned)

    return [counted(source) for source in sorted(found, key=lambda source: (source.begun, source.name))]


def drop_source(owner: Owner, name: str) -> StoreEffects[Sequence[str]]:
    """Delete a source and what is noted of its conversations; return the ids of their threads."""
    namespace = owner.namespace("sources")
    items = yield from scan(namespace, where={"source": name})
    writes: list[Op] = [delete(namespace, source_key(name)), *(delete(namespace, item.key) for item in items)]
    yield writes
    return [str(item.value.get("thread_id") or "") for item in items]
