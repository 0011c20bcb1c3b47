"""What was imported under one name: begun, taken in, listed, taken back. Of it, ids and counts alone are noted.

What was said comes into the journal first, as evidence, and then goes the way of a turn: the same outbox, the same
extraction, the same screening. What is noted of a conversation comes last, so that an import that was killed goes on
where it was.
"""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC
from typing import NamedTuple, TypeVar

from langgraph.store.base import Item

from memory.backfill.conversation import PASTED, Conversation, Origin
from memory.config import Approval, MemoryConfig, stricter
from memory.control import INITIAL_EDIT, read_control, read_rows, write_rows
from memory.door import ask, delete, side_by_side, transaction
from memory.facts import rules
from memory.facts.fact_set import FactSet
from memory.facts.rows import forgotten_messages, read_fact_set, save
from memory.forget.erase import forget_rows_of
from memory.forget.threads import read_thread_erase, write_thread_epoch
from memory.forms import of_items, plain
from memory.journal.entry import JournalEntry, entries_of
from memory.journal.journal import append
from memory.message import day_of, iso_time, with_replies
from memory.namespaces import Owner, checked_source, imported_thread, source_unit, thread_namespace, unit_of
from memory.text import digest
from memory.updates import outbox
from memory.updates.entry import Entry
from memory.updates.transcript import exchanges, strip_scheduled, unseen

T = TypeVar("T")


class SourceGone(Exception):
    """The source is not there any more, or is another one of the same name: nothing of it may be taken in."""

    def __str__(self) -> str:
        return "this import is not under way, or was erased meanwhile: begin it anew"


class LearningPaused(Exception):
    """The user has learning paused: nothing new is written down."""

    def __str__(self) -> str:
        return "learning is paused: go on with it before you import"


class SourceNotFound(LookupError):
    """Nothing was imported under this name."""


@dataclass(frozen=True, slots=True)
class ImportSource:
    """Conversations that are imported together.

    Attributes:
        name: What a person calls it.
        origin: Where the first of them were held.
        token: Random; another one says that it was erased and begun anew.
        begun: When the import began, ISO 8601.
    """

    name: str
    origin: Origin
    token: str
    begun: str

    def unit(self, owner: Owner) -> str:
        """Return what the ids of its threads begin with."""
        return source_unit(owner, self.name)

    def thread_of(self, owner: Owner, conversation: Conversation) -> str:
        """Return the id under which memory knows one of its conversations."""
        return imported_thread(self.unit(owner), f"{conversation.origin}\0{conversation.id}")


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far one conversation is imported, by whichever source: no text, and no id of a message as it was given.

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


class TakenIn(NamedTuple):
    """What taking in a conversation did, in messages.

    Attributes:
        journal: How many came into the journal.
        queued: How many were written down to be learned.
        updates: In how many pending updates.
        known: How many had been taken in before, without the reply that only leads into a piece.
        elsewhere: How many conversations were left alone, as another source has them.
    """

    journal: int = 0
    queued: int = 0
    updates: int = 0
    known: int = 0
    elsewhere: int = 0


class TakenBack(NamedTuple):
    """What was taken back: items of memory that were deleted, facts that others support too, and facts put back."""

    items: int
    kept: int
    restored: int


def short_id(message_id: str) -> str:
    """Return by what it is noted that a message was written down: enough within one conversation, and no text."""
    return digest("message", message_id)[:12]


def _source_key(name: str) -> str:
    return f"source.{checked_source(name)}"


def _noted(kind: type[T], items: Iterable[Item]) -> T | None:
    """Return the source, or the progress, among items; `None` if there is none, or it was erased."""
    return next(iter(of_items(kind, items).values()), None)


async def read_source(owner: Owner, name: str) -> ImportSource | None:
    """Read the source of a name."""
    return _noted(ImportSource, await read_rows(owner, "sources", [_source_key(name)]))


async def read_sources(owner: Owner) -> list[tuple[ImportSource, dict[str, int]]]:
    """Read what was imported, oldest first, each with its numbers of conversations, messages and learned messages."""
    items = await read_rows(owner, "sources")
    talks, found = of_items(_Progress, items).values(), of_items(ImportSource, items).values()
    counted = []
    for source in sorted(found, key=lambda source: (source.begun, source.name)):
        own = [talk for talk in talks if talk.source == source.name]
        messages, learned = sum(len(talk.told) for talk in own), sum(len(talk.known) for talk in own)
        counted.append((source, {"conversations": len(own), "messages": messages, "learned": learned}))
    return counted


@transaction
async def open_source(owner: Owner, name: str, origin: Origin, now: float) -> ImportSource:
    """Return the source of a name, as it is there or begun now (seconds since 1970)."""
    there = await read_source(owner, name)
    if there is not None:
        return there
    fresh = ImportSource(name, origin, uuid.uuid4().hex, iso_time(now))
    await write_rows(owner, "sources", {_source_key(name): plain(fresh)})
    return fresh


