"""What can be done to one owner's facts, each as effects on a store: what `FactStore` carries out.

Erase and archive put these together with effects of their own, so that a word means one thing wherever it is used.
"""

import logging
import uuid
from collections.abc import Callable, Collection, Sequence

from memory.config import MemoryConfig
from memory.control import count_edit, read_control, read_epoch
from memory.door import StoreEffects, side_by_side, transaction
from memory.facts.applying import change_facts
from memory.facts.chain import Chain, corrections, with_ends
from memory.facts.changes import Extraction, Outcome, Reason
from memory.facts.confirmations import Confirmations, read_confirmations
from memory.facts.deletions import note_erasure
from memory.facts.fact import (
    BY_HAND,
    HELD,
    HISTORY,
    Fact,
    FactChanged,
    FactNotFound,
    Source,
    Status,
    checked,
    checked_expiry,
    has_lapsed,
    is_over,
    strongest_first,
    timestamp,
)
from memory.facts.rows import read_fact_history, read_fact_set, save
from memory.facts.rules import FactSet, UndoneFacts
from memory.facts.snapshot import MemorySnapshot, read_snapshot
from memory.namespaces import Owner
from memory.recall.search import search_facts
from memory.recall.vectors import QueryVector, read_vectors
from memory.screening.door import admitted

logger = logging.getLogger(__name__)

