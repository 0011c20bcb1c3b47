"""Pending updates, written down before the turn ends: entries, and due markers.

An entry lives under its owner's own namespace; its due marker, in a shard that all users share, lets any process
find it.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated

from langgraph.store.base import Item, MatchCondition
from pydantic import Field

from memory.config import MemoryConfig
from memory.control import Control, read_control
from memory.door import (
    StoreEffects,
    ask,
    delete,
    list_namespaces,
    put,
    read,
    read_many,
    scan,
    side_by_side,
    transaction,
)
from memory.forget.threads import ErasedThread, erased_between, read_thread_erase
from memory.forms import of_item, plain, read_as
from memory.namespaces import DUE, Kind, Owner, owner_of, thread_namespace
from memory.text import digest
from memory.updates.entry import Entry
from memory.updates.learned import ThreadNote, go_on_from
from memory.updates.transcript import AGE, ThreadView

logger = logging.getLogger(__name__)

# Clocks of two processes differ: what was changed so short a time before a turn may have been changed after it.
_MARGIN_SECONDS = 300.0
_LATE_KEPT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """When a turn ended, and whether memory was read in it: for turns that are written down late, after an outage.

    Attributes:
        asked: Id of the user message that it answers.
        at: When it ended, in seconds since the epoch.
        is_read: Whether memory could be read when it began. If not, nobody knows whether the user had learning paused
            then, and its epochs are older than the turn, or none.
    """

    asked: Annotated[str, Field(min_length=1)]
    at: float
    is_read: bool = False

    def may_be_learned(self, epoch: str, control: Control, thread: ErasedThread) -> bool:
        """Say whether a late turn may be learned for all that its epochs do not tell; in doubt it may not.

        Args:
            epoch: The user's epoch when it began; empty if nobody read it.
            control: The user's now.
            thread: The last erase of the thread.
        """
        times = [thread.at, *(() if epoch else (control.epoch_at,)), *(() if self.is_read else (control.learning_at,))]
        return all(not at or at < self.at - _MARGIN_SECONDS for at in times)


@transaction
async def record(
    draft: Entry,
    view: ThreadView | None = None,
    *,
    thread_epoch: str = "",
    late: Late | None = None,
    config: MemoryConfig = MemoryConfig(),  # noqa: B008 - a frozen value
) -> Entry | None:
    """Write down an update: whose thread it is, the entry, its due marker. Writing it down twice changes nothing.

    Args:
        draft: The entry; without an epoch it gets the user's current one.
        view: What the thread holds now: in entries of earlier turns, the messages that the user edited away are named
            as such, and facts that were learned from such messages alone end. `None` leaves all as it is.
        thread_epoch: The thread's epoch when the turn began; empty if nobody read it.
        late: Set for a turn that is written down after it ended: it is written once, even if its entry was done since,
            and only if it certainly may be learned.
        config: The limit of facts: what had ended with an edit may come back.

    Returns:
        The entry; `None`, and nothing is written, if everything was erased since the draft's epoch, if the thread was
        erased since the thread's epoch, or while the user has learning paused.
    """
    owner = draft.owner
    control, erase, stored, (noted, marker) = await side_by_side(
        read_control(owner),
        read_thread_erase(draft.thread_id),
        read_entries(owner, [draft.key] if view is None else None),
        side_by_side(read(thread_namespace(draft.thread_id), owner.due_key), read(DUE, owner.due_key)),
    )
    entry = replace(draft, epoch=draft.epoch or control.epoch)
    # After which edits by hand it was said nobody knows of what a summary cuts, nor of a turn that could not read it,
    # where that is written down later: then times tell.
    if entry.kind == "turn" and (late is None or late.is_read):
        messages = tuple(replace(message, edit=message.edit or control.edit) for message in entry.messages)
        entry = replace(entry, messages=messages)
    is_erased = entry.epoch != control.epoch or erased_between(thread_epoch, erase.epoch)
    if is_erased or not control.learning or (late and not late.may_be_learned(draft.epoch, control, erase)):
        return None
    note = before = of_item(ThreadNote, noted)
    if late:
        # With the time: a question that was edited under its id is asked again.
        turn = digest(late.asked, repr(late.at))
        if turn in note.late:
            return None
        note = replace(note, late=(*note.late, turn)[-_LATE_KEPT:])
    of_thread = {one.key: one for one in stored if one.thread_id == entry.thread_id}
    earlier = of_thread.get(entry.key)
    if earlier and earlier.contents == entry.contents:
        entry = earlier  # it keeps its attempts
    of_thread[entry.key] = entry
    words = {one.id: one.text for one in entry.messages}
    # Each may be read alone, and a message was rewritten: what was said before is in the words that it has now.
    for one in [one for one in of_thread.values() if one.created <= entry.created and one is not entry]:
        said = (replace(each, text=words.get(each.id, each.text)) for each in one.messages)
        of_thread[one.key] = replace(one, messages=tuple(said))
    if view is not None:
        of_thread, note = await go_on_from(entry, view, of_thread, note, config)
    if not noted or note != before:
        await ask(note.put(owner, entry.thread_id))
    await change(owner, stored, [*stored, *of_thread.values()])
    # With one more entry the marker is due no later than before.
    await ask(put(DUE, owner.due_key, {"due": min(_due_of(marker, entry.due), entry.due)}))
    return entry


async def read_entries(owner: Owner, keys: Sequence[str] | None = None) -> list[Entry]:
    """Read the entries of an owner, all or those with the given keys, in the order in which they were written down."""
    namespace, entries = owner.namespace("outbox"), list[Entry]()
    items = await scan(namespace) if keys is None else await read_many(namespace, keys)
    for item in filter(None, items):
        with suppress(ValueError):
            entry = read_as(Entry, item.value)
            # What stands under a key that is not its own could never be deleted once it is done.
            if entry.key == item.key:
                entries.append(entry)
                continue
        logger.warning("outbox item %s is no entry and is left alone", item.key)
    return sorted(entries, key=AGE)


async def change(owner: Owner, before: Iterable[Entry], after: Iterable[Entry]) -> None:
    """Write what differs between some entries that an owner had and has; of one key the last counts.

    The due marker is left as it is: it may be due too early, which costs one look.
    """
    namespace = owner.namespace("outbox")
    was, now = ({entry.key: entry for entry in entries} for entries in (before, after))
    changed = [put(namespace, key, plain(entry)) for key, entry in now.items() if was.get(key) != entry]
    await ask(*changed, *(delete(namespace, key) for key in was if key not in now))


async def mark(owner: Owner, entries: Collection[Entry]) -> None:
    """Write when the next of these, which are all of the owner's entries, is due."""
    due = min((entry.due for entry in entries if entry.state != "dead"), default=None)
    await ask(delete(DUE, owner.due_key) if due is None else put(DUE, owner.due_key, {"due": due}))


