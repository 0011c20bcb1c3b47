"""The rules of facts on one value: create, edit, retire, confirm, limit, release, undo. Pure.

A `FactSet` is what one transaction reads of an owner's facts. The rules change it, and its `writes` are the difference
between what was read and what became of it. A rule that raises leaves it useless: its transaction writes nothing then.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from langgraph.store.base import Op

from memory.config import MemoryConfig
from memory.control import INITIAL_EPOCH
from memory.door import delete, put
from memory.facts.chain import Chain, linked
from memory.facts.changes import Reason
from memory.facts.confirmations import Confirmation, Confirmations
from memory.facts.deletions import DeletionRecord, message_keys, text_key
from memory.facts.fact import (
    DuplicateFact,
    Fact,
    FactNotFound,
    MemoryFull,
    Source,
    Status,
    checked,
    checked_content,
    checked_expiry,
    fact_ids,
    is_protected,
    review_digest,
    to_item,
)
from memory.namespaces import Owner
from memory.screening.door import admitted
from memory.text import normalize

# What conversations and imports quarantine must not fill the store: where so many wait, more are refused.
MAX_HELD: Final = 100


@dataclass(frozen=True, slots=True)
class UndoneFacts:
    """What taking back changed: facts that say again what they said, and those that are no longer used."""

    restored: tuple[Fact, ...] = ()
    removed: tuple[Fact, ...] = ()


class FactSet:
    """One owner's facts in one transaction.

    Attributes:
        owner: Whose they are.
        epoch: The user's epoch.
        now: When the transaction is, ISO 8601.
        edit: The number of the change by hand that it is (`memory.control`); empty if it is none.
        rows: Active, quarantined and waiting facts, by their ids.
        homes: The store keys of rows that a hand put elsewhere than under their ids.
        said: What said facts again, by their ids, as far as it was read.
        past: Revisions that are no longer true, oldest first, as far as they were read.
        notes: Records of what was deleted or answered, by their keys, as far as they were read.
        archived: Revisions that left the rows since; they go to history.
    """

    def __init__(
        self, owner: Owner, rows: Mapping[str, Fact] | None = None, *, epoch: str = INITIAL_EPOCH, now: str = ""
    ) -> None:
        self.owner, self.epoch, self.now, self.edit = owner, epoch, now, ""
        self.rows = dict(rows or {})
        self.homes: dict[str, str] = {}
        self.said: dict[str, Confirmations] = {}
        self.past: Sequence[Fact] = ()
        self.notes: Mapping[str, Mapping[str, Any]] = {}
        self.archived: list[Fact] = []
        self._before = dict(self.rows)
        self._said_again: set[str] = set()
        self._dropped: list[Fact] = []
        self._records: dict[str, DeletionRecord | None] = {}
        self._ids: dict[tuple[Status, str], str] | None = None

    # What is there.

    @property
    def every(self) -> tuple[Fact, ...]:
        """All revisions, those that are no longer true first."""
        return (*self.past, *self.rows.values())

    def active(self) -> list[Fact]:
        """Return the facts that count: those that may be injected."""
        return [fact for fact in self.rows.values() if fact.status == "active"]

    def find(self, fact_id: str) -> Fact:
        """Return the fact of an id; `FactNotFound` if none that is there has it."""
        if fact_id not in self.rows:
            raise FactNotFound(fact_id)
        return self.rows[fact_id]

    def saying(self, content: str, status: Status = "active") -> Fact | None:
        """Return the fact of this status that says the same, whatever case, spacing, form or trailing punctuation."""
        if self._ids is None:
            self._ids = {(fact.status, normalize(fact.content)): fact.id for fact in self.rows.values()}
        return self.rows.get(self._ids.get((status, normalize(content)), ""))

    def is_full(self, config: MemoryConfig) -> bool:
        """Say whether the limit is reached and nothing that is there may go."""
        active = self.active()
        return len(active) >= config.max_facts and all(
            is_protected(each, config.protected_categories) for each in active
        )

    def sources_of(self, fact: Fact) -> list[tuple[str, tuple[str, ...]]]:
        """Return the messages that a fact came from, and those that said it again, each with their thread."""
        again = self.said.get(fact.id, Confirmations()).said
        return [(fact.thread_id, fact.message_ids), *((each.thread_id, each.message_ids) for each in again)]

    def evicted(self) -> list[Fact]:
        """Return what went at the limit and nothing became of since.

        An undo may have brought it back, and a person may have deleted it then: it stays in history, too.
        """
        last = {fact.id: fact for fact in self.past}
        gone = [fact for fact in last.values() if fact.status == "evicted" and fact.id not in self.rows]
        return [fact for fact in gone if not self.saying(fact.content)]

    def over(self) -> list[str]:
        """Return what facts said that are over, or erased, since then, and that none says any more."""
        gone = [*(fact for fact in self.archived if fact.status != "evicted"), *self._dropped]
        return [fact.content for fact in gone if not self.saying(fact.content)]

    def chain_of(self, revisions: Iterable[Fact]) -> Chain:
        """Return these revisions, and what said them again, as what goes together."""
        facts = list(revisions)
        return Chain.of(facts, [source for fact in facts for source in self.sources_of(fact)])

    def chain_with(self, fact_id: str) -> Chain:
        """Return the chain of a fact, also of one that is only history; `FactNotFound` if none has or had the id."""
        ids = linked(self.every, [fact_id])
        if not ids:
            raise FactNotFound(fact_id)
        return self.chain_of(fact for fact in self.every if fact.id in ids)

    def first_said_in(self, thread_id: str) -> Chain:
        """Return the facts that were first said in a thread, as what its echoes elsewhere are found by."""
        said = [fact for fact in self.every if fact.thread_id == thread_id]
        return Chain.of(said, [(thread_id, fact.message_ids) for fact in said], only_echoes=True)

    # What a fact becomes.

    def pass_over(self, facts: Iterable[Fact]) -> None:
        """Do as if these facts were not there; they stay as they are."""
        for fact in list(facts):
            self._before.pop(fact.id)
            self.drop(fact.id)

    def put(self, fact: Fact) -> Fact:
        """Let a fact be there as this, and return it."""
        self.drop(fact.id)
        self.rows[fact.id] = fact
        if self._ids is not None:
            self._ids[fact.status, normalize(fact.content)] = fact.id
        return fact

    def drop(self, fact_id: str) -> None:
        """Let a fact not be there any more, without a trace in history."""
        if self.rows.pop(fact_id, None):
            self._ids = None  # another one may say the same, written by a hand

    def place(self, draft: Fact) -> Fact:
        """Put a new fact beside the others, with an id that no fact has or had, and return it.

        What went at the limit and is said again comes back: the same fact, as it is told now.
        """
        said = normalize(draft.content)
        gone = [fact for fact in self.past if fact.status == "evicted" and normalize(fact.content) == said]
        back = next((fact for fact in gone if fact.id not in self.rows and draft.status == "active"), None)
        if back is not None:
            return self.put(
                replace(
                    draft,
                    id=back.id,
                    created_at=back.created_at,
                    revision=back.revision,
                    thread_id=draft.thread_id or back.thread_id,
                    message_ids=draft.message_ids or back.message_ids,
                )
            )
        taken = {fact.id for fact in (*self.every, *self.archived)}
        free = (each for each in fact_ids(self.owner.due_key, draft.content) if each not in taken)
        return self.put(replace(draft, id=next(free)))

    def add(self, draft: Fact, config: MemoryConfig) -> Fact | Reason:
        """Put a new fact beside the others, and return it, or why it becomes none: it is known, or has no room."""
        if self.saying(draft.content, draft.status):
            return "duplicate"
        held = sum(fact.status == "quarantined" for fact in self.rows.values()) if draft.status == "quarantined" else 0
        if held >= MAX_HELD or (draft.status == "active" and self.is_full(config)):
            return "full"
        return self.place(draft)

    def create(self, draft: Fact, config: MemoryConfig, evidence: str) -> Fact:
        """Add a fact that a person or a program writes, and return it, or confirm the one that already says this.

        Args:
            draft: The new fact.
            config: The limit, and which categories are protected.
            evidence: By what a repeat is recognized as a confirmation of its own.

        Raises:
            MemoryFull: If the limit is reached and all that is there is protected.
        """
        waiting = self.saying(draft.content, "waiting")
        if waiting is not None and draft.status == "active":  # nobody has to say yes to it any more
            self.drop(waiting.id)
        if known := self.saying(draft.content, draft.status):
            self.confirm(known.id, Confirmation(evidence, draft.created_at))
            return known
        if draft.status == "active" and self.is_full(config):
            raise MemoryFull(config.max_facts)
        fact = self.place(draft)
        self.limit(config)
        return fact

    def update(
        self, fact_id: str, *, source: Source | None = None, expires_at: str | None = None, **given: Any
    ) -> Fact:
        """Change the given fields of a fact; id and creation time stay, the revision before goes to the archive.

        A fact whose new content reads as an order waits for review.

        Args:
            fact_id: Which fact.
            source: Who writes it, if what it says changes; `None` leaves it as it was.
            expires_at: Until when it holds, as a day, month or year of ISO 8601; empty takes an end back.
            given: `content`, `category`, `confidence` or `pinned`; `None` leaves one as it was.

        Raises:
            FactNotFound: If no row has the id.
            ValueError: If a value is invalid, or the new content holds a secret.
            DuplicateFact: If another fact already says the new content.
        """
        old = self.find(fact_id)
        new = replace(old, **checked(**{name: each for name, each in given.items() if each is not None}))
        if expires_at is not None:
            new = replace(new, valid_to=checked_expiry(expires_at))
        if new == old:
            return old
        if new.content != old.content:  # what the old words said of its time need not hold for the new ones
            is_suspect = admitted(new.content, "content") is not None
            status = "quarantined" if is_suspect else old.status
            new = replace(new, valid_from="", valid_to=expires_at or "", status=status)
        twin = self.saying(new.content, new.status)
        if twin is not None and twin.id != old.id:
            raise DuplicateFact(twin.id)
        # Who pins what a conversation said does not become its author.
        is_rewritten = replace(new, pinned=old.pinned) != old
        new = replace(new, source=source if source and is_rewritten else old.source)
        self.archived.append(replace(old, status="superseded", replaced_by=old.id))
        # What was said before an edit does not bring back what the fact said then.
        if normalize(old.content) != normalize(new.content):
            self.bar(self.chain_of([old]), messages=False)
            self._records[text_key(new.content)] = None  # nor does it keep out what the fact says again
        return self.put(self._by_hand(new))

    def release(self, fact_id: str, status: Status, config: MemoryConfig, content: str | None = None) -> Fact:
        """Make a fact of this status an active one, after a person looked at it; at a full memory the weakest goes.

        Args:
            fact_id: Which fact.
            status: What it has to be.
            config: The limit, and which categories are protected.
            content: What it is to say instead, in the person's words.

        Raises:
            FactNotFound: If no fact of this status has the id.
            MemoryFull: If all that is there is protected: it goes on waiting.
            ValueError: If the content says nothing, is too long, or holds a secret.
        """
        old = fact = self.find(fact_id)
        if fact.status != status:
            raise FactNotFound(fact_id)
        said = fact.content if content is None else checked_content(content)
        admitted(said, "content")
        if said != fact.content:
            fact = replace(fact, valid_from="", valid_to="")  # what the old words said of its time
        was_full, known = self.is_full(config), self.saying(said)
        self.drop(fact.id)
        # Stored texts are screened again whenever a prompt shows them: this tells that a person has read the text.
        freed = replace(fact, content=said, status="active", reviewed=review_digest(said))
        free = known or self.put(self._by_hand(freed))
        # In the words of the message it must not be used either.
        if normalize(old.content) != normalize(said):
            self.bar(self.chain_of([old]))
        self._records[text_key(said)] = None  # whatever became of these words before: a person wants them
        wrong = self.rows.get(fact.replaces)
        if wrong is not None and wrong.status == "active" and wrong.id != free.id:
            free = self.supersede(wrong, free)
        elif known is None and was_full:
            raise MemoryFull(config.max_facts)
        self.limit(config, fresh={free.id})
        return free

    def retire(self, fact_id: str, status: Status, *, replaced_by: str = "", ended_by: str = "") -> None:
        """Move a fact into the archive: `superseded` by another one, or `ended` because it is no longer true."""
        fact = self.find(fact_id)
        self.drop(fact_id)
        gone = replace(fact, status=status, updated_at=self.now, replaced_by=replaced_by, ended_by=ended_by)
        self.archived.append(gone)

    def supersede(self, wrong: Fact, right: Fact) -> Fact:
        """Let a fact have the place of one that it corrects, as well protected as that, and return it."""
        # Or what a person protected would be left to a fact that an eviction may take.
        is_pinned = right.pinned or (is_protected(wrong) and not is_protected(right))
        edited_at, edit = max((right.edited_at, right.edit), (wrong.edited_at, wrong.edit))
        self.retire(wrong.id, "superseded", replaced_by=right.id)
        return self.put(replace(right, pinned=is_pinned, replaces=wrong.id, edited_at=edited_at, edit=edit))

    def confirm(self, fact_id: str, confirmation: Confirmation) -> None:
        """Note that a fact was said again; the fact itself stays as it is."""
        self.said[fact_id] = self.said.get(fact_id, Confirmations()).confirmed(confirmation)
        self._said_again.add(fact_id)

    def limit(self, config: MemoryConfig, fresh: Collection[str] = ()) -> list[Fact]:
        """Leave at most `max_facts` active ones, and of those that wait for a person the newest; return what goes.

        The order in which they stay is total: protected, then new in this transaction, then confidence, then how often
        it was said again, then the younger, then the id. What goes is kept in history, as `evicted`. What is new and
        finds no room was never learned, and is not.

        Args:
            config: The limit, and which categories are protected.
            fresh: Ids of facts that were there, and count as new.
        """
        older = self._before.keys() - set(fresh)

        def standing(fact: Fact) -> tuple[bool, bool, float, int, str, str]:
            is_safe = is_protected(fact, config.protected_categories)
            again = self.said[fact.id].count if fact.id in self.said else 0
            return (is_safe, fact.id not in older, fact.confidence, again, fact.created_at, fact.id)

        surplus = sorted(self.active(), key=standing, reverse=True)[config.max_facts :]
        went = [fact for fact in surplus if fact.id in older]
        self.archived += [replace(fact, status="evicted", updated_at=self.now) for fact in went]
        # What is quarantined stays until a person answers: nobody but a flood would make it go.
        waits = [fact for fact in self.rows.values() if fact.status == "waiting"]
        waits.sort(key=lambda fact: (fact.updated_at, fact.created_at, fact.id), reverse=True)
        surplus += waits[config.max_waiting :]
        for fact in surplus:
            self.drop(fact.id)
        return surplus

    # What a person takes back.

    def undo(self, *, since: str = "", at: str = "") -> UndoneFacts | None:
        """Take back the last change of the facts, whoever made it; `None` if nothing changed.

        There is no log of changes: rows and history tell when each fact came, changed or went. All that happened at the
        newest of these times is one change, since an update stamps everything it does with one time. Taking it back is
        a change of its own, by hand, so taking back again does it again.

        Args:
            since: Up to when (ISO 8601) no change counts, as facts were erased then; empty if that never happened.
            at: When the change was made that is taken back (ISO 8601), whatever came after it; by default the last one.
                A fact that has changed again since stays as it is.
        """
        earlier = {(fact.id, fact.revision): fact for fact in self.past}
        # Without the revision before, nobody can tell what one changed: history is bounded, and a hand may edit it.
        changed = [fact for fact in self.active() if fact.revision == 1 or (fact.id, fact.revision - 1) in earlier]
        last = {fact.id: fact for fact in sorted(self.past, key=lambda fact: fact.revision)}
        changed += [fact for fact in last.values() if fact.id not in self.rows and fact.replaced_by != fact.id]
        times = {fact.updated_at for fact in changed}
        chosen = at or max(times, default="")
        if chosen not in times or chosen <= since:
            return None
        restored: list[Fact] = []
        removed: list[Fact] = []
        for fact in changed:
            if fact.updated_at != chosen:
                continue
            before = earlier.get((fact.id, fact.revision - 1))
            edited = before if before and before.replaced_by == fact.id else None
            if fact.id not in self.rows:
                restored += self.bring_back([fact])
            elif edited and (self.saying(edited.content) or fact).id == fact.id:
                # Replaced by itself marks an edit, so that undoing once more brings this text back.
                self.archived.append(replace(fact, status="superseded", replaced_by=fact.id))
                restored.append(self._brought_back(replace(edited, revision=fact.revision)))
            else:
                # A new fact ends, and one whose words before the edit another one says by now. One that was brought
                # back is again what it was before that: ended, or superseded.
                like = before if before and not edited else replace(fact, status="ended", replaced_by="")
                self.retire(fact.id, like.status, replaced_by=like.replaced_by)
                removed.append(fact)
        return UndoneFacts(tuple(restored), tuple(removed))

    def bring_back(self, gone: Iterable[Fact]) -> list[Fact]:
        """Put facts back that went (their last revisions), unless others say the same by now; return those."""
        return [self._brought_back(fact) for fact in gone if self.saying(fact.content) is None]

    def _brought_back(self, fact: Fact) -> Fact:
        return self.put(self._by_hand(replace(fact, status="active", replaced_by="", ended_by="")))

    def _by_hand(self, fact: Fact) -> Fact:
        """Return a fact as its next revision, which a person makes now."""
        return replace(fact, updated_at=self.now, edited_at=self.now, edit=self.edit, revision=fact.revision + 1)

    def bar(self, chain: Chain, *, messages: bool = True) -> None:
        """Let nothing be learned again of what facts say and was said before now, nor of messages that they came from.

        Args:
            chain: The facts.
            messages: Whether nothing is learned and told of their messages; otherwise only the texts do not come back.
        """
        keys = {text_key(fact.content): fact.id for fact in chain.revisions}
        if messages:
            keys |= dict.fromkeys(message_keys(chain.sources), chain.ids[-1])
        self._records |= {key: DeletionRecord(each, self.now, self.edit, self.epoch) for key, each in keys.items()}

    def let_in(self, facts: Iterable[Fact]) -> None:
        """Take back what `bar` does: the facts are there again because a person wants them."""
        chain = self.chain_of(facts)
        self._records |= dict.fromkeys([*map(text_key, chain.contents), *message_keys(chain.sources)])

    def let_go(self, facts: Iterable[Fact], but: Collection[str] = ()) -> None:
        """Delete facts that wait for a person: nothing said before tells of them, or proposes them again.

        From history an undo would make them active, though nobody said yes.

        Args:
            facts: Which ones.
            but: Ids of messages that facts which stay came from.
        """
        for fact in facts:
            self.drop(fact.id)
            self.bar(Chain.of([fact], [(fact.thread_id, tuple(each for each in fact.message_ids if each not in but))]))

    def erase(self, chain: Chain) -> None:
        """Delete facts with all their revisions and confirmations for good; nothing of it is learned again."""
        self.bar(chain)
        self._dropped += chain.revisions
        for fact_id in chain.ids:
            self.drop(fact_id)

    def writes(self) -> list[Op]:
        """Return what makes the stored facts these: rows put and deleted, revisions archived, repeats noted.

        Stores without transactions may carry out the first of them only. What goes is barred before it goes, and is in
        history before it leaves the rows; of an edit, the new words come first.
        """
        facts, history, again = (self.owner.namespace(kind) for kind in ("facts", "history", "confirmations"))
        gone = {*self._before, *(fact.id for fact in self._dropped)} - self.rows.keys()
        silent = gone - {fact.id for fact in self.archived}
        repeated = self._said_again & self.rows.keys()
        # What went at the limit and came back is no history any more, unless it found no room once again.
        there = {history_key(fact) for fact in self.rows.values()}
        back = [fact for fact in self.past if fact.status == "evicted" and history_key(fact) in there]
        changed = [fact for each, fact in self.rows.items() if self._before.get(each) is not fact]
        edited = {key: record for key, record in self._records.items() if record and record.fact_id in self.rows}
        return [
            *(
                record.put(self.owner, key) if record else delete(history, key)
                for key, record in self._records.items()
                if key not in edited
            ),
            *(put(facts, self.key_of(fact.id), to_item(fact)) for fact in changed),
            *(put(history, history_key(fact), to_item(fact)) for fact in self.archived),
            *(delete(history, history_key(fact)) for fact in (*self._dropped, *back)),
            *(delete(again, each) for each in sorted(silent)),
            *(delete(facts, self.key_of(each)) for each in sorted(gone & self._before.keys())),
            *(put(again, each, self.said[each].to_json(each, self.epoch)) for each in sorted(repeated)),
            *(record.put(self.owner, key) for key, record in edited.items()),
        ]

    def key_of(self, fact_id: str) -> str:
        """Return the store key of a fact."""
        return self.homes.get(fact_id, fact_id)


def history_key(fact: Fact) -> str:
    """Return the key under which history keeps a revision of a fact."""
    return f"{fact.id}.{fact.revision}"
