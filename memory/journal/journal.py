"""The dated journal of what was said: one item an exchange, written when its update is applied.

An item is keyed by thread and first message, so that writing it down twice is the same as once, and holds the source
text, so that it can be read when the thread or its summary no longer tells. Whatever changes the journal changes its
revision in the same transaction: an item of the user's control, which a turn reads anyway, so that what holds the
journal in memory can tell there whether it is current.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

from langgraph.store.base import Item, PutOp
from pydantic import Field

from memory.control import INITIAL_EPOCH, Control, count_edit, read_control, read_rows, write_rows
from memory.door import ask, delete, put, read, scan, side_by_side, transaction
from memory.forms import of_item, of_items, plain
from memory.journal.entry import JournalEntry, entry_key, outdated
from memory.namespaces import Owner

_KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class JournalRevision:
    """What tells whether a copy of the journal is current, and otherwise what has changed.

    Attributes:
        number: How many items of the journal were ever written or deleted.
        keys: Those of the newest of these, oldest first.
        epoch: The user's; entries of others are gone.
        edit: The number of the user's newest edit by hand: after one, other lines may be told.
    """

    number: int = 0
    keys: tuple[str, ...] = ()
    epoch: Annotated[str, Field(exclude=True)] = INITIAL_EPOCH
    edit: Annotated[int, Field(exclude=True)] = 0

    def changed(self, keys: Sequence[str]) -> "JournalRevision":
        """Return the revision after one more change; of very many keys everybody has to read all again."""
        return JournalRevision(self.number + len(keys), (*self.keys, *keys)[-_KEPT:])

    def keys_since(self, known: "JournalRevision") -> frozenset[str] | None:
        """Return the keys of what was written or deleted since another one; `None` if all has to be read again."""
        since = self.number - known.number
        is_followed = (self.epoch, self.edit) == (known.epoch, known.edit) and 0 <= since <= len(self.keys)
        return frozenset(self.keys[len(self.keys) - since :]) if is_followed else None


async def read_revision(owner: Owner) -> JournalRevision:
    """Read the journal's revision; a garbled one is none, and all is read again."""
    control, item = await side_by_side(read_control(owner), read(owner.control, _revision_key(owner)))
    return replace(of_item(JournalRevision, item), epoch=control.epoch, edit=control.edit)


def revision_drop(owner: Owner) -> PutOp:
    """Return the write that drops the revision: the journal is gone."""
    return delete(owner.control, _revision_key(owner))


def _revision_key(owner: Owner) -> str:
    return f"journal.{owner.agent_name}"  # a user's agents share their control


async def write_lines(
    owner: Owner, before: Mapping[str, JournalEntry], after: Mapping[str, JournalEntry | None]
) -> None:
    """Write what becomes of entries, by their keys, as a part of what a caller writes, with the revision.

    Where something waits that was told, that counts as an edit by hand: by it, who holds the journal in memory, and the
    prompts that show a line, know that they must leave it out.

    Args:
        owner: Whose journal.
        before: What is there of them.
        after: What is to be there; `None` deletes one.
    """
    changed = {key: each for key, each in after.items() if before.get(key, before) != each}
    if not changed:
        return
    revision = (await read_revision(owner)).changed(sorted(changed))
    await write_rows(owner, "journal", {key: plain(each) if each else None for key, each in changed.items()})
    await ask(put(owner.control, _revision_key(owner), plain(revision)))
    told = {(key, one.id) for key, each in before.items() for one in each.messages if one.id not in each.held}
    if any((key, one) in told for key, each in changed.items() if each for one in each.held):
        await count_edit(owner)


async def read_held(
    owner: Owner, thread_id: str, message_ids: Iterable[str], *, whole_thread: bool
) -> dict[str, JournalEntry]:
    """Read what the journal has of some messages, by key, and in the same batch the revision that a write will read.

    Args:
        owner: Whose journal.
        thread_id: Their thread.
        message_ids: The messages. Of an exchange, one of them has to be the first.
        whole_thread: Read all that the journal has of the thread: a summary may cut between a message and its answer.
    """
    keys, where = [entry_key(thread_id, each) for each in message_ids], {"thread_id": thread_id}
    found = read_rows(owner, "journal", where=where) if whole_thread else read_rows(owner, "journal", keys)
    items, _ = await side_by_side(found, read_revision(owner))
    return entries_in(items)


