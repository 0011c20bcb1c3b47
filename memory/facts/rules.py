"""What a person or a program does to facts: each rule changes a `FactSet`, and returns what is told. Pure."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from memory.facts.chain import Chain
from memory.facts.changes import Reason
from memory.facts.fact import (
    BY_HAND,
    HELD,
    DuplicateFact,
    Fact,
    FactChanged,
    FactNotFound,
    MemoryFull,
    Source,
    Status,
    checked,
    checked_content,
    checked_expiry,
    is_over,
    review_digest,
)
from memory.facts.fact_set import FactSet
from memory.facts.records import Confirmation, Confirmations, text_key
from memory.screening.door import admitted
from memory.text import normalize

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UndoneFacts:
    """What taking back changed: facts that say again what they said, and those that are no longer used."""

    restored: tuple[Fact, ...] = ()
    removed: tuple[Fact, ...] = ()


def create(
    facts: FactSet,
    content: str,
    category: str,
    confidence: float,
    *,
    source: Source = "library",
    pinned: bool = False,
    expires_at: str = "",
) -> Fact:
    """Add a fact and return it; one that is known already counts as confirmed, and takes over a pin and an end.

    One that reads as an order to the assistant, or may hold a secret, is quarantined: it waits for `release`.

    Args:
        content: One statement, at most 10,000 characters.
        category: One of the six categories.
        confidence: From 0.0 to 1.0; no threshold applies here.
        source: Who writes it; what the page, the API or the command line write is spared by evictions.
        pinned: Spare it too.
        expires_at: Until when it holds (`2026-05-08`, `2026-05` or `2026`, that included): then no prompt shows it
            any more, and it goes to history. Empty: it has no end.

    Raises:
        ValueError: If a value is invalid, or the content holds a secret; the message names the field.
        MemoryFull: If `max_facts` is reached and every fact is protected.
    """
    given = checked(content=content, category=category, confidence=confidence, source=source, pinned=pinned)
    until, said = checked_expiry(expires_at), given["content"]
    is_suspect = admitted(said, "content") is not None or facts.control.secrets.are_in(said)
    status: Status = "quarantined" if is_suspect and not facts.saying(said) else "active"
    by_hand = facts.now if source in BY_HAND else ""  # what was said before does not change it, either
    draft = Fact(**given, created_at=facts.now, updated_at=facts.now, edited_at=by_hand, status=status, valid_to=until)
    fact = write(facts, draft)
    return update(facts, fact.id, pinned=pinned or None, expires_at=expires_at or None, source=source)


def write(facts: FactSet, draft: Fact) -> Fact:
    """Add a new fact and return it, or confirm the one that says this already; `MemoryFull` if nothing may go."""
    if known := facts.known(draft.content, draft.valid_to, draft.status):
        facts.confirm(known.id, Confirmation(draft.created_at))
        logger.info("skipped a duplicate of %s", known.id)
        return known
    if draft.status == "active" and facts.is_full():
        raise MemoryFull(facts.config.max_facts)
    fact = facts.place(draft)
    facts.limit()
    logger.info("created %s", fact.id)
    return fact


def restore(facts: FactSet, fact_id: str) -> Fact:
    """Make a fact that is history an active one, as it was last; at the limit, in the weakest's place.

    One that was replaced takes its place again: what has it goes to history, from where it comes back likewise.

    Raises:
        FactNotFound: If no fact that went has the id, or another one says what it said.
        MemoryFull: If every fact that is there is protected.
    """
    gone = next((fact for fact in facts.gone() if fact.id == fact_id), None)
    if gone is None:
        raise FactNotFound(fact_id)
    if facts.is_over(gone):
        gone = replace(gone, valid_to="")
    if gone.status == "evicted":  # nobody decided that it goes, so it comes back as if it was said again
        fact = create(facts, gone.content, gone.category, gone.confidence, source=gone.source, pinned=gone.pinned)
        return facts.put(replace(fact, valid_from=gone.valid_from, valid_to=gone.valid_to, edited_at=facts.now))
    heirs = _heirs(gone, {fact.id: fact for fact in facts.every})
    wrong = facts.rows.get(heirs[-1]) if heirs else None
    replaced = (wrong,) if wrong is not None and wrong.status == "active" else ()
    if facts.is_full() and not replaced:
        raise MemoryFull(facts.config.max_facts)
    fact = facts.bring_back(gone)
    for each in replaced:
        fact = facts.supersede(each, fact)
    facts.limit(fresh={fact.id})
    _take_back(facts, [fact], replaced)
    return fact


def insert(
    facts: FactSet, drafts: Sequence[Fact], fresh: Collection[str] = ()
) -> tuple[list[Fact | Reason], Collection[str]]:
    """Add facts that were exported, beside those that are there, within the limit; what is known stays as it is.

    Args:
        drafts: The facts.
        fresh: Ids of facts that came earlier in the same import, which count as new too.

    Returns:
        For each, in their order, the fact that it became, or why it became none; and the ids of all facts that are
        there now.
    """
    secrets = facts.control.secrets
    drafts = [replace(one, status="quarantined") if secrets.are_in(one.content) else one for one in drafts]
    # What an active fact says waits for nobody: a person may have said yes to it since the export.
    done: list[Fact | Reason] = [
        "duplicate" if draft.status in HELD and facts.saying(draft.content) else facts.add(draft) for draft in drafts
    ]
    facts.limit(fresh)
    # A person wants them: that they were deleted once no longer counts.
    facts.let_in(facts.chain_of(fact for fact in done if isinstance(fact, Fact) and fact.id in facts.rows))
    return done, facts.rows.keys()


def update(
    facts: FactSet,
    fact_id: str,
    *,
    content: str | None = None,
    category: str | None = None,
    confidence: float | None = None,
    pinned: bool | None = None,
    source: Source | None = None,
    expires_at: str | None = None,
    revision: int | None = None,
) -> Fact:
    """Change the given fields and return the fact; its id and `created_at` stay, what it said goes to history.

    What was said before this does not change the fact any more, nor bring back what it said. A fact whose new content
    reads as an order waits for review.

    Args:
        fact_id: Which fact.
        content: What it is to say.
        category: One of the six categories.
        confidence: From 0.0 to 1.0.
        pinned: Whether an eviction spares it.
        expires_at: Until when it holds, as in `create`; empty takes an end back.
        source: Who edits it, if not the library; evictions spare what the page, the API or the command line wrote.
        revision: The fact's `revision` as the caller read it; `None` changes whatever is there.

    Raises:
        FactNotFound: If the id is unknown.
        FactChanged: If it has another revision by now, with what is there (`fact`).
        ValueError: If a value is invalid, the new content holds a secret, or another fact already says it.
    """
    old = facts.find(fact_id)
    if revision not in (None, old.revision):
        raise FactChanged(old)
    given: dict[str, Any] = {"content": content, "category": category, "confidence": confidence, "pinned": pinned}
    given = checked(**{name: each for name, each in {**given, "source": source}.items() if each is not None})
    by = given.pop("source", old.source)
    new = replace(old, **given)
    if expires_at is not None:
        new = replace(new, valid_to=checked_expiry(expires_at))
    if new == old:
        return old
    if new.content != old.content:  # what the old words said of its time need not hold for the new ones
        is_free = admitted(new.content, "content") is None and not facts.control.secrets.are_in(new.content)
        # A fact that waits goes on waiting for the same reason, unless one is in its new words.
        status, why = (old.status, old.why) if is_free else ("quarantined", "")
        new = replace(new, valid_from="", valid_to=expires_at or "", status=status, why=why)
    twin = facts.saying(new.content, new.status)
    if twin is not None and twin.id != old.id:
        raise DuplicateFact(twin.id)
    if replace(new, pinned=old.pinned) != old:  # who pins what a conversation said does not become its author
        new = replace(new, source=by)
    facts.past.append(replace(old, status="superseded", replaced_by=old.id))
    # What was said before an edit does not bring back what the fact said then.
    if normalize(old.content) != normalize(new.content):
        facts.bar(Chain.of([old]))
        facts.let_in(Chain.of([new]))  # nor does it keep out what the fact says again
    return facts.put_by_hand(new)


def release(facts: FactSet, fact_id: str, *, content: str | None = None) -> Fact:
    """Make a quarantined fact an active one, after a person read it; arguments and errors are `approve`'s."""
    return _free(facts, fact_id, "quarantined", content)


