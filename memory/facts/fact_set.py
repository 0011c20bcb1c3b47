"""One owner's facts in one transaction: what was read of them, and what becomes of it. Pure.

The rules (`memory.facts.rules`, `memory.facts.applying`) change a `FactSet`, and its `writes` are the difference from
what was read. A rule that raises leaves it useless: its transaction writes nothing then.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import islice
from typing import Any, Final

from langgraph.store.base import Op

from memory.config import MemoryConfig
from memory.control import Control
from memory.door import delete, put
from memory.facts.chain import Chain, linked, with_ends
from memory.facts.changes import Change, Reason, was_said_before
from memory.facts.fact import (
    DAY_SECONDS,
    HELD,
    HISTORY,
    Fact,
    FactNotFound,
    Status,
    fact_ids,
    is_over,
    is_protected,
    known_day,
    moment,
    period_end,
    strongest_first,
    to_item,
)
from memory.facts.records import Confirmation, Confirmations, message_keys, text_key
from memory.forms import plain
from memory.namespaces import Kind, Owner
from memory.text import normalize

# While so many facts of conversations and imports are in quarantine, further ones are refused: a flood must not fill
# the store.
MAX_HELD: Final = 100
# A new fact takes the first id of its content that history does not have. So many ids are looked up: nobody relearns
# one text more often.
_CANDIDATES: Final = 4
# The mark in a message's record that its thread went on from another branch.
_IS_LEFT: Final = "left"


@dataclass
class FactSet:
    """One owner's facts.

    Attributes:
        owner: Whose they are.
        rows: Active, quarantined and waiting facts, by their ids.
        control: The user's control; what a rule changes of it is written with the facts.
        config: The limit, and which categories are protected.
        now: When the transaction is, ISO 8601.
        homes: The store keys of rows that a hand put under another key than their id.
        said: The confirmations of facts, by their ids, as far as they were read.
        past: Revisions in history, as far as they were read, oldest first; then those that were added since.
        notes: Deletion records, and answers about messages, by their keys, as far as they were read; empty ones are
            deleted.
    """

    owner: Owner
    rows: dict[str, Fact] = field(default_factory=dict)
    control: Control = Control()  # noqa: RUF009 - a frozen value
    config: MemoryConfig = MemoryConfig()  # noqa: RUF009 - a frozen value
    now: str = ""
    homes: Mapping[str, str] = field(default_factory=dict)
    said: dict[str, Confirmations] = field(default_factory=dict)
    past: list[Fact] = field(default_factory=list)
    notes: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._control, self._before = self.control, self._stored()
        self._erased: list[Fact] = []
        self._ids: dict[tuple[Status, str], str] | None = None

    # What is there.

    @property
    def every(self) -> tuple[Fact, ...]:
        """All revisions, those that are no longer true first."""
        return (*self.past, *self.rows.values())

    def active(self) -> list[Fact]:
        """Return the facts that count: those that may be injected."""
        return [fact for fact in self.rows.values() if fact.status == "active"]

    def listed(self, status: Status | None = "active") -> list[Fact]:
        """Return the facts of one status, or all that are no history, pinned ones first, then the strongest."""
        found = self.rows.values() if status not in HISTORY else with_ends(self.past, self.every, self.control.zone)
        found = self.gone() if status == "evicted" else found
        strongest = strongest_first([fact for fact in found if status in (None, fact.status)])
        return sorted(strongest, key=lambda fact: not fact.pinned)

    def as_of(self, then: date) -> list[Fact]:
        """Return the facts in use at the end of a day of the user's, as they were then; none that a person deleted."""
        day, zone, begun, found = then.isoformat(), self.control.zone, dict[str, str](), list[Fact]()
        for fact in reversed((*self.past, *self.active())):
            # An edited revision was in use until the next one was written.
            gone = begun.get(fact.id, "") if fact.replaced_by == fact.id else fact.updated_at
            begun[fact.id] = fact.edited_at if fact.edited_at and fact.revision > 1 else fact.created_at
            is_gone = fact.status in HISTORY and day >= known_day(gone, zone)
            last = period_end(fact.valid_to)
            is_valid = fact.valid_from <= day and (last is None or last >= then)
            if is_valid and day >= known_day(begun[fact.id], zone) and not (is_gone or self.is_deleted(fact)):
                found.append(fact)
        return strongest_first(found)

    def is_deleted(self, fact: Fact) -> bool:
        """Say whether a fact ended as somebody deleted it, who may want it back."""
        return fact.status == "ended" and self.notes.get(text_key(fact.content), {}).get("fact_id") == fact.id

    def revisions_of(self, fact_id: str) -> list[Fact]:
        """Return all that a fact said, oldest first (`FactEffects.history`)."""
        ids = linked(self.every, [fact_id], by_words=False)
        if not ids:
            raise FactNotFound(fact_id)
        return sorted(
            with_ends([fact for fact in self.every if fact.id in ids], self.every, self.control.zone),
            key=lambda fact: (fact.status not in HISTORY, fact.updated_at, fact.created_at, fact.revision),
        )

    def find(self, fact_id: str) -> Fact:
        """Return the fact of an id; `FactNotFound` if none that is no history has it."""
        if fact_id not in self.rows:
            raise FactNotFound(fact_id)
        return self.rows[fact_id]

    def saying(self, content: str, status: Status = "active") -> Fact | None:
        """Return the fact of this status that says the same, whatever case, spacing, form or trailing punctuation."""
        if self._ids is None:
            self._ids = {(fact.status, normalize(fact.content)): fact.id for fact in self.rows.values()}
        return self.rows.get(self._ids.get((status, normalize(content)), ""))

    def known(self, content: str, valid_to: str, status: Status = "active") -> Fact | None:
        """Return the fact that says the same; one in use goes to history first if it is over, and this is not."""
        found = self.saying(content, status)
        if found and status == "active" and self.is_over(found) and not self.is_over(replace(found, valid_to=valid_to)):
            self.archive(found.id, "ended")
            return None
        return found

    def is_over(self, fact: Fact) -> bool:
        """Say whether a fact holds no longer."""
        at = moment(self.now)
        return at is not None and is_over(fact, at.timestamp())

    def is_forgotten(self, said: Change, keys: Iterable[str]) -> bool:
        """Say whether a person deleted, or changed, what was said after it was said; the keys are those of records."""
        notes = filter(None, map(self.notes.get, keys))
        return any(was_said_before(said, str(each.get("at")), each.get("edit")) for each in notes)

    def is_safe(self, fact: Fact) -> bool:
        """Say whether an eviction spares a fact."""
        return is_protected(fact, self.config.protected_categories)

    def is_full(self) -> bool:
        """Say whether the limit is reached and nothing that is there may go."""
        active = self.active()
        return len(active) >= self.config.max_facts and all(map(self.is_safe, active))

    def has_lapsed(self, fact: Fact) -> bool:
        """Say whether a fact has waited for a yes as long as it may. What is quarantined waits until a person answers.

        That counts from when it was proposed last, not from when it was said: an import brings what was said long ago.
        """
        days, since, now = self.config.approval_days, moment(fact.updated_at), moment(self.now)
        if fact.status != "waiting" or not days or since is None or now is None:
            return False
        return (now - since).total_seconds() >= days * DAY_SECONDS

    def sources_of(self, fact: Fact) -> list[tuple[str, tuple[str, ...]]]:
        """Return the messages that a fact came from, and those that said it again, each with their thread."""
        again = self.said.get(fact.id, Confirmations()).said
        return [(fact.thread_id, fact.message_ids), *((each.thread_id, each.message_ids) for each in again)]

    def gone(self) -> list[Fact]:
        """Return the last revisions of facts in history that are not back: no row has their id, and none says the same.

        A fact that an undo brought back, and that a person then deleted, is among them, too.
        """
        last = {fact.id: fact for fact in self.past if fact.id not in self.rows}
        # A waiting fact that was edited, and then refused, leaves a revision that is replaced by itself, never used.
        return [fact for fact in last.values() if fact.replaced_by != fact.id and not self.saying(fact.content)]

    def chain_of(self, revisions: Iterable[Fact]) -> Chain:
        """Return the chain of these revisions, with the messages that said them, or said them again."""
        facts = list(revisions)
        return Chain.of(facts, [source for fact in facts for source in self.sources_of(fact)])

    def chain_with(self, fact_id: str) -> Chain:
        """Return the chain of a fact, also of one that is only history; `FactNotFound` if none has or had the id."""
        ids = linked(self.every, [fact_id])
        if not ids:
            raise FactNotFound(fact_id)
        return self.chain_of(fact for fact in self.every if fact.id in ids)

    def first_said_in(self, thread_id: str) -> Chain:
        """Return the facts that were first said in a thread, with their messages there."""
        said = [fact for fact in self.every if fact.thread_id == thread_id]
        return Chain.of(said, [(thread_id, fact.message_ids) for fact in said])

    # What becomes of it.

    def count_edit(self) -> int:
        """Count the change by hand that this is, once, and return its number.

        By it, indexes of the journal know that they must leave messages out, or tell them again.
        """
        if self.control.edit == self._control.edit:
            self.control = replace(self.control, edit=self.control.edit + 1)
        return self.control.edit

    def learn_secrets(self, values: Iterable[str], key: str) -> None:
        """Have these secrets recognized from now on; a user without a key for their digests gets this one."""
        secrets = self.control.secrets.learned(values, key)
        if secrets is not self.control.secrets:
            self.control = replace(self.control, secrets=secrets)

    def note_erasure(self) -> None:
        """Note that facts are erased: now, or when the newest change was made, under a clock that is ahead."""
        agent, erased_at = self.owner.agent_name, self.control.erased_at
        # Undo compares times: what a clock that is ahead has stamped must not count as later than the erase.
        newest = max(self.now, erased_at.get(agent, ""), *(fact.updated_at for fact in self.every))
        self.control = replace(self.control, erased=self.control.erased + 1, erased_at={**erased_at, agent: newest})

    def put(self, fact: Fact) -> Fact:
        """Let a fact be there as this, and return it."""
        self._take(fact.id)
        self.rows[fact.id] = fact
        if self._ids is not None:
            self._ids[fact.status, normalize(fact.content)] = fact.id
        return fact

    def put_by_hand(self, fact: Fact) -> Fact:
        """Let a fact be there as its next revision, which a person makes now, and return that."""
        edit, revision = self.count_edit(), fact.revision + 1
        return self.put(replace(fact, updated_at=self.now, edited_at=self.now, edit=edit, revision=revision))

    def drop(self, fact_id: str) -> None:
        """Let a fact not be there any more, without a trace in history."""
        self._take(fact_id)
        self.said.pop(fact_id, None)

    def _take(self, fact_id: str) -> None:
        if self.rows.pop(fact_id, None):
            self._ids = None  # another one may say the same, written by a hand

    def place(self, draft: Fact) -> Fact:
        """Put a new fact beside the others, with an id that no fact has or had, and return it.

        What went at the limit and is said again comes back: the same fact, as it is told now.
        """
        waiting = self.saying(draft.content, "waiting")
        if waiting and draft.status == "active":  # nobody has to say yes to it any more
            self.drop(waiting.id)
        said = normalize(draft.content)
        gone = [fact for fact in self.past if fact.status == "evicted" and normalize(fact.content) == said]
        back = next((fact for fact in gone if fact.id not in self.rows and draft.status == "active"), None)
        if back is not None:
            self.past.remove(back)
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
        taken = {fact.id for fact in self.every}
        free = (each for each in fact_ids(self.owner.due_key, draft.content) if each not in taken)
        return self.put(replace(draft, id=next(free)))

    def add(self, draft: Fact) -> Fact | Reason:
        """Put a new fact beside the others, and return it, or why it becomes none: it is known, or has no room."""
        if self.known(draft.content, draft.valid_to, draft.status):
            return "duplicate"
        held = sum(fact.status == "quarantined" for fact in self.rows.values()) if draft.status == "quarantined" else 0
        if held >= MAX_HELD or (draft.status == "active" and self.is_full()):
            return "full"
        return self.place(draft)

    def archive(self, fact_id: str, status: Status, *, replaced_by: str = "", ended_by: str = "") -> None:
        """Move a fact into history: `superseded` by another one, or `ended` because it is no longer true."""
        gone = self.find(fact_id)
        self._take(fact_id)
        self.past.append(replace(gone, status=status, updated_at=self.now, replaced_by=replaced_by, ended_by=ended_by))

    def supersede(self, wrong: Fact, right: Fact) -> Fact:
        """Let a fact have the place of one that it corrects, as well protected as that, and return it."""
        # Otherwise an eviction could take what a person protected, once it was corrected.
        is_pinned = right.pinned or (is_protected(wrong) and not is_protected(right))
        edited_at, edit = max((right.edited_at, right.edit), (wrong.edited_at, wrong.edit))
        self.archive(wrong.id, "superseded", replaced_by=right.id)
        return self.put(replace(right, pinned=is_pinned, replaces=wrong.id, edited_at=edited_at, edit=edit))

    def bring_back(self, gone: Fact) -> Fact:
        """Put a fact back that went, as its last revision says, and return it."""
        return self.put_by_hand(replace(gone, status="active", replaced_by="", ended_by=""))

    def confirm(self, fact_id: str, confirmation: Confirmation) -> None:
        """Note that a fact was said again; the fact itself stays as it is."""
        self.said[fact_id] = self.said.get(fact_id, Confirmations()).confirmed(confirmation)

    def limit(self, fresh: Collection[str] = ()) -> list[Fact]:
        """Leave at most `max_facts` active ones, and of those that wait for a person the newest, as long as they may.

        The order in which they stay is total: protected, then new in this transaction, then confidence, then how often
        it was said again, then the younger, then the id. What goes is kept in history, as `evicted`. What is new and
        finds no room was never learned, and is not. Of what waited, nothing is told or proposed again.

        Args:
            fresh: Ids of facts that were there, and count as new.

        Returns:
            The active ones that go.
        """
        older = {fact.id for fact in self._before["facts"].values()} - set(fresh)

        def standing(fact: Fact) -> tuple[bool, bool, float, int, str, str]:
            again = self.said[fact.id].count if fact.id in self.said else 0
            return (self.is_safe(fact), fact.id not in older, fact.confidence, again, fact.created_at, fact.id)

        surplus = sorted(self.active(), key=standing, reverse=True)[self.config.max_facts :]
        for fact in surplus:
            if fact.id in older or history_key(fact) in self._before["history"]:
                self.archive(fact.id, "evicted")
            else:
                self.drop(fact.id)
        # What is quarantined stays until a person answers: nobody but a flood would make it go.
        waits = [fact for fact in self.rows.values() if fact.status == "waiting"]
        waits.sort(key=lambda fact: (fact.updated_at, fact.created_at, fact.id), reverse=True)
        most = self.config.max_waiting
        self.let_go([fact for place, fact in enumerate(waits) if place >= most or self.has_lapsed(fact)])
        return surplus

    def bar(self, chain: Chain) -> None:
        """Let nothing be learned again of what facts say and was said before now, nor of messages that they came from.

        Of a chain without sources, only the texts do not come back.
        """
        self._note({text_key(fact.content): fact.id for fact in chain.revisions})
        self.bar_messages(chain.sources)

    def bar_messages(self, messages: Mapping[str, Iterable[str]]) -> None:
        """Let nothing be learned or told of messages (ids by thread) any more: they tell of a fact that goes."""
        self._note(dict.fromkeys(message_keys(messages), ""))

    def _note(self, keys: Mapping[str, str], **more: bool) -> None:
        how = {"at": self.now, "edit": self.count_edit(), **more}
        self.notes |= {key: {"fact_id": fact_id, **how} for key, fact_id in keys.items()}

    def leave(self, thread_id: str, gone: Iterable[str], back: Iterable[str]) -> None:
        """Bar messages that a thread went on without, and let in those that are back in it.

        What barred a message before stays.
        """
        self.notes |= {key: {} for key in message_keys({thread_id: self.left_in(thread_id, back)})}
        fresh = [key for key in message_keys({thread_id: gone}) if not self.notes.get(key)]
        self._note(dict.fromkeys(fresh, ""), **{_IS_LEFT: True})

    def left_in(self, thread_id: str, ids: Iterable[str]) -> set[str]:
        """Return those ids of a thread's messages that `leave` has barred."""
        return {one for key, one in message_keys({thread_id: ids}).items() if self.notes.get(key, {}).get(_IS_LEFT)}

    def revive(self, gone: Fact) -> Fact:
        """Put a fact back as it was before it went, by nobody's hand, and return it."""
        self.past.remove(gone)
        return self.put(replace(gone, status="active", updated_at=self.now, replaced_by="", ended_by=""))

    def let_in(self, chain: Chain) -> None:
        """Take back what `bar` does: a person wants what these facts say, and their messages."""
        self.count_edit()
        texts = (text_key(fact.content) for fact in chain.revisions)
        self.notes |= {key: {} for key in (*texts, *message_keys(chain.sources))}

    def let_go(self, facts: Sequence[Fact]) -> None:
        """Delete facts that wait for a person: nothing said before tells of them, or proposes them again.

        From history an undo would make them active, though nobody said yes.
        """
        if facts:
            self.bar(self.chain_of(facts))
        for fact in facts:
            self.drop(fact.id)

    def erase(self, chain: Chain) -> None:
        """Delete facts with all their revisions and confirmations for good; nothing of it is learned again."""
        if any(fact.status not in HELD for fact in chain.revisions):  # nothing else can be undone to
            self.note_erasure()
        self.bar(chain)
        self._erased += chain.revisions
        for fact_id in chain.ids:
            self.drop(fact_id)
        self.past = [fact for fact in self.past if fact.id not in chain.ids]

    # What is written of it.

    def _stored(self) -> dict[Kind, dict[str, Any]]:
        history = {history_key(fact): fact for fact in self.past}
        return {
            "facts": {self.key_of(fact_id): fact for fact_id, fact in self.rows.items()},
            "history": {**self.notes, **history},
            "confirmations": dict(self.said),
        }

    def writes(self) -> list[Op]:
        """Return what makes the stored facts these: the difference from what was read.

        Stores without transactions may carry out the first of them only: what leaves the rows is barred by then, and
        in history.
        """
        puts: list[Op] = [self.control.put(self.owner)] if self.control is not self._control else []
        deletes: list[Op] = []
        of_epoch = {"epoch": self.control.epoch}  # as `write_rows` does
        for kind, after in self._stored().items():
            before, place = self._before[kind], self.owner.namespace(kind)
            changed = {key: each for key, each in after.items() if each is not before.get(key, before)}
            puts += [put(place, key, {**_row(each), **of_epoch}) for key, each in changed.items() if each]
            gone = [key for key in {**before, **changed} if not after.get(key)]
            deletes = [*(delete(place, key) for key in gone), *deletes]
        return [*puts, *deletes]

    @property
    def archived(self) -> list[Fact]:
        """The revisions that left the rows since."""
        return [fact for fact in self.past if fact is not self._before["history"].get(history_key(fact))]

    def over(self) -> list[str]:
        """Return what facts said that are over, or erased, since then, and that none says any more.

        What a person is asked about is told nowhere yet: where it goes, nothing of the profile goes with it.
        """
        gone = [*(fact for fact in self.archived if fact.status != "evicted"), *self._erased]
        return [fact.content for fact in gone if not self.saying(fact.content)]

    def key_of(self, fact_id: str) -> str:
        """Return the store key of a fact."""
        return self.homes.get(fact_id, fact_id)


def _row(value: Any) -> Mapping[str, object]:
    if isinstance(value, Fact):
        return to_item(value)
    return plain(value) if isinstance(value, Confirmations) else value


def history_key(fact: Fact) -> str:
    """Return the key under which history keeps a revision of a fact."""
    return f"{fact.id}.{fact.revision}"


def first_revisions(owner: Owner, contents: Iterable[str]) -> list[str]:
    """Return the keys under which history has the first revisions of facts that said these contents.

    Whatever became of a fact, its first revision is there as soon as it was changed or went.
    """
    return [f"{each}.1" for content in contents for each in islice(fact_ids(owner.due_key, content), _CANDIDATES)]
