"""Erase wins: everything of a user, all that came from a thread, or one fact, also while an update is under way.

Each is one transaction of a user: an update that asks a model meanwhile finds its words gone, and writes nothing.
"""

import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial

from langgraph.store.base import BaseStore, Item, MatchCondition

from memory.control import change_control, read_control, read_rows
from memory.door import Batch, StoreEffects, arun, ask, delete, list_namespaces, run, scan, side_by_side, transaction
from memory.facts.chain import Chain
from memory.facts.fact_set import FactSet
from memory.facts.rows import read_fact_set, save
from memory.forget.threads import write_thread_epoch
from memory.journal.journal import read_journal, redact_journal, revision_drop, write_lines
from memory.message import StoredMessage, find_gone, iso_time
from memory.namespaces import DUE, Kind, Owner, is_imported, owner_of, thread_namespace
from memory.screening.values import NO_SECRETS
from memory.updates import outbox
from memory.updates.rollup import PROGRESS_KEY, untell

_OF_THREADS: tuple[Kind, ...] = ("profile", "facts", "history", "journal", "seen", "receipts")


def erase_thread(store: BaseStore, thread_id: str, *, clock: Callable[[], float] = time.time) -> int:
    """Erase what came from a thread in every memory that it fed, and cancel what is pending of it.

    What assistants said of its facts in other threads leaves the journal and is not told again; what a person said
    there stays, and so do those conversations.

    Args:
        store: Where memory is kept.
        thread_id: The thread; an unknown one is no error.
        clock: Returns seconds since the epoch.

    Returns:
        How many items were deleted.
    """
    return run(store, _erase_thread(thread_id, clock()))


async def aerase_thread(store: BaseStore, thread_id: str, *, clock: Callable[[], float] = time.time) -> int:
    """Do what `erase_thread` does, asynchronously."""
    return await arun(store, _erase_thread(thread_id, clock()))


async def _erase_thread(thread_id: str, now: float) -> int:
    # Before the owners are read: a turn that becomes one afterwards finds the new epoch, and writes nothing down.
    await write_thread_epoch(thread_id, uuid.uuid4().hex, now)
    deleted = 0
    for owner in sorted(await outbox.read_owners(thread_id), key=lambda owner: owner.due_key):
        deleted += await _erase_thread_of(owner, thread_id, now)
    return deleted


@transaction
async def _erase_thread_of(owner: Owner, thread_id: str, now: float) -> int:
    facts = await read_fact_set(owner, now=iso_time(now))
    facts.note_erasure()
    cancelled = await outbox.rewrite(owner, lambda entry: entry if entry.thread_id != thread_id else None)
    said = facts.first_said_in(thread_id)

    def is_echo(thread: str, one: StoredMessage) -> bool:
        # What a person said in other threads stays, and so do sections that hold a word of it.
        return one.role == "assistant" and said.is_in(thread, one)

    deleted = await forget_rows_of(facts, thread_id.__eq__)
    if said.ids:
        facts.count_edit()
        await _forget_words(facts, is_echo, said.is_told_in)
    else:  # no fact is from it, so the journal need not be read
        await save(facts)
    await ask(delete(thread_namespace(thread_id), owner.due_key))
    return len(cancelled) + deleted


async def forget_rows_of(facts: FactSet, is_gone: Callable[[str], bool]) -> int:
    """Delete every row of this epoch that came from certain threads, and return how many.

    A fact that was said in several threads goes with the first of them. Facts of other threads lose their confirmations
    from these. Which thread a sentence of the profile is from, nobody can say: all of it goes, and is told again from
    what is left.

    Args:
        facts: The owner's facts, which the caller saves afterwards.
        is_gone: Says which threads, by their ids.
    """
    owner = facts.owner
    every: Sequence[list[Item]] = await side_by_side(*(read_rows(owner, kind) for kind in _OF_THREADS))
    profile, *found = every
    rows = [item for items in found for item in items if is_gone(_thread_of(item))]
    stay = {fact.id for fact in facts.rows.values() if not is_gone(fact.thread_id)}
    ids = {item.value.get("id") for item in rows if item.namespace[-1] in ("facts", "history")} - stay
    facts.said = {key: each.without_threads(is_gone) for key, each in facts.said.items() if key not in ids}
    if not rows:
        return 0
    await write_lines(owner, {}, dict.fromkeys(item.key for item in rows if item.namespace[-1] == "journal"))
    await ask(
        *(delete(item.namespace, item.key) for item in (*profile, *rows) if item.namespace[-1] != "journal"),
        delete(owner.namespace("journal"), PROGRESS_KEY),
    )
    return len(rows)


