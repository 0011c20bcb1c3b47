"""What was learned of a thread: hashes of what is never read again, and the newest turns, by ids without words.

These tell a later turn what was edited away since.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final

from memory.config import MemoryConfig
from memory.door import StoreEffects, put, read
from memory.facts import rules
from memory.facts.rows import read_fact_set, save
from memory.forms import belongs, plain, read_as
from memory.message import Role, StoredMessage, iso_time
from memory.namespaces import Owner, thread_namespace
from memory.text import digest, flush_hash
from memory.updates.entry import Entry
from memory.updates.transcript import BEGINNING

_MOST_MESSAGES: Final = 150
"""So many messages of a thread are named, the newest: each turn reads them."""


@dataclass(frozen=True, slots=True)
class _Learned:
    """One turn that was learned: of each message id, role, a digest of its words, and whether it was seen."""

    created: float
    messages: tuple[tuple[str, Role, str, str, bool], ...]
    edited_away: tuple[str, ...] = ()
    overlapped: bool = False


@dataclass(frozen=True, slots=True)
class _ThreadNote:
    """What a thread's note tells of such turns, oldest first."""

    learned: tuple[_Learned, ...] = ()


def learned_in(note: Mapping[str, Any], draft: Entry) -> dict[str, Entry]:
    """Return the turns that were learned, by keys of their own, as entries with digests in the place of words.

    Args:
        note: The thread's note.
        draft: What they have in common with any entry of the thread.
    """
    draft = replace(draft, kind="turn", thread_id="")
    turns = [
        replace(
            draft, created=one.created, edited_away=one.edited_away, overlapped=one.overlapped,
            messages=tuple(StoredMessage(*each) for each in one.messages),
        )
        for one in read_as(_ThreadNote, note, ()).learned
        if one.messages
    ]  # fmt: skip
    return {turn.key: turn for turn in turns}


def with_learned(note: Mapping[str, Any], turns: Iterable[Entry]) -> dict[str, Any]:
    """Return a thread's note with these turns as those that were learned, the newest of them."""
    kept, messages = list[_Learned](), 0
    for turn in sorted(turns, key=attrgetter("created"))[::-1]:
        messages += len(turn.messages)
        if messages <= _MOST_MESSAGES:
            said = tuple((one.id, one.role, one.text, "", one.seen) for one in turn.messages)
            kept.append(_Learned(turn.created, said, turn.edited_away, turn.overlapped))
    return {**note, **plain(_ThreadNote(tuple(reversed(kept))))}


def note_learned(owner: Owner, thread_id: str, entries: Iterable[Entry]) -> StoreEffects[None]:
    """Note in a thread that these entries of it were learned."""
    item = yield from read(thread_namespace(thread_id), owner.due_key)
    note = item.value if item else {}
    for entry in entries:
        if entry.kind == "turn":
            said = [replace(one, text=_digest(one)) for one in entry.messages]
            if not said[0].seen:
                said.insert(0, StoredMessage(BEGINNING + entry.first, "assistant", "", "", seen=True))
            turn = replace(entry, thread_id="", messages=tuple(said))
            note = with_learned(note, (learned_in(note, entry) | {turn.key: turn}).values())
    yield [put(thread_namespace(thread_id), owner.due_key, note)]


def _digest(message: StoredMessage) -> str:
    return digest(message.text)[:12] if message.role != "assistant" else ""


def turn_to_branch(
    draft: Entry, before: Mapping[str, Entry], after: Mapping[str, Entry], config: MemoryConfig
) -> StoreEffects[None]:
    """Have facts follow the branch that a thread goes on from, and the newest words of its messages.

    Args:
        draft: The turn that goes on, with the words of messages that are back.
        before: What was learned of the thread, by key, with what counted as edited away until now.
        after: The same, with what counts as edited away.
        config: The limit of facts.
    """
    known = {one.id: one.text for turn in before.values() for one in turn.messages if one.text}
    said = {one: _digest(one) for one in draft.messages if not one.seen and one.role != "assistant"}
    rewritten = {one.id for one, words in said.items() if known.get(one.id, words) != words}
    was, gone = (
        {each for turn in turns.values() for each in turn.edited_away if each in known} for turns in (before, after)
    )
    # What was left has taught nothing: said again, the same words are read again.
    left = {known[each] for each in gone}
    again = {flush_hash(one.role, one.text) for one, words in said.items() if words in left or one.id in rewritten}
    flushed = (yield from read_flushed(draft.owner, draft.thread_id, draft.epoch)) if again else {}
    if not again.isdisjoint(flushed):
        kept = [each for each in flushed if each not in again]
        yield from write_flushed(draft.owner, draft.thread_id, draft.epoch, kept)
    if was == gone and not rewritten:
        return
    facts = yield from read_fact_set(draft.owner, whole=True, now=iso_time(draft.created), config=config)
    rules.follow_branch(facts, draft.thread_id, gone, was - gone, rewritten)
    yield from save(facts)


def read_flushed(owner: Owner, thread_id: str, epoch: str) -> StoreEffects[dict[str, None]]:
    """Read the hashes of what was flushed in a thread, in the order in which it was, to be looked up."""
    item = yield from read(owner.namespace("seen"), _flushed_key(thread_id))
    hashes = item.value.get("hashes") if item and belongs(item.value, epoch) else None
    return dict.fromkeys(map(str, hashes)) if isinstance(hashes, list) else {}


def write_flushed(owner: Owner, thread_id: str, epoch: str, flushed: Sequence[str]) -> StoreEffects[None]:
    """Write what was flushed in a thread: it is never read again."""
    value = {"thread_id": thread_id, "hashes": [*flushed], "epoch": epoch}
    yield [put(owner.namespace("seen"), _flushed_key(thread_id), value)]


def _flushed_key(thread_id: str) -> str:
    return digest("seen", thread_id)[:32]