async def tell(owner: Owner, held: Mapping[str, JournalEntry], fresh: Iterable[JournalEntry]) -> None:
    """Have the journal tell the fresh entries too, as a part of what a caller writes; each message stands once.

    Args:
        owner: Whose journal.
        held: What is in it of these exchanges or threads, by key. An exchange that a summary cut in two finds its
            beginning there, and gains what it lacks.
        fresh: What was said.
    """
    homes = {(entry.thread_id, one.id): key for key, entry in held.items() for one in entry.messages}
    after = dict(held)
    for entry in fresh:
        key = homes.get((entry.thread_id, entry.messages[0].id), entry.key)
        stored = after.get(key)
        after[key] = stored.joined(entry) if stored else entry
    await write_lines(owner, held, after)


async def hold_repeats(owner: Owner, before: Control) -> None:
    """Let the lines wait that repeat a secret, as a part of the transaction in which that became known.

    Only then the whole journal is read.

    Args:
        owner: Whose journal.
        before: The user's control as it was before.
    """
    control = await read_control(owner)
    if control.secrets == before.secrets:
        return
    told = {each.key: each for each in await read_journal(owner)}
    await write_lines(owner, told, {key: each.screened((), control.secrets) for key, each in told.items()})


@transaction
async def append(owner: Owner, entries: Sequence[JournalEntry]) -> None:
    """Write the entries; one that is there already gains the messages that it lacks (`JournalEntry.joined`)."""
    if entries:
        await tell(owner, entries_in(await read_rows(owner, "journal", [entry.key for entry in entries])), entries)


async def read_journal(owner: Owner) -> list[JournalEntry]:
    """Read all entries, oldest first."""
    found = entries_in(await read_rows(owner, "journal")).values()
    return sorted(found, key=lambda entry: (entry.day, entry.messages[0].time, entry.key))


async def read_journal_entries(owner: Owner, keys: Sequence[str]) -> list[JournalEntry]:
    """Read the entries of these keys, in their order; those that are gone are left out."""
    return [*entries_in(await read_rows(owner, "journal", keys)).values()]


@dataclass(frozen=True, slots=True)
class JournalView:
    """The journal of an owner, or what changed of it, as it was at one moment.

    Attributes:
        revision: The journal's; it is read no later than the entries: a newer one would hide that they are old.
        entries: By key; `None` in the place of one of which nothing is there any more, or may be told.
        is_whole: Whether these are all entries; if not, they take the place of those with their keys.
    """

    revision: JournalRevision
    entries: Mapping[str, JournalEntry | None]
    is_whole: bool


async def read_view(owner: Owner, known: JournalView | None = None) -> JournalView:
    """Read the journal, or only what was written since a view, where the journal still knows what that was.

    Args:
        owner: Whose journal.
        known: What the caller has. A revision that cannot be followed reads everything.
    """
    now = await read_revision(owner)
    keys = now.keys_since(known.revision) if known else None
    entries = entries_in(await read_rows(owner, "journal", None if keys is None else sorted(keys)))
    return JournalView(now, {**dict.fromkeys(keys or ()), **entries}, is_whole=keys is None)


def entries_in(items: Iterable[Item]) -> dict[str, JournalEntry]:
    """Return the entries by key; what was garbled by a hand is none."""
    return {key: replace(entry, place=key) for key, entry in of_items(JournalEntry, items).items()}


async def prune(owner: Owner, today: str, days: int, max_bytes: int) -> int:
    """Delete the entries that are kept no longer (`memory.journal.entry.outdated`), and return how many."""
    held = entries_in(await scan(owner.namespace("journal")))
    gone = outdated(held, today, days, max_bytes)
    await write_lines(owner, held, dict.fromkeys(gone))
    return len(gone)


async def redact_journal(owner: Owner, gone: Mapping[str, Collection[str]]) -> list[JournalEntry]:
    """Take messages, by thread, out of the journal, and entries that hold nothing else; return those that changed."""
    held = entries_in(await read_rows(owner, "journal"))
    left = {key: entry.without(gone.get(entry.thread_id, ())) for key, entry in held.items()}
    await write_lines(owner, held, left)
    return [entry for key, entry in held.items() if left[key] != entry]
