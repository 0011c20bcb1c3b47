"""What can be done to one owner's facts, each as effects on a store: what `FactStore` carries out.

Erase and archive put these together with effects of their own, so that a word means one thing wherever it is used.
"""

import logging
import uuid
from collections.abc import Callable, Sequence

from memory.config import MemoryConfig
from memory.control import count_edit, read_control, read_epoch
from memory.door import transaction
from memory.effects import StoreEffects, side_by_side
from memory.facts.applying import change_facts
from memory.facts.chain import Chain, FactHistory, corrections, dormant, read_fact_history, with_ends
from memory.facts.changes import Extraction, Outcome, Reason
from memory.facts.confirmations import Confirmations, read_confirmations
from memory.facts.deletions import (
    DeletionRecord,
    aside_drop,
    aside_put,
    deletion_drops,
    deletion_puts,
    forget,
    message_deletion_puts,
)
from memory.facts.fact import (
    BY_HAND,
    HELD,
    Fact,
    FactChanged,
    FactNotFound,
    Source,
    Status,
    checked_category,
    checked_confidence,
    checked_content,
    checked_expiry,
    checked_source,
    strongest_first,
    timestamp,
)
from memory.facts.profile import drop_sections_about
from memory.facts.rows import (
    read_fact_set,
    read_history,
    save,
    still_evicted,
)
from memory.facts.rules import (
    FactSet,
    create,
    find,
    insert,
    limit,
    remove,
    retire,
    same_content,
    update,
)
from memory.facts.snapshot import MemorySnapshot, read_snapshot
from memory.facts.undo import UndoneFacts, undo
from memory.facts.waiting import lapsed, release
from memory.facts.writing import end_held
from memory.namespaces import Owner
from memory.recall.search import search_facts
from memory.recall.vectors import QueryVector, read_vectors
from memory.screening.door import admitted
from memory.text import normalize

logger = logging.getLogger(__name__)

Facts = list[Fact]
Inserted = tuple[Sequence[Fact | Reason], dict[str, str]]