def approve(facts: FactSet, fact_id: str, *, source: Source, content: str | None = None) -> Fact:
    """Make a waiting fact an active one, because a person said yes. To say no, `retire` it.

    Args:
        fact_id: Which fact.
        source: Where the person said so: `page`, `api` or `cli`. What a conversation or a program says is no yes.
        content: What it is to say instead, in the person's words.

    Raises:
        FactNotFound: If no waiting fact has the id.
        MemoryFull: If every fact that is there is protected: it goes on waiting.
        ValueError: If the source is none of a person's, or the content is invalid or holds a secret.
    """
    if source not in BY_HAND:
        raise ValueError(f"source must be one of {', '.join(sorted(BY_HAND))}, as only a person approves")
    return _free(facts, fact_id, "waiting", content)


def _free(facts: FactSet, fact_id: str, status: Status, content: str | None) -> Fact:
    """Make a fact of this status an active one, after a person looked at it; at a full memory the weakest goes."""
    old = fact = facts.find(fact_id)
    if fact.status != status:
        raise FactNotFound(fact_id)
    said = fact.content if content is None else checked_content(content)
    admitted(said, "content")
    if said != fact.content:
        fact = replace(fact, valid_from="", valid_to="")  # what the old words said of its time
    was_full, known, before = facts.is_full(), facts.saying(said), facts.chain_of([old])
    # Stored texts are screened again whenever a prompt shows them: this tells that a person has read the text.
    freed = replace(fact, content=said, status="active", why="", reviewed=review_digest(said))
    if known:
        facts.drop(fact.id)
    free = known or facts.put_by_hand(freed)
    # In the words of its messages it must not be used either.
    if normalize(old.content) != normalize(said):
        facts.bar(before)
    facts.let_in(Chain.of([freed]))  # whatever became of these words before: a person wants them
    wrong = facts.rows.get(fact.replaces)
    if wrong is not None and wrong.status == "active" and wrong.id != free.id:
        free = facts.supersede(wrong, free)
    elif known is None and was_full:
        raise MemoryFull(facts.config.max_facts)
    facts.limit(fresh={free.id})
    return free


