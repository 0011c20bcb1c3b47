"""What was learned of a thread: hashes of what is never read again, and the newest turns, by ids without words.

These tell a later turn what was edited away since.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, Self

from langgraph.store.base import Op

from memory.config import MemoryConfig
from memory.control import read_rows, write_rows
from memory.door import ask, put, read
from memory.facts import rules
from memory.facts.rows import read_fact_set, save
from memory.forms import of_item, plain
from memory.message import StoredMessage, iso_time
from memory.namespaces import Owner, thread_namespace
from memory.text import digest
from memory.updates.entry import Entry, LearnedTurn, Said
from memory.updates.transcript import AGE, BEGINNING, ThreadView, hashes_of, without_edits

logger = logging.getLogger(__name__)

_MOST_MESSAGES: Final = 150
"""So many messages of a thread are named, the newest: each turn reads them."""


@dataclass(frozen=True, slots=True)
class ThreadNote:
    """What is noted of a thread.

    Attributes:
        late: The turns that were written down after they ended, by digests, oldest first.
        learned: The newest turns that were learned, oldest first.
    """

    late: tuple[str, ...] = ()
    learned: tuple[LearnedTurn, ...] = ()

    def with_learned(self, turns: Iterable[LearnedTurn]) -> Self:
        """Return the note with these turns as those that were learned, the newest of them."""
        kept, messages = list[LearnedTurn](), 0
        for turn in sorted(turns, key=attrgetter("created"), reverse=True):
            messages += len(turn.messages)
            if messages <= _MOST_MESSAGES:
                kept.insert(0, turn)
        return replace(self, learned=tuple(kept))

    def put(self, owner: Owner, thread_id: str) -> Op:
        """Return the write of it."""
        return put(thread_namespace(thread_id), owner.due_key, plain(self))


async def note_learned(owner: Owner, thread_id: str, entries: Iterable[Entry]) -> None:
    """Note in a thread that these entries of it were learned."""
    note = of_item(ThreadNote, await read(thread_namespace(thread_id), owner.due_key))
    turns = {turn.key: turn for turn in note.learned}
    for entry in entries:
        if entry.kind == "turn":
            said = [Said(one.id, one.role, _digest(one), seen=one.seen) for one in entry.messages]
            if not said[0].seen:
                said.insert(0, Said(BEGINNING + entry.first, "assistant", seen=True))
            turn = LearnedTurn(entry.created, tuple(said), entry.edited_away, entry.overlapped)
            turns[turn.key] = turn
    await ask(note.with_learned(turns.values()).put(owner, thread_id))


def _digest(message: StoredMessage) -> str:
    return digest(message.text)[:12] if message.role != "assistant" else ""


async def go_on_from(
    draft: Entry, view: ThreadView, pending: dict[str, Entry], note: ThreadNote, config: MemoryConfig
) -> tuple[dict[str, Entry], ThreadNote]:
    """Have facts follow the branch that a thread goes on from, and the newest words of its messages.

    Args:
        draft: The turn that goes on.
        view: What the thread holds then.
        pending: The thread's entries, that turn among them, by key.
        note: What is noted of the thread.
        config: The limit of facts.

    Returns:
        The entries and the note as they become.
    """
    before = {turn.key: turn for turn in note.learned}
    known: dict[str, Any] = before | pending
    every: dict[str, Any] = {one.key: one for one in without_edits(sorted(known.values(), key=AGE), view, draft)}
    if every != known:
        logger.info("thread %s goes on from another branch", draft.thread_id)
    pending, after = ({key: every[key] for key in turns} for turns in (pending, before))
    was, gone = ({each for turn in turns.values() for each in turn.edited_away} for turns in (before, after))
    again: tuple[StoredMessage, ...] = ()
    if after != before:
        note = note.with_learned(after.values())
        # What was edited away before it was learned has to be read now; the rest is known again by its words.
        again = view.words(was - gone, iso_time(draft.created))
        cut = replace(draft, kind="cut", messages=again)
        pending |= {cut.key: cut} if again else {}
    words_of = {one.id: one.text for turn in before.values() for one in turn.messages if one.text}
    was, gone = was & words_of.keys(), gone & words_of.keys()
    said = {one: _digest(one) for one in (*draft.messages, *again) if not one.seen and one.role != "assistant"}
    rewritten = {one.id for one, words in said.items() if words_of.get(one.id, words) != words}
    # What was left has taught nothing: said again, the same words are read again.
    left = {words_of[each] for each in gone}
    anew = {one.id for one, words in said.items() if words in left or one.id in rewritten}
    there = (*draft.messages, *again) if anew else ()
    unread = {each for one, known in zip(there, hashes_of(there), strict=True) if one.id in anew for each in known}
    flushed = await read_flushed(draft.owner, draft.thread_id) if unread else {}
    if not unread.isdisjoint(flushed):
        await write_flushed(draft.owner, draft.thread_id, [each for each in flushed if each not in unread])
    if was != gone or rewritten:
        facts = await read_fact_set(draft.owner, now=iso_time(draft.created), config=config)
        rules.follow_branch(facts, draft.thread_id, gone, was - gone, rewritten)
        await save(facts)
    return pending, note


async def read_flushed(owner: Owner, thread_id: str) -> dict[str, None]:
    """Read the hashes of what was flushed in a thread, in the order in which it was, to be looked up."""
    found = [item.value.get("hashes") for item in await read_rows(owner, "seen", [_flushed_key(thread_id)])]
    return {str(each): None for hashes in found if isinstance(hashes, list) for each in hashes}


async def write_flushed(owner: Owner, thread_id: str, flushed: Sequence[str]) -> None:
    """Write what was flushed in a thread: it is never read again."""
    await write_rows(owner, "seen", {_flushed_key(thread_id): {"thread_id": thread_id, "hashes": [*flushed]}})


def _flushed_key(thread_id: str) -> str:
    return digest("seen", thread_id)[:32]
