"""Which memory a thread's prompt shows: a frozen block in the system prompt, and deltas appended to it. Pure."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory.config import Category
from memory.context.tokens import count_tokens
from memory.facts.fact import Fact, is_protected, moment
from memory.facts.rows import MemorySnapshot
from memory.injection.block import TextCounter, fact_line, fitting_facts, line_of
from memory.injection.injected import NOT_USED, Delta, Entry, Injected, render_block, render_delta, render_deltas
from memory.journal.entry import line_id
from memory.recall import Hit, is_about_answers
from memory.recall.documents import fact_sources
from memory.recall.search import relevant
from memory.recall.user_index import LEAST_COVERAGE, NOTHING, Recalled

# What the user asked of the assistant holds for every turn, so it comes before facts that only some turns need.
STANDING: Final[frozenset[Category]] = frozenset({"preference", "correction"})
# News in one delta takes at most a quarter of the block's budget: what arrives in a rush is told in several turns.
DELTA_SHARE: Final = 4
# All deltas together have half of the budget at least. A message for which earlier deltas have to go has half at most:
# once that begins, every message that asks for something else pays it.
DELTAS_SHARE: Final = 2
# The hundredth hit fits a message as well as anything does. What stands out from it a tenth as far as the best one is
# worth its tokens; what stands out less found hardly more on public conversations (`make bench-quality`).
COMMON_PLACE: Final = 100
RECALLED_LEAST: Final = 0.1
# What fits a message much less than the best does is not worth a change of the prompt.
LEAST_SHARE: Final = 0.1
# What the user asked for once and for all, in messages that no fact was made of, takes so much of the room at most.
STANDING_SHARE: Final = 4
# A message for which earlier deltas have to go is told what fits in two fifths of the budget, and so many tokens at
# least: with more, fifty messages that each ask for something else cost more than in a thread that keeps all that was
# recalled (`make bench-quality`).
FITTING_TOKENS: Final = 800
FRESH_SECONDS: Final = 7 * 86_400.0
# Where a thread begins with a message that is about nothing known, its block holds what holds for every answer, and of
# the rest so many tokens.
QUIET_TOKENS: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnConditions:
    """What the choice depends on besides memory itself.

    Attributes:
        thread_id: The thread; what was said in it and is still in the window needs no delta.
        message_id: The newest message of the user: a delta is shown directly before it.
        window: Ids of the messages that the model will be sent.
        now: Seconds since 1970.
        cache_ttl_seconds: How long the provider caches a prompt.
        will_summarize: `True` if messages leave the prompt in this turn, so that its prefix changes anyway.
        budget: Tokens of the block, fence included.
        protected_categories: Categories that come first, as those that are pinned.
        delta_budget: Tokens of one message's delta at most, fence included; `None`: shares of the budget bound it.
        room: Tokens that all deltas together may take before one new block takes their place; the budget if it is more.
        recalled: What recall found for the newest message.
        count: Counts tokens of a text.
    """

    thread_id: str
    message_id: str
    window: Collection[str]
    now: float
    cache_ttl_seconds: float
    will_summarize: bool
    budget: int
    protected_categories: frozenset[Category] = frozenset()
    delta_budget: int | None = None
    room: int = 0
    recalled: Recalled = NOTHING
    count: TextCounter = count_tokens

    def size(self, injected: Injected, snapshot: MemorySnapshot) -> int:
        """Return the tokens of all deltas."""
        return sum(map(self.count, render_deltas(injected, told(injected, snapshot, self.recalled)).values()))

    def at_most(self, share: int) -> int:
        """Return a share of the budget, or what one delta may take if that is less."""
        return share if self.delta_budget is None else min(share, self.delta_budget)


def inject(previous: Injected | None, snapshot: MemorySnapshot, turn: TurnConditions) -> Injected:
    """Return what the prompt of this turn shows: the block as it was, with what is new or matters now; or a new block.

    What holds no longer is not shown as current. The texts of past turns that it shows are not in the snapshot yet:
    `told` adds them.
    """
    snapshot = snapshot.at(turn.now)
    if not snapshot.control.use:
        return Injected(since=NOT_USED, at=turn.now, lines_edit=snapshot.control.edit)
    half, recalled = turn.budget // 2, turn.recalled
    # Nothing matters to a message that is about nothing the user ever spoke of, or only greets or thanks.
    is_about = recalled.coverage >= LEAST_COVERAGE
    if previous is not None and not needs_rebase(previous, snapshot, turn):
        heard = turn if is_about else replace(turn, recalled=NOTHING)
        hits = _worth_telling(heard.recalled)
        room = max(turn.room, turn.budget // DELTAS_SHARE)
        news = {fact.id for fact in snapshot.facts if _written(fact) > previous.since}
        # What was recalled for earlier messages stays while there is room: the provider has it in its cache. Then the
        # newer half goes, as least stands behind it, or all. With a summary its messages go anyway.
        every, fits = len(previous.deltas), min(turn.budget, max(turn.budget * 2 // 5, FITTING_TOKENS))
        for number in dict.fromkeys([0] if turn.will_summarize else [every, every // 2, 0]):
            bare = (
                Delta(each.message_id, tuple(entry for entry in each.facts if entry[0] in news))
                for each in previous.deltas[number:]
            )
            deltas = (*previous.deltas[:number], *(each for each in bare if each.facts))
            kept = replace(previous, deltas=deltas, at=turn.now, lines_edit=snapshot.control.edit)
            spare = room - turn.size(kept, snapshot)
            told_in, most = (turn.budget, max(half, spare)) if number == every else (fits, min(half, spare))
            added = _delta(kept, snapshot, heard, hits, left=told_in, room=turn.at_most(min(turn.budget, most)))
            after = replace(kept, deltas=(*deltas, *added))
            if turn.size(after, snapshot) <= room:
                return after
    new = Injected(since=turn.now, at=turn.now, lines_edit=snapshot.control.edit)
    fitting = relevant(recalled.hits, LEAST_SHARE) if is_about else ()
    lines = [hit for hit in fitting if hit.document.entry]
    if lines or recalled.standing:
        # With half of the budget first: that says which past turns a fact tells already.
        told_by = replace(new, block=choose_block(snapshot, replace(turn, budget=half)), since=math.inf)
        room = turn.budget - turn.count(render_block(told_by, snapshot, half, turn.count))
        new = replace(new, deltas=_delta(told_by, snapshot, turn, lines, left=room, room=room))
    left = replace(turn, budget=turn.budget - turn.size(new, snapshot))
    return replace(new, block=choose_block(snapshot, left, left.budget if is_about else QUIET_TOKENS))


def _written(fact: Fact) -> float:
    """Return when a fact was written, seconds since 1970; one that does not tell is old."""
    written = moment(fact.updated_at)
    return written.timestamp() if written else 0.0


def told(injected: Injected, snapshot: MemorySnapshot, recalled: Recalled) -> MemorySnapshot:
    """Return the snapshot with the texts of the past turns that were just found, as far as a prompt shows them."""
    new = {line for _, line in injected.lines()} - snapshot.lines.keys()
    found = [*[hit.document for hit in recalled.hits], *recalled.standing]
    texts = {document.id: text for document in found if document.id in new and (text := line_of(document))}
    return replace(snapshot, lines={**snapshot.lines, **texts})


def needs_rebase(previous: Injected, snapshot: MemorySnapshot, turn: TurnConditions) -> bool:
    """Say whether a new block is due: the prefix is cold or wrong anyway.

    A new block changes the prompt's prefix, so that the provider reads the whole prompt again at the full price. A
    summary stands behind the block: it brings a new one only where there are facts, or texts of the profile, that are
    newer than the block.
    """
    if turn.will_summarize:
        sections = {(name, section.revision) for name, section in snapshot.profile.items()}
        if not sections <= set(previous.block) or any(_written(fact) > previous.since for fact in snapshot.facts):
            return True
    is_cold = turn.now - previous.at > turn.cache_ttl_seconds
    return is_cold or previous.since == NOT_USED or previous.is_stale(snapshot)


def choose_block(snapshot: MemorySnapshot, turn: TurnConditions, most: int | None = None) -> tuple[Entry, ...]:
    """Return what the block shows: the profile, then facts while they fit.

    Args:
        snapshot: The memory.
        turn: The turn.
        most: Tokens of the block, as far as it does not hold what is protected or holds for every answer.

    Pinned facts come first, then the other protected ones; then what holds for every answer: wishes about answers, and
    fresh corrections; then what fits the message, best first; then standing instructions; then the others; of equals
    the strongest.
    """
    places = {hit.document.id: place for place, hit in enumerate(turn.recalled.hits)}

    def rank(fact: Fact) -> tuple[float | str, ...]:
        place = places.get(fact.id, len(places))
        return (
            not fact.pinned, not is_protected(fact, turn.protected_categories), not _holds_always(fact, turn.now),
            place, fact.category not in STANDING, -fact.confidence, fact.id,
        )  # fmt: skip

    texts = {name: section.text for name, section in snapshot.profile.items()}
    ranked = sorted(snapshot.facts, key=rank)
    always = [fact for fact in ranked if not all(rank(fact)[:3])]
    room = turn.budget if most is None else min(most, turn.budget)
    several = ((ranked, room), (always, turn.budget))
    chosen = {fact.id for facts, tokens in several for fact in fitting_facts(texts, facts, tokens, turn.count)}
    sections = [(name, section.revision) for name, section in snapshot.profile.items()]
    facts = [(fact.id, fact.revision) for fact in snapshot.facts if fact.id in chosen]
    return (*sections, *facts)


def _holds_always(fact: Fact, now: float) -> bool:
    if fact.category == "preference":
        return is_about_answers(fact.content)
    return fact.category == "correction" and now - _written(fact) < FRESH_SECONDS


def _delta(
    injected: Injected, snapshot: MemorySnapshot, turn: TurnConditions, hits: Sequence[Hit], *, left: int, room: int
) -> tuple[Delta, ...]:
    """Return what is told before the newest message: news, strongest first; standing wishes; then hits, best first.

    News is what was written since the block was chosen; a fact that was older then found no place there. It is told in
    any case, up to a bound.

    Args:
        injected: What the prompt shows already.
        snapshot: The memory.
        turn: The turn.
        hits: What of all that was found is worth telling, best first.
        left: Tokens of all that fits the message, also of what is shown already; half for facts and half for past
            turns first, then either takes what the other left.
        room: Tokens of the delta, fence included.
    """
    facts, recalled = {fact.id: fact for fact in snapshot.facts}, turn.recalled
    shown = {*injected.fact_ids(), *(line for _, line in injected.lines())}
    told_by = {source for name in shown if name in facts for source in fact_sources(facts[name])}
    here = {line_id(turn.thread_id, message_id) for message_id in turn.window}
    told_by |= here
    news = [name for name, fact in facts.items() if name not in shown and _written(fact) > injected.since]
    chosen, counted = list[str](), set[str]()
    documents = {each.id: each for each in (*recalled.standing, *(hit.document for hit in hits))}
    # A line says what each fact of it does; a fact says nothing of the other facts that its message told.
    lines = {name for name in shown if name not in facts}
    frame = turn.count(render_delta([], [""]))
    left, room, half = left - frame, room - frame, left // 2
    most = {"standing": max(0, room // STANDING_SHARE), "fact": half, "turn": half, "rest": left}
    most["news"] = turn.at_most(turn.budget // DELTA_SHARE) - frame
    candidates = [*(("news", name) for name in news), *(("standing", each.id) for each in recalled.standing)]
    candidates += [(hit.document.kind, hit.document.id) for hit in hits]
    for part, name in [*candidates, *(("rest", hit.document.id) for hit in hits)]:
        fact, is_shown = facts.get(name), name in shown
        if name in counted:
            continue
        if fact is None:
            text, sources, is_told = line_of(documents[name]), {name}, name in told_by or not documents[name].entry
        else:
            text, sources = fact_line(fact), {*fact_sources(fact)}
            # The model reads in the thread itself what it was taken from.
            is_told = bool(sources & here) or (bool(sources) and sources <= lines)
        if not text or (is_told and not is_shown):
            continue
        tokens = turn.count(text + "\n")
        # News that finds no room makes a new block.
        if tokens > (most[part] if part == "news" else min(left, most[part], left if is_shown else room)):
            continue
        counted.add(name)
        left -= tokens
        most[part] -= tokens
        told_by |= sources
        lines |= sources if fact is None else set()
        if not is_shown:
            room -= tokens
            chosen.append(name)
    if not chosen:
        return ()
    known = tuple((name, fact.revision) for name, fact in facts.items() if name in chosen)
    past = tuple((documents[name].entry, name) for name in chosen if name not in facts)
    return (Delta(turn.message_id, known, past),)


def _worth_telling(recalled: Recalled) -> list[Hit]:
    """Return the hits, best first, that fit the message better than anything does; all where there are only facts.

    Facts are short, and of those that fit less, many fit into the tokens of a few past turns.
    """
    hits = recalled.hits
    if not any(hit.document.entry for hit in hits):
        return [*hits]
    anything = hits[COMMON_PLACE].score if len(hits) > COMMON_PLACE else 0.0
    return [hit for hit in hits if hit.score - anything >= RECALLED_LEAST * (hits[0].score - anything)]