class FactEffects:
    """One owner's facts.

    Args:
        owner: Whose facts.
        config: Limits and protected categories.
        clock: Seconds since 1970.
    """

    def __init__(self, owner: Owner, config: MemoryConfig, clock: Callable[[], float]) -> None:
        self.owner, self.config, self._clock = owner, config, clock

    @transaction
    def create(
        self,
        content: str,
        category: str,
        confidence: float,
        *,
        source: Source = "library",
        pinned: bool = False,
        expires_at: str = "",
    ) -> StoreEffects[Fact]:
        """Add a fact and return it; one that is already known is returned as it is, and counted as confirmed.

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
        said = checked_content(content)
        suspect = admitted(said, "content") is not None
        kind, sure, writer = checked_category(category), checked_confidence(confidence), checked_source(source)
        until = checked_expiry(expires_at)
        before = yield from self._current((said,))
        known = same_content(before, said)
        now = self._now()
        draft = Fact(
            id="", content=said, category=kind, confidence=sure, created_at=now, updated_at=now, source=writer,
            pinned=pinned, epoch=before.epoch, status="quarantined" if suspect and known is None else "active",
            valid_to=until,
        )  # fmt: skip
        after, fact = create(before, draft, self.config, evidence=uuid.uuid4().hex)
        yield from save(self.owner, before, after)
        logger.info("%s %s", "skipped a duplicate of" if after.confirmations else "created", fact.id)
        return fact

    @transaction
    def restore(self, fact_id: str) -> StoreEffects[Fact]:
        """Make a fact that went at the limit an active one, in the weakest's place; `FactNotFound` for any other id."""
        for fact in (yield from self.list("evicted")):
            if fact.id == fact_id:
                return (
                    yield from self.create(
                        fact.content, fact.category, fact.confidence, source=fact.source, pinned=fact.pinned
                    )
                )
        raise FactNotFound(fact_id)

    @transaction
    def insert(self, drafts: Sequence[Fact], fresh: frozenset[str]) -> StoreEffects[Inserted]:
        """Add facts that were exported, beside those that are there (`memory.facts.rules.insert`).

        Returns:
            For each, in their order, the fact that it became, or why it became none; and the store keys of all facts
            that are there now, by their ids.
        """
        before = yield from read_fact_set(self.owner, [draft.content for draft in drafts])
        after, done = insert(before, drafts, self.config, fresh)
        yield from save(self.owner, before, after)
        keys = {fact.id: key for key, fact in after.rows.items()}
        there = [fact for fact in done if isinstance(fact, Fact) and fact.id in keys]
        if there:  # a person wants them: that they were deleted once no longer counts
            yield [drop for fact in there for drop in deletion_drops(self.owner, Chain.of([fact], ()))]
        return done, keys

    def get(self, fact_id: str) -> StoreEffects[Fact]:
        """Return an active or quarantined fact; `FactNotFound` (a KeyError) for an unknown id."""
        fact_set = yield from self._current()
        return find(fact_set, fact_id)[1]

    def list(self, status: Status | None = "active") -> StoreEffects[Facts]:
        """Return the facts of one status, pinned ones first, then the strongest; of history, `superseded` and `ended`.

        Args:
            status: Which ones; `None` returns all that are no history.
        """
        fact_set = yield from self._current()
        found: Sequence[Fact] = list(fact_set.rows.values())
        if status in ("superseded", "ended", "evicted"):
            history = yield from read_history(self.owner, fact_set.epoch)
            ended = with_ends(history, [*history, *fact_set.rows.values()])
            found = ended if status != "evicted" else still_evicted(fact_set, history)
        strongest = strongest_first([fact for fact in found if status in (None, fact.status)])
        return sorted(strongest, key=lambda fact: not fact.pinned)

    def search(
        self,
        query: str,
        limit: int | None = 10,
        *,
        status: Status = "active",
        question: QueryVector | None = None,
        only_asked: bool = False,
    ) -> StoreEffects[Facts]:
        """Return the facts that hold the query, strongest first, then those that recall ranks for it, best first.

        Args:
            query: A word or a sentence, whatever its case; nothing is found by white space or punctuation alone.
            limit: So many at most; `None` returns all.
            status: Which facts are searched.
            question: What an embedder makes of the query: then facts are found by their meaning, too.
            only_asked: Leave out what nothing of the query finds, but words that it shares with another hit, or the
                conversation that both are from: for a search that a person typed.
        """
        facts, epoch = yield from side_by_side(self.list(status), read_epoch(self.owner))
        vectors = {}
        if question is not None:
            vectors = yield from read_vectors(self.owner, epoch, question.embedder)
        found = search_facts(facts, query, question, vectors, only_asked=only_asked)
        return found[: None if limit is None else max(0, limit)]

    def history(self, fact_id: str) -> StoreEffects[Facts]:
        """Return all that a fact said, oldest first; the last one is what it says now, if it is still there.

        What it corrected, and what corrected it, is among it: `replaces` and `replaced_by` name the other, and
        `valid_to` of what was corrected is the day on which the other was said.

        Raises:
            FactNotFound: If no fact has or had the id.
        """
        fact_set = yield from self._current()
        before = yield from read_history(self.owner, fact_set.epoch)
        found = corrections([*before, *fact_set.rows.values()], fact_id)
        if not found:
            raise FactNotFound(fact_id)
        return found

    @transaction
    def update(
        self,
        fact_id: str,
        *,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        pinned: bool | None = None,
        source: Source | None = None,
        expires_at: str | None = None,
        revision: int | None = None,
    ) -> StoreEffects[Fact]:
        """Change the given fields and return the fact; its id and `created_at` stay, what it said goes to history.

        What was said before this does not change the fact any more, nor bring back what it said.

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
            ValueError: If a value is invalid, or another fact already says the new content.
        """
        writer = None if source is None else checked_source(source)
        edit = yield from count_edit(self.owner)
        before = yield from self._current()
        old = find(before, fact_id)[1]
        if revision not in (None, old.revision):
            raise FactChanged(old)
        after, fact = update(
            before, fact_id, now=self._now(), content=content, category=category, confidence=confidence, pinned=pinned,
            source=writer, edit=edit, expires_at=expires_at,
        )  # fmt: skip
        yield from save(self.owner, before, after)
        if normalize(fact.content) != normalize(old.content):
            # What was said before an edit does not bring back what the fact said then.
            aside = aside_put(self.owner, old, at=fact.edited_at, edit=fact.edit, epoch=before.epoch)
            yield [aside, aside_drop(self.owner, fact)]
        if content is not None:
            yield from drop_sections_about(self.owner, before.epoch, [old.content for old in after.archived])
        return fact

    def release(self, fact_id: str, *, content: str | None = None) -> StoreEffects[Fact]:
        """Make a quarantined fact an active one, after a person read it; arguments and errors are `approve`'s."""
        return self._release(fact_id, "quarantined", content)

    @transaction
    def _release(self, fact_id: str, status: Status, content: str | None) -> StoreEffects[Fact]:
        edit = yield from count_edit(self.owner)
        before = yield from self._current(())
        old = find(before, fact_id)[1]
        now = self._now()
        after, fact = release(before, fact_id, self.config, now=now, edit=edit, status=status, content=content)
        yield from save(self.owner, before, after)
        if normalize(fact.content) != normalize(old.content):
            # In the words of the message it must not be used either.
            record = DeletionRecord(fact.id, now, edit, before.epoch, "edited")
            said = message_deletion_puts(self.owner, {old.thread_id: old.message_ids}, record)
            yield [aside_put(self.owner, old, at=now, edit=edit, epoch=before.epoch), *said]
        yield [aside_drop(self.owner, fact)]
        over = [each.content for each in after.archived if each.status == "superseded"]
        yield from drop_sections_about(self.owner, before.epoch, over)
        return fact

    def approve(self, fact_id: str, *, source: Source, content: str | None = None) -> StoreEffects[Fact]:
        """Make a waiting fact an active one, because a person said yes. To say no, `retire` it.

        Args:
            fact_id: Which fact.
            source: Where the person said so: `page`, `api` or `cli`. What a conversation or a program says is no yes.
            content: What it is to say instead, in the person's words.

        Raises:
            FactNotFound: If no waiting fact has the id, or it has waited too long.
            MemoryFull: If every fact that is there is protected: it goes on waiting.
            ValueError: If the source is none of a person's, or the content is invalid.
        """
        if checked_source(source) not in BY_HAND:
            raise ValueError(f"source must be one of {', '.join(sorted(BY_HAND))}, as only a person approves")
        return (yield from self._release(fact_id, "waiting", content))

    @transaction
    def retire(self, *fact_ids: str) -> StoreEffects[str]:
        """Stop using facts: they go to history, from where one `undo` restores them, and do not come back otherwise.

        One that waits for a person goes without a way back: nobody used it. Of several, unknown ids are passed over.

        Returns:
            The time of the change, for `undo`.

        Raises:
            FactNotFound: If there is none of them.
        """
        before = yield from read_fact_set(self.owner)
        there, now = {fact.id: (key, fact) for key, fact in before.rows.items()}, self._now()
        found = [there[each] for each in dict.fromkeys(fact_ids) if each in there]
        if not found:
            raise FactNotFound(", ".join(fact_ids))
        edit = yield from count_edit(self.owner)
        held = {key: fact for key, fact in found if fact.status in HELD}
        if held:
            yield from end_held(self.owner, before, held, now=now)
        if going := tuple(fact for key, fact in found if key not in held):
            rest = after = remove(before, *held)
            for fact in going:
                after = retire(after, fact.id, "ended", now=now)
            history = yield from read_fact_history(self.owner)
            yield from self._take_back(history, rest, after, UndoneFacts(removed=going), edit)
        logger.info("retired %s", ", ".join(fact.id for _, fact in found[:5]))
        return now

    def _current(self, contents: Sequence[str] | None = None) -> StoreEffects[FactSet]:
        """Read the facts. What has waited too long is not there, also before a sweep finds it."""
        fact_set = yield from read_fact_set(self.owner, contents)
        return remove(fact_set, *lapsed(fact_set, self._clock(), self.config.approval_days))

    def delete(self, fact_id: str) -> StoreEffects[None]:
        """Delete a fact for good, with what it corrected and was corrected by, their history and confirmations.

        It does not come back from messages said before, and no undo reaches behind it. What is pending, and the
        journal, keep such messages: `memory.erase.erase_fact` deletes those too.

        Raises:
            FactNotFound: If no fact has or had the id.
        """
        yield from self.delete_chain(fact_id)

    @transaction
    def delete_chain(self, fact_id: str) -> StoreEffects[tuple[Chain, Sequence[str]]]:
        """Do what `delete` does, and return what it took: the chain, and sections of the profile that told of it."""
        chain = yield from forget(self.owner, fact_id, now=self._now())
        epoch = yield from read_epoch(self.owner)
        sections = yield from drop_sections_about(self.owner, epoch, chain.contents)
        logger.info("deleted %s", fact_id)
        return chain, sections

    @transaction
    def undo(self, at: str = "") -> StoreEffects[UndoneFacts | None]:
        """Take back the last change of the facts, whoever made it; undoing again does it again.

        What was deleted for good, and what an update wrote into the profile, does not come back.

        Args:
            at: The time (ISO 8601) of the change to take back, whatever came after it; by default the last one.

        Returns:
            What that changed; `None` if nothing changed since facts were erased, or at that time.
        """
        control, history = yield from side_by_side(read_control(self.owner), read_fact_history(self.owner))
        since = control.erased_at.get(self.owner.agent_name, "")
        edit = yield from count_edit(self.owner)
        undone = undo(history.facts, history.past, now=self._now(), since=since, edit=edit, at=at)
        if undone is None:
            return None
        after, done = undone
        yield from self._take_back(history, history.facts, after, done, edit)
        logger.info("took back a change: restored %d, removed %d", len(done.restored), len(done.removed))
        return done

    def _take_back(
        self, history: FactHistory, before: FactSet, after: FactSet, done: UndoneFacts, edit: str
    ) -> StoreEffects[None]:
        """Write facts that a person takes back or restores."""
        now = max((fact.updated_at for fact in after.archived), default="")
        after = limit(after, self.config, before.rows)
        epoch = before.epoch
        # Without what it corrected: that may be true again.
        for fact in done.removed:
            yield deletion_puts(self.owner, history.chain_of([fact]), at=now, edit=edit, epoch=epoch)
        for fact in done.restored:
            yield deletion_drops(self.owner, history.chain_of([fact]))
        yield from save(self.owner, before, after)
        # A section may tell of what the fact corrected, too; not if a fact of the chain is still in use.
        told = (*history.past, *after.archived, *after.rows.values())
        silent = dormant(told, [fact.id for fact in done.removed])
        said = [*(fact for fact in history.past if fact.id in silent), *done.removed]
        yield from drop_sections_about(self.owner, epoch, [fact.content for fact in said])

    def confirmations(self, fact_id: str) -> StoreEffects[Confirmations]:
        """Tell how often a fact was said again, and when; `FactNotFound` for an unknown id."""
        _, confirmations = yield from side_by_side(self.get(fact_id), read_confirmations(self.owner, fact_id))
        return confirmations

    def snapshot(self) -> StoreEffects[MemorySnapshot]:
        """Return everything that may be injected or shown to the extractor: active facts and profile, as stored.

        A stored text that holds a secret or reads as an order is left out, whoever wrote it there, unless a person
        released it from quarantine.
        """
        return read_snapshot(self.owner)

    @transaction
    def apply(self, extraction: Extraction, *, thread_id: str, epoch: str, now: str) -> StoreEffects[Outcome]:
        """Apply what was extracted; applying it twice is the same as once."""
        return change_facts(self.owner, extraction, thread_id=thread_id, epoch=epoch, now=now, config=self.config)

    def _now(self) -> str:
        return timestamp(self._clock())