def retire(facts: FactSet, *fact_ids: str) -> str:
    """Stop using facts: they go to history, from where one `undo` restores them, and do not come back otherwise.

    One that waits for a person goes without a way back: nobody used it. Of several, unknown ids are passed over.

    Returns:
        The time of the change, for `undo`.

    Raises:
        FactNotFound: If there is none of them.
    """
    found = [facts.rows[each] for each in dict.fromkeys(fact_ids) if each in facts.rows]
    if not found:
        raise FactNotFound(", ".join(fact_ids))
    facts.let_go([fact for fact in found if fact.status in HELD])
    going = tuple(fact for fact in found if fact.status not in HELD)
    for fact in going:
        facts.archive(fact.id, "ended")
    _take_back(facts, (), going)
    logger.info("retired %s", ", ".join(fact.id for fact in found[:5]))
    return facts.now


def delete(facts: FactSet, fact_id: str) -> None:
    """Delete a fact for good, with what it corrected and was corrected by, their history and confirmations.

    It does not come back from messages said before, and no undo reaches behind it. What is pending, and the journal,
    keep such messages: `memory.forget.erase.erase_fact` deletes those too.

    Raises:
        FactNotFound: If no fact has or had the id.
    """
    facts.erase(facts.chain_with(fact_id))
    logger.info("deleted %s", fact_id)


def undo(facts: FactSet, at: str = "") -> UndoneFacts | None:
    """Take back the last change of the facts, whoever made it; undoing again does it again.

    What was deleted for good, and what an update wrote into the profile, does not come back.

    No log of changes is kept: rows and history have the time at which each fact came, changed or went. An update stamps
    all that it does with one time, so that everything with the newest time is one change. Undoing it is a change by
    hand with a time of its own, which the next undo takes back.

    Args:
        at: The time (ISO 8601) of the change to take back, whatever came after it; by default the last one. A fact
            that has changed again since stays as it is.

    Returns:
        What that changed; `None` if nothing changed since facts were erased, or at that time.
    """
    earlier = {(fact.id, fact.revision): fact for fact in facts.past}
    # A fact whose earlier revision is missing (history is bounded, and a hand may edit it) cannot be taken back.
    changed = [fact for fact in facts.active() if fact.revision == 1 or (fact.id, fact.revision - 1) in earlier]
    last = {fact.id: fact for fact in sorted(facts.past, key=lambda fact: fact.revision)}
    changed += [fact for fact in last.values() if fact.id not in facts.rows and fact.replaced_by != fact.id]
    times = {fact.updated_at for fact in changed}
    chosen = at or max(times, default="")
    if chosen not in times or chosen <= facts.control.erased_at.get(facts.owner.agent_name, ""):
        return None
    restored: list[Fact] = []
    removed: list[Fact] = []
    for fact in changed:
        if fact.updated_at != chosen:
            continue
        before = earlier.get((fact.id, fact.revision - 1))
        edited = before if before and before.replaced_by == fact.id else None
        if fact.id not in facts.rows:
            if facts.saying(fact.content) is None:  # or another one has its place
                restored.append(facts.bring_back(fact))
        elif edited and (facts.saying(edited.content) or fact).id == fact.id:
            # Replaced by itself marks an edit, so that undoing once more brings this text back.
            facts.past.append(replace(fact, status="superseded", replaced_by=fact.id))
            restored.append(facts.bring_back(replace(edited, revision=fact.revision)))
        else:
            # A new fact ends, and one whose words before the edit another one says by now. One that was brought
            # back is again what it was before that: ended, or superseded.
            like = before if before and not edited else replace(fact, status="ended", replaced_by="")
            facts.archive(fact.id, like.status, replaced_by=like.replaced_by)
            removed.append(fact)
    _take_back(facts, restored, removed)
    logger.info("took back a change: restored %d, removed %d", len(restored), len(removed))
    return UndoneFacts(tuple(restored), tuple(removed))


