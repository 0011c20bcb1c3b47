"""What of the journal may be told again: not what a deleted fact came from, nor what waits for the user's yes.

A message waits by the rule of facts: what a model has not marked as harmless may be sensitive. It is told again once
facts in use that came from it say all of its words, or once the user says yes to the message itself. Answers stand
among the history of facts, each under a digest of its message, without any text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from memory.config import HOLDS, Hold
from memory.control import count_edit, write_rows
from memory.door import side_by_side, transaction
from memory.facts.chain import Chain, linked
from memory.facts.fact import HELD, may_be_used
from memory.facts.fact_set import FactSet
from memory.facts.records import ANSWER, message_keys
from memory.facts.rows import read_fact_set
from memory.facts.words import words
from memory.journal.entry import JournalEntry
from memory.journal.journal import JournalView, read_journal, read_view
from memory.message import with_replies
from memory.namespaces import Owner
from memory.screening.door import secrecy
from memory.text import digest

_ASKED: Final[frozenset[Hold]] = frozenset({"approval"})
Place = tuple[str, str]
"""A message: its thread and its id."""


class Untold(NamedTuple):
    """What of a journal entry nothing tells.

    Attributes:
        gone: Messages that went with a fact, and the replies to them.
        waiting: Those that wait for a yes, and the replies to them.
        why: Why they wait for a yes to the message itself; empty where they go with a fact, whose yes is asked.
        is_refused: Whether the user said no; otherwise nobody said anything yet.
        is_asked: Whether one of the messages is a person's: replies alone nobody is asked about.
    """

    gone: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    why: tuple[Hold, ...] = ()
    is_refused: bool = False
    is_asked: bool = False


async def read_past(owner: Owner) -> list[JournalEntry]:
    """Read what of an owner's journal may be told again, oldest first."""
    entries, facts = await side_by_side(read_journal(owner), read_fact_set(owner))
    return _told_of(facts, entries)


async def read_tellable_view(owner: Owner, known: JournalView | None = None) -> JournalView:
    """Read what of the journal may be told again, or what changed of that since a view.

    Args:
        owner: Whose journal.
        known: What the caller has; after an edit by hand, everything is read anew.
    """
    # An edit in between is seen by the next look, as it is counted again at its end.
    view, facts = await side_by_side(read_view(owner, known), read_fact_set(owner))
    told = {entry.place: entry for entry in _told_of(facts, list(filter(None, view.entries.values())))}
    return replace(view, entries={key: told.get(key) for key in view.entries})