Facts = list[Fact]


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
        given = checked(content=content, category=category, confidence=confidence, source=source, pinned=pinned)
        said, until = given["content"], checked_expiry(expires_at)
        is_suspect = admitted(said, "content") is not None
        facts = yield from self._read((said,))
        status: Status = "quarantined" if is_suspect and not facts.saying(said) else "active"
        now, epoch = facts.now, facts.epoch
        draft = Fact(**given, created_at=now, updated_at=now, epoch=epoch, status=status, valid_to=until)
        known = frozenset(facts.rows)
        fact = facts.create(draft, self.config, uuid.uuid4().hex)
        yield from save(facts)
        logger.info("%s %s", "skipped a duplicate of" if fact.id in known else "created", fact.id)
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
    def insert(
        self, drafts: Sequence[Fact], fresh: Collection[str] = ()
    ) -> StoreEffects[tuple[Sequence[Fact | Reason], Collection[str]]]:
        """Add facts that were exported, beside those that are there, within the limit; what is known stays as it is.

        Args:
            drafts: The facts.
            fresh: Ids of facts that came earlier in the same import, which count as new too.

        Returns:
            For each, in their order, the fact that it became, or why it became none; and the ids of all facts that are
            there now.
        """
        facts = yield from read_fact_set(self.owner, [draft.content for draft in drafts], now=timestamp(self._clock()))
        done = [facts.add(draft, self.config) for draft in drafts]
        facts.limit(self.config, fresh)
        # A person wants them: that they were deleted once no longer counts.
        facts.let_in(fact for fact in done if isinstance(fact, Fact) and fact.id in facts.rows)
        yield from save(facts)
        return done, facts.rows.keys()

    def get(self, fact_id: str) -> StoreEffects[Fact]:
        """Return an active or quarantined fact; `FactNotFound` (a KeyError) for an unknown id."""
        return (yield from self._read()).find(fact_id)

    def list(self, status: Status | None = "active") -> StoreEffects[Facts]:
        """Return the facts of one status, pinned ones first, then the strongest; of history, `superseded` and `ended`.

        Args:
            status: Which ones; `None` returns all that are no history.
        """
        facts = yield from self._read(whole=status in HISTORY)
        found = [*facts.rows.values()] if status not in HISTORY else with_ends(facts.past, facts.every)
        found = facts.evicted() if status == "evicted" else found
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
        found = corrections((yield from self._read(whole=True)).every, fact_id)
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
        facts = yield from self._read(by_hand=True)
        old = facts.find(fact_id)
        if revision not in (None, old.revision):
            raise FactChanged(old)
        fact = facts.update(
            fact_id,
            content=content,
            category=category,
            confidence=confidence,
            pinned=pinned,
            source=source and checked(source=source)["source"],
            expires_at=expires_at,
        )
        yield from save(facts)
        return fact

    def release(self, fact_id: str, *, content: str | None = None) -> StoreEffects[Fact]:
        """Make a quarantined fact an active one, after a person read it; arguments and errors are `approve`'s."""
        return self._release(fact_id, "quarantined", content)

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
        if source not in BY_HAND:
            raise ValueError(f"source must be one of {', '.join(sorted(BY_HAND))}, as only a person approves")
        return (yield from self._release(fact_id, "waiting", content))

    @transaction
    def _release(self, fact_id: str, status: Status, content: str | None) -> StoreEffects[Fact]:
        facts = yield from self._read((), by_hand=True)
        fact = facts.release(fact_id, status, self.config, content)
        yield from save(facts)
        return fact

    @transaction
    def retire(self, *fact_ids: str) -> StoreEffects[str]:
        """Stop using facts: they go to history, from where one `undo` restores them, and do not come back otherwise.

        One that waits for a person goes without a way back: nobody used it. Of several, unknown ids are passed over.

        Returns:
            The time of the change, for `undo`.

        Raises:
            FactNotFound: If there is none of them.
        """
        facts = yield from self._read(whole=True, by_hand=True)
        found = [facts.rows[each] for each in dict.fromkeys(fact_ids) if each in facts.rows]
        if not found:
            raise FactNotFound(", ".join(fact_ids))
        facts.let_go(fact for fact in found if fact.status in HELD)
        going = tuple(fact for fact in found if fact.status not in HELD)
        for fact in going:
            facts.retire(fact.id, "ended")
        yield from self._take_back(facts, UndoneFacts(removed=going))
        logger.info("retired %s", ", ".join(fact.id for fact in found[:5]))
        return facts.now

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
        facts = yield from self._read(whole=True, by_hand=True)
        chain = facts.chain_with(fact_id)
        if any(fact.status not in HELD for fact in chain.revisions):  # nothing else can be undone to
            yield from note_erasure(self.owner, facts.every, facts.now)
        facts.erase(chain)
        sections = yield from save(facts)
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
        control, facts = yield from side_by_side(read_control(self.owner), self._read(whole=True, by_hand=True))
        done = facts.undo(since=control.erased_at.get(self.owner.agent_name, ""), at=at)
        if done is None:
            return None
        yield from self._take_back(facts, done)
        logger.info("took back a change: restored %d, removed %d", len(done.restored), len(done.removed))
        return done

    def _take_back(self, facts: FactSet, done: UndoneFacts) -> StoreEffects[None]:
        """Write facts that a person takes back or restores."""
        facts.limit(self.config)
        # Without what it corrected: that may be true again.
        for fact in done.removed:
            facts.bar(facts.chain_of([fact]))
        facts.let_in(done.restored)
        yield from save(facts)

    @transaction
    def sweep(self) -> StoreEffects[tuple[int, int]]:
        """Move facts that hold no longer into history, and let go of what has waited for a yes as long as it may.

        Returns:
            How many of each. Said again, the ones are learned again, and the others wait again.
        """
        facts, now = (yield from self._read(whole=True)), self._clock()
        over = [fact for fact in facts.active() if is_over(fact, now)]
        lapsed = [fact for fact in facts.rows.values() if has_lapsed(fact, now, self.config.approval_days)]
        for fact in over:
            facts.retire(fact.id, "ended")
        if lapsed:
            facts.edit = yield from count_edit(self.owner)
            facts.let_go(lapsed)
        yield from save(facts)
        return len(over), len(lapsed)

    def confirmations(self, fact_id: str) -> StoreEffects[Confirmations]:
        """Tell how often a fact was said again, and when; `FactNotFound` for an unknown id."""
        _, said = yield from side_by_side(self.get(fact_id), read_confirmations(self.owner))
        return said.get(fact_id, Confirmations())

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

    def _read(
        self, contents: Sequence[str] | None = None, *, whole: bool = False, by_hand: bool = False
    ) -> StoreEffects[FactSet]:
        """Read the facts.

        Args:
            contents: What is about to be added (`read_fact_set`).
            whole: Whether all that they said is read, and what has waited too long: else that is not there, also before
                a sweep finds it.
            by_hand: Whether a person changes them now.
        """
        now = self._clock()
        if whole:
            facts = yield from read_fact_history(self.owner, now=timestamp(now))
        else:
            facts = yield from read_fact_set(self.owner, contents, now=timestamp(now))
            days = self.config.approval_days
            facts.pass_over([fact for fact in facts.rows.values() if has_lapsed(fact, now, days)])
        if by_hand:
            facts.edit = yield from count_edit(self.owner)
        return facts