def _take_back(facts: FactSet, restored: Sequence[Fact], removed: Sequence[Fact]) -> None:
    """Keep the limit, and what is learned and told, once a person takes facts back or restores them."""
    facts.limit()
    # But not the fact that it corrected, which may be true again.
    for fact in removed:
        facts.bar(facts.chain_of([fact]))
    facts.let_in(facts.chain_of(restored))


def follow_branch(
    facts: FactSet, thread_id: str, gone: Set[str], back: Set[str], rewritten: Set[str] = frozenset()
) -> None:
    """Let facts follow a thread to the branch that it goes on from: what was learned elsewhere in it alone ends.

    A fact stays that something else says, too, or that a person wrote or changed. What ended facts had corrected is
    true again, and so is what the thread comes back to. The journal tells nothing of what was left.

    Args:
        facts: All of them.
        thread_id: The thread.
        gone: Ids of its messages that were left, as far as it names them.
        back: Ids of those that were, and are there again.
        rewritten: Ids of those that say something else now: the new words are learned anew.
    """
    facts.leave(thread_id, gone, back)
    newest = {fact.id: fact for fact in facts.every}
    # A thread no longer names what it left long ago; the records of its messages do.
    said = {one for fact in facts.every for thread, ids in facts.sources_of(fact) if thread == thread_id for one in ids}
    gone = gone | facts.left_in(thread_id, said)
    left = {name for name, fact in newest.items() if _rests_on(facts, fact, thread_id, gone | rewritten)}
    for fact in facts.active():
        if fact.id in left:
            facts.archive(fact.id, "ended", ended_by=thread_id if {*fact.message_ids} <= gone else "")
    come_back(facts, newest, left, thread_id.__eq__)


def come_back(
    facts: FactSet, newest: Mapping[str, Fact], left: set[str], is_undone: Callable[[str], bool]
) -> list[Fact]:
    """Make facts true again that others took the place of, or that were ended, by what counts no more; return them.

    One that something else says by now, or that a person deleted, stays away.

    Args:
        facts: All of them, without those that left.
        newest: The newest revision of each by its id, also of those that left.
        left: The ids of the facts that count no more.
        is_undone: Says of a thread whether what it ended counts no more.
    """
    back = []
    for fact in newest.values():
        heirs = _heirs(fact, newest)
        is_free = left.issuperset(heirs) if heirs else fact.status == "ended" and is_undone(fact.ended_by)
        is_wanted = not facts.notes.get(text_key(fact.content)) and facts.saying(fact.content) is None
        if is_free and fact.id not in left and fact.id not in facts.rows and is_wanted:
            back.append(facts.revive(fact))
            if wrong := facts.rows.get(fact.replaces):
                facts.supersede(wrong, back[-1])
    facts.limit()
    return [fact for fact in back if fact.id in facts.rows]


def _heirs(fact: Fact, newest: Mapping[str, Fact]) -> list[str]:
    """Return the ids of the facts that one after the other had the place of one; none if it was not corrected."""
    heirs = list[str]()
    while fact.status == "superseded" and fact.replaced_by in newest and fact.replaced_by not in heirs:
        fact = newest[fact.replaced_by]
        heirs.append(fact.id)
    return heirs


def _rests_on(facts: FactSet, fact: Fact, thread_id: str, gone: Set[str]) -> bool:
    """Say whether all that a fact was learned from, and that said it again, is gone; never of a person's own work."""
    if fact.source in BY_HAND or fact.revision > 1:
        return False
    again = facts.said.get(fact.id, Confirmations())
    every = [each for each in facts.sources_of(fact) if each[0] == thread_id and each[1] and {*each[1]} <= gone]
    return len(every) == 1 + again.count


def sweep(facts: FactSet, now: float) -> tuple[int, int]:
    """Move facts that hold no longer into history, and let go of what has waited for a yes as long as it may.

    Args:
        facts: All of them, as they are now.
        now: Seconds since 1970.

    Returns:
        How many of each. Said again, the ones are learned again, and the others wait again.
    """
    over = [fact for fact in facts.active() if is_over(fact, now)]
    for fact in over:
        facts.archive(fact.id, "ended")
    lapsed = [fact for fact in facts.rows.values() if facts.has_lapsed(fact)]
    facts.let_go(lapsed)
    return len(over), len(lapsed)