@transaction
async def take_in(
    owner: Owner,
    source: ImportSource,
    conversation: Conversation,
    *,
    now: float,
    learn: bool,
    approval: Approval = "off",
) -> TakenIn:
    """Take in a conversation; twice is the same as once, also if two do it at the same time.

    Args:
        owner: Whose memory.
        source: What it belongs to.
        conversation: All of it, as it is known by now: of one that went on, what is new is taken in.
        now: Seconds since 1970.
        learn: Whether it is to be learned too; otherwise it is only written into the journal.
        approval: What waits for a yes by the deployment's word; the user may have asked for more.

    Raises:
        SourceGone: If the source was erased meanwhile; nothing of the conversation is left then.
        LearningPaused: If the user has learning paused.
    """
    thread_id = source.thread_of(owner, conversation)
    key = f"talk.{digest(conversation.origin, conversation.id)[:32]}"
    erase, noted, control = await side_by_side(
        read_thread_erase(source.unit(owner)),
        read_rows(owner, "sources", [_source_key(source.name), key]),
        read_control(owner),
    )
    current, zone = _noted(ImportSource, noted), control.zone or UTC
    if current is None or current.token != source.token:
        raise SourceGone
    if not control.learning:
        raise LearningPaused
    talk = _noted(_Progress, noted) or _Progress(source.name, thread_id)
    if talk.source != source.name:
        return TakenIn(elsewhere=1)
    held = strip_scheduled(conversation.messages)
    gone = await forgotten_messages(owner, thread_id, [one.id for one in held])
    dropped = with_replies(held, gone)
    # Whatever people changed by hand here, they changed after this was said.
    said = exchanges(replace(one, edit=INITIAL_EDIT) for one in held if one.id not in dropped)
    # What leads into a piece came with the piece before, or was erased since: it is not taken in here.
    lead = {short_id(one.id) for one in conversation.messages[: conversation.goes_on]}
    ids = frozenset(short_id(one.id) for each in said for one in each) - lead
    if untold := [each for each in said if any(short_id(one.id) in ids - talk.told for one in each)]:
        draft = JournalEntry(day_of(iso_time(now), zone), thread_id, (), source="turn")
        strict = stricter(approval, control.approval)
        await append(owner, entries_of(draft, untold, zone, approval=strict, secrets=control.secrets))
    # What somebody pasted tells nothing of them, nor does the answer to it alone.
    new = ids - talk.known - {short_id(one.id) for each in said if each[0].id.startswith(PASTED) for one in each}
    to_learn = unseen((replace(one, seen=short_id(one.id) not in new) for each in said for one in each), ())
    if learn and to_learn:
        entry = Entry(
            kind="turn", owner=owner, thread_id=thread_id, epoch=control.epoch, created=now, due=now, messages=to_learn
        )
        await outbox.record(entry, thread_epoch=erase.epoch)
    after = replace(talk, told=talk.told | ids, known=talk.known | ids if learn else talk.known)
    if after != talk:
        await write_rows(owner, "sources", {key: plain(after)})
    queued, known = (len(new), talk.known) if learn else (0, talk.told)
    return TakenIn(len(ids - talk.told), queued, bool(queued), len(ids & known))


@transaction
async def erase_source(owner: Owner, name: str, now: float, config: MemoryConfig) -> TakenBack:
    """Take back what was imported under a name; what is under way of it is cancelled, and comes to nothing.

    A fact stays if another conversation said it again, or a person changed or pinned it. What the import had replaced
    or ended is put back, unless something else says the same by now.

    Args:
        owner: Whose memory.
        name: The name of the source.
        now: Seconds since 1970.
        config: The limit of facts, and which categories are protected.

    Raises:
        SourceNotFound: If there is none.
    """
    if await read_source(owner, name) is None:
        raise SourceNotFound(f"nothing was imported as {name!r}; GET /memory/sources lists what was")
    unit = source_unit(owner, name)

    def is_gone(thread_id: str) -> bool:
        return unit_of(thread_id) == unit

    await write_thread_epoch(unit, uuid.uuid4().hex, now)
    cancelled = await outbox.rewrite(owner, lambda entry: entry if not is_gone(entry.thread_id) else None)
    facts = await read_fact_set(owner, now=iso_time(now), config=config)
    facts.note_erasure()
    kept, restored = _take_back_facts(facts, is_gone)
    deleted = await forget_rows_of(facts, is_gone)
    await save(facts)
    talks = await read_rows(owner, "sources", where={"source": name})
    await write_rows(owner, "sources", dict.fromkeys([_source_key(name), *(talk.key for talk in talks)]))
    threads = sorted({str(talk.value.get("thread_id")) for talk in talks})
    await ask(*(delete(thread_namespace(thread_id), owner.due_key) for thread_id in threads))
    return TakenBack(len(cancelled) + deleted - kept, kept, restored)


def _take_back_facts(facts: FactSet, is_gone: Callable[[str], bool]) -> tuple[int, int]:
    """Keep what others support, put back what these threads had taken away; return how many of each. Pure."""
    newest = {fact.id: fact for fact in facts.every}
    kept, going = 0, {fact.id for fact in facts.past if is_gone(fact.thread_id)}
    for fact in [fact for fact in facts.rows.values() if is_gone(fact.thread_id)]:
        elsewhere = [source for source in facts.sources_of(fact)[1:] if source[0] and not is_gone(source[0])]
        if elsewhere or fact.pinned or fact.edited_at:
            thread_id, message_ids = elsewhere[0] if elsewhere else ("", ())
            facts.put(replace(fact, thread_id=thread_id, message_ids=message_ids))
            kept += 1
        else:
            going.add(fact.id)
            facts.drop(fact.id)
    back = rules.come_back(facts, newest, going, is_gone)
    if back:
        facts.count_edit()
    return kept, len(back)