def _told_of(facts: FactSet, entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Leave out the messages that nothing may tell of, and the replies to them; a journal keeps them until an erase.

    Who holds entries in memory has to ask again once the user changes something by hand: the count of such edits
    (`memory.control.Control.edit`) tells, before and after each.
    """
    untold = untold_of(facts, entries)
    left = (entry.without(each.gone | each.waiting) for entry, each in zip(entries, untold, strict=True))
    return list(filter(None, left))


def exported(facts: FactSet, entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Return entries as another memory takes them in: what nothing may tell of here waits for a yes there.

    The records that say so here stand in no export.
    """
    screened = [entry.screened() for entry in entries]
    untold = untold_of(facts, screened)
    return [
        replace(entry, held={**entry.held, **{one: entry.held.get(one, _ASKED) | _ASKED for one in each.gone}})
        for entry, each in zip(screened, untold, strict=True)
    ]


async def read_untold(owner: Owner, entries: Sequence[JournalEntry]) -> list[Untold]:
    """Read what nothing may tell of each entry."""
    return untold_of(await read_fact_set(owner), entries)


def untold_of(facts: FactSet, entries: Sequence[JournalEntry]) -> list[Untold]:
    """Return what nothing may tell of each entry, by all facts of its owner with their history.

    A message went with a fact if a deleted fact came from it, or if it says what one says that a person may want back,
    or that waits for a yes.
    """
    shunned = _shunned(facts)
    is_any = facts.notes or shunned.ids
    screened = [entry.screened() for entry in entries]
    told, released = _facts_told(facts, screened)
    found = []
    for entry in screened:
        records = message_keys({entry.thread_id: [one.id for one in entry.messages]}) if is_any else {}
        gone = {each for key, each in records.items() if key in facts.notes}
        gone |= {one.id for one in entry.messages if shunned.ids and shunned.is_in(entry.thread_id, one)}
        lifted = _lifted(entry, told, released)
        answers = {one: facts.notes.get(_answer_key(entry, one), {}).get("yes") for one in entry.held}
        held = {one: left for one, why in entry.held.items() if answers[one] is not True and (left := why - lifted)}
        untold = Untold(with_replies(entry.messages, gone), with_replies(entry.messages, held.keys()))
        if not untold.gone & untold.waiting:
            untold = untold._replace(
                why=tuple(each for each in HOLDS if any(each in why for why in held.values())),
                is_refused=any(answers[one] is False for one in held),
                is_asked=any(one.role != "assistant" and one.id in held for one in entry.messages),
            )
        found.append(untold)
    return found


def _shunned(facts: FactSet) -> Chain:
    """Return what nothing tells of, with its chains: deleted facts that a person may want back, and waiting ones."""
    # What waits for a yes must not be told by the message that it came from either.
    waiting = [fact for fact in facts.rows.values() if fact.status == "waiting"]
    ids = frozenset(fact.id for fact in (*filter(facts.is_deleted, facts.past), *waiting))
    if ids:  # one that is active says it again, and a person wants that one
        ids = linked(facts.every, ids) - linked(facts.every, [fact.id for fact in facts.active()])
    return facts.chain_of(fact for fact in (*facts.past, *waiting) if fact.id in ids)


def _facts_told(facts: FactSet, entries: Sequence[JournalEntry]) -> tuple[dict[Place, frozenset[str]], set[Place]]:
    """Return the words that facts in use say of messages of which some wait, and the messages of released secrets."""
    wanted = {(entry.thread_id, one.id) for entry in entries if entry.held for one in entry.messages}
    told: dict[Place, frozenset[str]] = {}
    released: set[Place] = set()
    # What is history was in use once, but for older words of what still waits.
    waiting = {fact.id for fact in facts.rows.values() if fact.status in HELD}
    for fact in facts.every if wanted else ():
        said = {(thread_id, one) for thread_id, ids in facts.sources_of(fact) for one in ids} & wanted
        if fact.id in waiting or not said:
            continue
        for place in said:
            told[place] = told.get(place, frozenset()) | words(fact.content)
        if fact.reviewed and may_be_used(fact) and secrecy(fact.content) is not None:
            released |= said  # a person has read a secret, and let it in
    return told, released


def _lifted(entry: JournalEntry, told: dict[Place, frozenset[str]], released: set[Place]) -> set[Hold]:
    """Return what messages of an entry wait for no more: facts in use say all of their words, or hold their secret."""
    said = {one: (entry.thread_id, one.id) for one in entry.messages}
    lifted: set[Hold] = {"secret"} if released.intersection(said.values()) else set()
    # A yes to what the user said is one to the reply, which says the same.
    if any(map(told.get, said.values())) and all(
        words(one.text) <= told.get(place, frozenset()) for one, place in said.items() if one.role != "assistant"
    ):
        lifted.add("approval")
    return lifted


@transaction
async def write_answer(owner: Owner, entries: Iterable[JournalEntry], *, yes: bool | None, now: str) -> None:
    """Write what the user says about entries that wait: they may be told again, or not. The last answer counts.

    Args:
        owner: Whose memory.
        entries: Those that are answered.
        yes: Whether they may be told; `None` takes the answer back.
        now: ISO 8601.
    """
    keys = [_answer_key(entry, one) for entry in entries for one in entry.screened().held]
    if keys:
        await write_rows(owner, "history", dict.fromkeys(keys, None if yes is None else {"yes": yes, "at": now}))
        # Who read the journal before this has to read it again, and prompts that show the lines choose anew.
        await count_edit(owner)


def _answer_key(entry: JournalEntry, message_id: str) -> str:
    return ANSWER + digest("answer", entry.thread_id, message_id)