@transaction
async def erase_fact(owner: Owner, fact_id: str, now: float) -> Chain:
    """Erase one fact, also one that is only history, wherever memory of this agent holds what it said.

    With it go the facts that it corrected and that corrected it, all their revisions and confirmations. Journal and
    pending updates lose the messages that these came from, that said them again, or that hold their words (the rule is
    that of `memory.facts.chain`), and the replies to those. Profile and history lose the sections that hold the words
    or tell of such messages; they are told again from what is left. Nothing of it is learned or told again from what
    was said before, and no undo reaches behind it. The conversations are not touched.

    Args:
        owner: Whose memory it is.
        fact_id: Which fact.
        now: Seconds since the epoch.

    Returns:
        What went: its `ids`; its `sources`, whose threads still hold the words; and what finds them in a text.

    Raises:
        FactNotFound: If no fact has or had the id.
    """
    facts = await read_fact_set(owner, now=iso_time(now))
    chain = facts.chain_with(fact_id)
    facts.erase(chain)
    await _forget_words(facts, chain.is_in, partial(chain.is_told_in, is_source=True))
    return chain


async def _forget_words(
    facts: FactSet,
    is_gone: Callable[[str, StoredMessage], bool],
    is_told: Callable[[str], bool],
) -> None:
    """Save the facts; take what tells of erased ones out of journal, pending updates and profile, which is told again.

    Args:
        facts: What is there.
        is_gone: Says which messages go, by their threads.
        is_told: Says which sections go.
    """
    owner = facts.owner
    gone = find_gone(await _read_conversations(owner), is_gone)
    if gone:
        facts.bar_messages(gone)
    await save(facts)
    changed = await redact_journal(owner, gone)
    await outbox.redact(owner, gone)
    await untell(owner, changed, is_told)


async def threads_telling(owner: Owner, chain: Chain) -> frozenset[str]:
    """Return the threads that hold the words of facts, as far as the journal and pending updates tell."""
    if not chain.ids:
        return frozenset()
    conversations = await _read_conversations(owner)
    return frozenset(chain.sources) | find_gone(conversations, chain.is_in).keys()


async def _read_conversations(owner: Owner) -> list[tuple[str, tuple[StoredMessage, ...]]]:
    # Journal and pending updates hold a fact's words also in messages that it did not come from.
    journal = await read_journal(owner)
    entries = await outbox.read_entries(owner)
    told = [(entry.thread_id, entry.messages) for entry in journal]
    return [*told, *((entry.thread_id, entry.messages) for entry in entries)]


async def threads_feeding(user_id: str) -> list[str]:
    """Return the ids of the threads that fed the memory of this user, for any agent, and of nobody else.

    Only turns that were written down count, never an import, whatever ids its rows name.
    """
    user = Owner.of(user_id)
    named: set[str] = set()
    for namespace in await _namespaces(user):
        named.update(map(_thread_of, await scan(namespace)))
    fed = []
    for thread_id in sorted(each for each in named if each and not is_imported(each)):
        owners = await outbox.read_owners(thread_id)
        if owners and all(owner.segment == user.segment for owner in owners):
            fed.append(thread_id)
    return fed


@transaction
async def erase_user(user: Owner, now: float) -> int:
    """Erase everything that is remembered about a user, for every agent, and cancel what is pending.

    Args:
        user: Whose memory, of whichever agent.
        now: Seconds since 1970.

    Returns:
        How many items were deleted.
    """
    erased, epoch = (await read_control(user)).erased + 1, uuid.uuid4().hex
    await change_control(
        user, epoch=epoch, epoch_at=now, erased=erased, erased_at={}, secrets=NO_SECRETS, time_zone=None,
        assistants_time_zone=None,
    )  # fmt: skip
    deleted = 0
    for namespace in await _namespaces(user):
        items = await scan(namespace)
        if items and namespace != user.control:
            deletes: Batch = [delete(namespace, item.key) for item in items]
            if owner := owner_of(namespace):
                threads = {_thread_of(item) for item in items} - {""}
                notes = [delete(thread_namespace(thread_id), owner.due_key) for thread_id in sorted(threads)]
                deletes = [*deletes, delete(DUE, owner.due_key), *notes, revision_drop(owner)]
            await ask(*deletes)
            deleted += len(items)
    return deleted


def _namespaces(user: Owner) -> StoreEffects[list[tuple[str, ...]]]:
    """List every namespace of a user."""
    return list_namespaces(MatchCondition("prefix", user.control[:-1]))


def _thread_of(item: Item) -> str:
    """Return the thread that an item came from; empty if it came from none."""
    return str(item.value.get("thread_id") or "")
