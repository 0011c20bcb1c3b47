"""One owner's facts in one transaction: what was read of them, and what becomes of it. Pure.

The rules (`memory.facts.rules`, `memory.facts.applying`) change a `FactSet`, and its `writes` are the difference from
what was read. A rule that raises leaves it useless: its transaction writes nothing then.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from langgraph.store.base import Op

from memory.config import MemoryConfig
from memory.control import Control
from memory.door import delete, put
from memory.facts.chain import Chain, linked
from memory.facts.changes import Reason
from memory.facts.fact import DAY_SECONDS, HELD, Fact, FactNotFound, Status, fact_ids, is_protected, moment, to_item
from memory.facts.records import Confirmation, Confirmations, DeletionRecord, message_keys, text_key
from memory.namespaces import Owner
from memory.text import normalize

# What conversations and imports quarantine must not fill the store: where so many wait, more are refused.
MAX_HELD: Final = 100
# How many ids of one content are looked up in history before a new fact of it is placed; more relearnings of one
# text than that never happened to anybody.
_CANDIDATES: Final = 4


class FactSet:
    """One owner's facts.

    Attributes:
        owner: Whose they are.
        control: The user's control; what a rule changes of it is written with the facts.
        config: The limit, and which categories are protected.
        now: When the transaction is, ISO 8601.
        rows: Active, quarantined and waiting facts, by their ids; also those that have waited too long, until a sweep.
        homes: The store keys of rows that a hand put elsewhere than under their ids.
        said: What said facts again, by their ids, as far as it was read.
        past: Revisions that are no longer true, oldest first, as far as they were read.
        notes: Records of what was deleted or answered, by their keys, as far as they were read.
        archived: Revisions that left the rows since; they go to history.
    """

    def __init__(
        self,
        owner: Owner,
        rows: Mapping[str, Fact] | None = None,
        *,
        control: Control | None = None,
        config: MemoryConfig | None = None,
        now: str = "",
    ) -> None:
        self.owner, self.config, self.now = owner, config or MemoryConfig(), now
        self.control = self._control_before = control or Control()
        self.rows = dict(rows or {})
        self.homes: dict[str, str] = {}
        self.said: dict[str, Confirmations] = {}
        self.past: Sequence[Fact] = ()
        self.notes: Mapping[str, Mapping[str, Any]] = {}
        self.archived: list[Fact] = []
        self._before = dict(self.rows)
        self._said_again: set[str] = set()
        self._erased: list[Fact] = []
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

    def has_lapsed(self, fact: Fact) -> bool:
        """Say whether a fact has waited for a yes as long as it may. What is quarantined waits until a person answers.

        Nobody is shown it any more, nor says yes to it. Rules still find it in the rows: its messages are not told, and
        said again it waits on.
        """
        if fact.status != "waiting" or not self.config.approval_days:
            return False
        # Not since it was said: an import brings what was said long ago.
        since, now = moment(fact.updated_at), moment(self.now)
        if since is None or now is None:
            return False
        return (now - since).total_seconds() >= self.config.approval_days * DAY_SECONDS

    def shown(self) -> list[Fact]:
        """Return what a person is shown of the rows: all but what has waited too long."""
        return [fact for fact in self.rows.values() if not self.has_lapsed(fact)]

    def find(self, fact_id: str) -> Fact:
        """Return the fact of an id; `FactNotFound` if none that a person is shown has it."""
        fact = self.rows.get(fact_id)
        if fact is None or self.has_lapsed(fact):
            raise FactNotFound(fact_id)
        return fact

    def saying(self, content: str, status: Status = "active") -> Fact | None:
        """Return the fact of this status that says the same, whatever case, spacing, form or trailing punctuation."""
        if self._ids is None:
            self._ids = {(fact.status, normalize(fact.content)): fact.id for fact in self.rows.values()}
        return self.rows.get(self._ids.get((status, normalize(content)), ""))

    def is_safe(self, fact: Fact) -> bool:
        """Say whether an eviction spares a fact."""
        return is_protected(fact, self.config.protected_categories)

    def is_full(self) -> bool:
        """Say whether the limit is reached and nothing that is there may go."""
        active = self.active()
        return len(active) >= self.config.max_facts and all(map(self.is_safe, active))

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
        gone = [*(fact for fact in self.archived if fact.status != "evicted"), *self._erased]
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
        """Return the facts that were first said in a thread, with their messages there."""
        said = [fact for fact in self.every if fact.thread_id == thread_id]
        return Chain.of(said, [(thread_id, fact.message_ids) for fact in said])

    # What becomes of it.

    def count_edit(self) -> None:
        """Count the change by hand that this is."""
        self.control = replace(self.control, edits=self.control.edits + 1)

    def note_erasure(self) -> None:
        """Note that facts are erased: now, or when the newest change was made, under a clock that is ahead."""
        agent, erased_at = self.owner.agent_name, self.control.erased_at
        # Undo compares times: what a clock that is ahead has stamped must not count as later than the erase.
        newest = max(self.now, erased_at.get(agent, ""), *(fact.updated_at for fact in self.every))
        self.control = replace(self.control, erased=self.control.erased + 1, erased_at={**erased_at, agent: newest})

    def put(self, fact: Fact) -> Fact:
        """Let a fact be there as this, and return it."""
        self.drop(fact.id)
        self.rows[fact.id] = fact
        if self._ids is not None:
            self._ids[fact.status, normalize(fact.content)] = fact.id
        return fact

    def put_by_hand(self, fact: Fact) -> Fact:
        """Let a fact be there as its next revision, which a person makes now, and return that."""
        edit, revision = self.control.edit, fact.revision + 1
        return self.put(replace(fact, updated_at=self.now, edited_at=self.now, edit=edit, revision=revision))

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

    def add(self, draft: Fact) -> Fact | Reason:
        """Put a new fact beside the others, and return it, or why it becomes none: it is known, or has no room."""
        if self.saying(draft.content, draft.status):
            return "duplicate"
        held = sum(fact.status == "quarantined" for fact in self.rows.values()) if draft.status == "quarantined" else 0
        if held >= MAX_HELD or (draft.status == "active" and self.is_full()):
            return "full"
        return self.place(draft)

    def archive(self, fact_id: str, status: Status, *, replaced_by: str = "", ended_by: str = "") -> None:
        """Move a fact into history: `superseded` by another one, or `ended` because it is no longer true."""
        fact = self.find(fact_id)
        self.drop(fact_id)
        gone = replace(fact, status=status, updated_at=self.now, replaced_by=replaced_by, ended_by=ended_by)
        self.archived.append(gone)

    def supersede(self, wrong: Fact, right: Fact) -> Fact:
        """Let a fact have the place of one that it corrects, as well protected as that, and return it."""
        # Or what a person protected would be left to a fact that an eviction may take.
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
        self._said_again.add(fact_id)

    def limit(self, fresh: Collection[str] = ()) -> list[Fact]:
        """Leave at most `max_facts` active ones, and of those that wait for a person the newest; return what goes.

        The order in which they stay is total: protected, then new in this transaction, then confidence, then how often
        it was said again, then the younger, then the id. What goes is kept in history, as `evicted`. What is new and
        finds no room was never learned, and is not.

        Args:
            fresh: Ids of facts that were there, and count as new.
        """
        older = self._before.keys() - set(fresh)

        def standing(fact: Fact) -> tuple[bool, bool, float, int, str, str]:
            again = self.said[fact.id].count if fact.id in self.said else 0
            return (self.is_safe(fact), fact.id not in older, fact.confidence, again, fact.created_at, fact.id)

        surplus = sorted(self.active(), key=standing, reverse=True)[self.config.max_facts :]
        went = [fact for fact in surplus if fact.id in older]
        self.archived += [replace(fact, status="evicted", updated_at=self.now) for fact in went]
        # What is quarantined stays until a person answers: nobody but a flood would make it go.
        waits = [fact for fact in self.rows.values() if fact.status == "waiting"]
        waits.sort(key=lambda fact: (fact.updated_at, fact.created_at, fact.id), reverse=True)
        surplus += waits[self.config.max_waiting :]
        for fact in surplus:
            self.drop(fact.id)
        return surplus

    def bar(self, chain: Chain, *, messages: bool = True) -> None:
        """Let nothing be learned again of what facts say and was said before now, nor of messages that they came from.

        Args:
            chain: The facts.
            messages: Whether nothing is learned and told of their messages; otherwise only the texts do not come back.
        """
        self._record({text_key(fact.content): fact.id for fact in chain.revisions})
        if messages:
            self.bar_messages(chain.sources, chain.ids[-1])

    def bar_messages(self, messages: Mapping[str, Iterable[str]], fact_id: str) -> None:
        """Let nothing be learned or told of messages (ids by thread) any more: they tell of a fact."""
        self._record(dict.fromkeys(message_keys(messages), fact_id))

    def _record(self, keys: Mapping[str, str]) -> None:
        edit, epoch = self.control.edit, self.control.epoch
        self._records |= {key: DeletionRecord(each, self.now, edit, epoch) for key, each in keys.items()}

    def let_in(self, *contents: str, messages: Mapping[str, Iterable[str]] = {}) -> None:
        """Take back what `bar` does of texts, and of messages (ids by thread): a person wants them."""
        self._records |= dict.fromkeys([*map(text_key, contents), *message_keys(messages)])

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
        if any(fact.status not in HELD for fact in chain.revisions):  # nothing else can be undone to
            self.note_erasure()
        self.bar(chain)
        self._erased += chain.revisions
        for fact_id in chain.ids:
            self.drop(fact_id)

    def writes(self) -> list[Op]:
        """Return what makes the stored facts these: rows put and deleted, revisions archived, repeats noted.

        Stores without transactions may carry out the first of them only. What goes is barred before it goes, and is in
        history before it leaves the rows; of an edit, the new words come first.
        """
        facts, history, again = (self.owner.namespace(kind) for kind in ("facts", "history", "confirmations"))
        gone = {*self._before, *(fact.id for fact in self._erased)} - self.rows.keys()
        silent = gone - {fact.id for fact in self.archived}
        # What went at the limit and came back is no history any more, unless it found no room once again.
        there = {history_key(fact) for fact in self.rows.values()}
        back = [fact for fact in self.past if fact.status == "evicted" and history_key(fact) in there]
        changed = [fact for each, fact in self.rows.items() if self._before.get(each) is not fact]
        edited = {key: record for key, record in self._records.items() if record and record.fact_id in self.rows}
        return [
            *([self.control.put(self.owner)] if self.control is not self._control_before else ()),
            *(
                record.put(self.owner, key) if record else delete(history, key)
                for key, record in self._records.items()
                if key not in edited
            ),
            *(put(facts, self.key_of(fact.id), to_item(fact)) for fact in changed),
            *(put(history, history_key(fact), to_item(fact)) for fact in self.archived),
            *(delete(history, history_key(fact)) for fact in (*self._erased, *back)),
            *(delete(again, each) for each in sorted(silent)),
            *(delete(facts, self.key_of(each)) for each in sorted(gone & self._before.keys())),
            *(
                self.said[each].put(self.owner, each, self.control.epoch)
                for each in sorted(self._said_again & self.rows.keys())
            ),
            *(record.put(self.owner, key) for key, record in edited.items()),
        ]

    def key_of(self, fact_id: str) -> str:
        """Return the store key of a fact."""
        return self.homes.get(fact_id, fact_id)


def history_key(fact: Fact) -> str:
    """Return the key under which history keeps a revision of a fact."""
    return f"{fact.id}.{fact.revision}"


def first_revisions(owner: Owner, contents: Iterable[str]) -> list[str]:
    """Return the keys under which history has the first revisions of facts that said these contents.

    Whatever became of a fact, its first revision is there as soon as it was changed or went.
    """
    return [f"{each}.1" for content in contents for each in islice(fact_ids(owner.due_key, content), _CANDIDATES)]
