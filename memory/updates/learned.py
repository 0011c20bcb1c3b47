"""What was learned of a thread: hashes of what is never read again, and the newest turns, by ids without words.

These tell a later turn what was edited away since.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final

from memory.config import MemoryConfig
from memory.control import belongs
from memory.door import StoreEffects, put, read, side_by_side
from memory.facts import rules
from memory.facts.rows import read_fact_set, save
from memory.forms import plain, read_as
from memory.message import Role, StoredMessage, iso_time
from memory.namespaces import Owner, thread_namespace
from memory.text import digest, flush_hash
from memory.updates.entry import Entry
from memory.updates.receipts import UpdateReceipt, write_receipt
from memory.updates.transcript import BEGINNING, asked_in

_LEARNED: Final = "learned"
_PEOPLE: Final = ("user", "other")
_MOST_MESSAGES: Final = 150
"""So many messages of a thread are named, the newest: each turn reads them."""


@dataclass(frozen=True, slots=True)
class _Learned:
    """One turn that was learned, as the thread's note keeps it: each message by its id, role, and whether it was seen.

    The other fields are those of `Entry`.
    """

    created: float
    messages: tuple[tuple[str, Role, bool], ...]
    edited_away: tuple[str, ...] = ()
    overlapped: bool = False


def learned_in(note: Mapping[str, Any], draft: Entry) -> dict[str, Entry]:
    """Return the turns that were learned, by key, as entries without words, as a thread's note tells of them.

    Args:
        note: The note; what a hand garbled in it is left out.
        draft: What they have in common.
    """
    found, kept = dict[str, Entry](), note.get(_LEARNED)
    for each in kept if isinstance(kept, list) else ():
        with suppress(ValueError):
            one = read_as(_Learned, each)
            said = tuple(StoredMessage(name, role, "", "", seen=seen) for name, role, seen in one.messages)
            turn = replace(
                draft, kind="turn", created=one.created, messages=said, edited_away=one.edited_away,
                overlapped=one.overlapped,
            )  # fmt: skip
            found[turn.key] = turn
    return found


def with_learned(note: Mapping[str, Any], turns: Iterable[Entry]) -> dict[str, Any]:
    """Return a thread's note with these turns as those that were learned, the newest of them."""
    kept, messages = list[dict[str, Any]](), 0
    for turn in sorted(turns, key=attrgetter("created"), reverse=True):
        messages += len(turn.messages)
        if messages <= _MOST_MESSAGES:
            said = tuple((one.id, one.role, one.seen) for one in turn.messages)
            kept.append(plain(_Learned(turn.created, said, turn.edited_away, turn.overlapped)))
    return {**note, _LEARNED: kept[::-1]}


def note_learned(owner: Owner, thread_id: str, entries: Iterable[Entry]) -> StoreEffects[None]:
    """Note in a thread that these entries of it were learned."""
    item = yield from read(thread_namespace(thread_id), owner.due_key)
    note = item.value if item else {}
    for entry in entries:
        if entry.kind == "turn":
            begins = StoredMessage(BEGINNING + entry.first, "other", "", "", seen=True)
            turn = entry if entry.messages[0].seen else replace(entry, messages=(begins, *entry.messages))
            note = with_learned(note, (learned_in(note, entry) | {turn.key: turn}).values())
    yield [put(thread_namespace(thread_id), owner.due_key, note)]


def follow_branch(
    draft: Entry, before: Mapping[str, Entry], after: Mapping[str, Entry], config: MemoryConfig
) -> StoreEffects[None]:
    """Have facts follow the branch that a thread goes on from, and the newest words of its messages.

    Args:
        draft: The turn that goes on.
        before: What was learned of the thread, by key, with what counted as edited away until now.
        after: The same, with what counts as edited away.
        config: The limit of facts.
    """
    known = {one.id for turn in before.values() for one in turn.messages if not one.seen}
    if before == after and known.isdisjoint(asked_in(draft)):
        return
    owner, thread_id = draft.owner, draft.thread_id
    facts, flushed = yield from side_by_side(
        read_fact_set(owner, whole=True, now=iso_time(draft.created), config=config),
        read_flushed(owner, thread_id, draft.epoch),
    )
    again = [one for one in draft.messages if one.id in known and one.role != "assistant"]
    rewritten = {one.id for one in again if flushed.keys().isdisjoint(flush_hash(role, one.text) for role in _PEOPLE)}
    was, gone = map(_left, (before.values(), after.values()))
    if was == gone and not rewritten:
        return
    rules.follow_branch(facts, thread_id, gone, was - gone, rewritten)
    left = {fact.id for fact in facts.archived}
    yield from save(facts)
    if left:
        receipt = UpdateReceipt(time=facts.now, thread_id=thread_id, superseded=tuple(sorted(left)), epoch=draft.epoch)
        yield from write_receipt(owner, digest("left", draft.key), receipt)


def _left(turns: Iterable[Entry]) -> set[str]:
    """Return the ids of people's messages that were edited away."""
    said = [one for turn in turns for one in turn.messages if one.id in turn.edited_away]
    return {one.id for one in said if one.role != "assistant"}


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