async def rewrite(owner: Owner, becomes: Callable[[Entry], Entry | None]) -> list[Entry]:
    """Write what each of an owner's entries becomes, and return those that change; `None` deletes one."""
    entries = await read_entries(owner)
    # An entry whose new key is taken already is dropped for the one that is there: of one key the last counts.
    after = sorted(((entry, becomes(entry)) for entry in entries), key=lambda pair: pair[0] == pair[1])
    left = [now for _, now in after if now]
    await change(owner, entries, left)
    await mark(owner, left)
    return [entry for entry, now in after if entry != now]


async def redact(owner: Owner, gone: Mapping[str, Collection[str]]) -> None:
    """Take messages, by thread, out of what is pending: whoever has asked a model about them finds them changed."""

    def without(entry: Entry) -> Entry | None:
        kept = tuple(message for message in entry.messages if message.id not in gone.get(entry.thread_id, ()))
        if kept == entry.messages or any(not message.seen for message in kept):
            return replace(entry, messages=kept)
        return None

    await rewrite(owner, without)


@transaction
def settle_dead(owner: Owner, key: str, retry_at: float | None) -> StoreEffects[list[Entry]]:
    """Give a dead letter another chance from then on (seconds since the epoch), or delete it; return it as it was."""

    def settled(entry: Entry) -> Entry | None:
        if entry.state != "dead" or entry.key != key:
            return entry
        return None if retry_at is None else replace(entry, state="pending", attempts=0, due=retry_at, error="")

    return rewrite(owner, settled)


def _due_of(marker: Item | None, default: float) -> float:
    due = marker.value.get("due") if marker else None  # somebody may have edited it by hand
    return float(due) if isinstance(due, int | float) else default


async def due_owners(now: float) -> list[Owner]:
    """Read the owners whose marker is due at `now` (seconds since the epoch)."""
    return _owners(item for item in await scan(DUE) if _due_of(item, 0.0) <= now)


async def read_owners(thread_id: str) -> list[Owner]:
    """Read whose memory a thread fed."""
    return _owners(await scan(thread_namespace(thread_id)))


def _owners(items: Iterable[Item]) -> list[Owner]:
    """Return the owners that keys of due markers, or of a thread's notes, name."""
    return [owner for item in items if (owner := Owner.from_due_key(item.key))]


async def owners_with(*kinds: Kind) -> list[Owner]:
    """Read every owner who has items of these kinds. It lists across all users: for once a day, not for a turn."""
    found = list[tuple[str, ...]]()
    for kind in kinds:
        found += await list_namespaces(MatchCondition("suffix", (kind,)))
    return list(dict.fromkeys(filter(None, map(owner_of, found))))
