"""Which memory a thread's prompt shows: a frozen block in the system prompt, and deltas appended to it. Pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from memory.config import Category
from memory.facts.fact import Fact, is_protected, moment
from memory.facts.repeats import without_repeats
from memory.facts.snapshot import MemorySnapshot
from memory.injection.block import TextCounter, fact_line, fitting_facts, memory_data
from memory.injection.injected import NOT_USED, Delta, Entry, Injected, Line, render_delta, render_deltas
from memory.injection.past_turns import LEAST_SHARE, choose_lines, lines_by_entry, texts_of
from memory.journal.entry import line_id
from memory.recall import is_about_answers
from memory.recall.documents import fact_sources
from memory.recall.search import relevant
from memory.recall.user_index import NOTHING, Recalled

Rebase = Literal["first", "summary", "stale", "idle", "full"]

# What the user asked of the assistant holds for every turn, so it comes before facts that only some turns need.
STANDING: Final[frozenset[Category]] = frozenset({"preference", "correction"})
# One delta takes at most a quarter of the block's budget: what arrives in a rush is told in several turns. When all
# deltas together take more than half of it, one new block costs fewer tokens than they do, and its facts are sorted.
DELTA_SHARE: Final = 4
DELTAS_SHARE: Final = 2
FRESH_SECONDS: Final = 7 * 86_400.0


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
        room: Tokens that all deltas together may take before one new block takes their place; the budget if it is more.
        recalled: What recall found for the newest message.
    """

    thread_id: str
    message_id: str
    window: Collection[str]
    now: float
    cache_ttl_seconds: float
    will_summarize: bool
    budget: int
    protected_categories: frozenset[Category] = frozenset()
    room: int = 0
    recalled: Recalled = NOTHING

    def shows(self, fact: Fact) -> bool:
        """Say whether the model reads in the thread itself what a fact was taken from."""
        return fact.thread_id == self.thread_id and any(each in self.window for each in fact.message_ids)


def inject(
    previous: Injected | None, snapshot: MemorySnapshot, turn: TurnConditions, token_counter: TextCounter
) -> Injected:
    """Return what the prompt of this turn shows: the block as it was, with what is new or matters now; or a new block.

    What holds no longer is not shown as current. The texts of past turns that it shows are not in the snapshot yet:
    `told` adds them.
    """
    snapshot = snapshot.at(turn.now)
    if not snapshot.is_used:
        return Injected(since=NOT_USED, at=turn.now, edit=snapshot.edit)
    if previous is not None and needs_rebase(previous, snapshot, turn, token_counter) is None:
        room = _room(turn)
        # Where it does not fit, what was recalled for earlier messages goes, half of it or all: the prompt then changes
        # near its end, and not with its block. News stays, until a new block has it.
        for most in (room, room // 2, 0):
            kept = _newest_deltas(previous, snapshot, most, token_counter)
            after = _with_delta(kept, snapshot, turn, token_counter)
            shown = told(after, snapshot, turn.recalled)
            if after.deltas == previous.deltas or tokens_of_deltas(after, shown, token_counter) <= room:
                return after
    # With half of the budget first: that says which past turns a fact tells already.
    new = Injected(since=turn.now, at=turn.now, edit=snapshot.edit)
    half = choose_block(snapshot, replace(turn, budget=turn.budget // 2), token_counter)
    lines = _lines_for(new, half, snapshot, turn, token_counter)
    new = replace(new, deltas=(Delta(turn.message_id, (), lines),) if lines else ())
    left = turn.budget - tokens_of_deltas(new, told(new, snapshot, turn.recalled), token_counter)
    return replace(new, block=choose_block(snapshot, replace(turn, budget=left), token_counter))


def _room(turn: TurnConditions) -> int:
    """Return how many tokens all deltas together may take."""
    return max(turn.room, turn.budget // DELTAS_SHARE)


def _newest_deltas(injected: Injected, snapshot: MemorySnapshot, most: int, token_counter: TextCounter) -> Injected:
    """Return the choice with only so many of its newest deltas as take no more than `most` tokens."""
    kept = injected
    news = {fact.id for fact in snapshot.facts if _is_news(fact, injected)}
    while kept.deltas and tokens_of_deltas(kept, snapshot, token_counter) > most:
        if any(name in news for name, _ in kept.deltas[0].facts):
            break
        kept = replace(kept, deltas=kept.deltas[1:])
    return kept


def _is_news(fact: Fact, injected: Injected) -> bool:
    """Say whether a fact was written since the block was chosen."""
    written = moment(fact.updated_at)
    return written is not None and written.timestamp() > injected.since


def _with_delta(
    previous: Injected, snapshot: MemorySnapshot, turn: TurnConditions, token_counter: TextCounter
) -> Injected:
    """Return the choice with what is new, or matters to the newest message, and is not shown yet."""
    facts = choose_delta(previous, snapshot, turn, token_counter)
    lines = _lines_for(previous, (*previous.entries(), *facts), snapshot, turn, token_counter)
    added = (Delta(turn.message_id, facts, lines),) if facts or lines else ()
    return replace(previous, deltas=(*previous.deltas, *added), at=turn.now, edit=snapshot.edit)


def told(injected: Injected, snapshot: MemorySnapshot, recalled: Recalled) -> MemorySnapshot:
    """Return the snapshot with the texts of the past turns that were just found, as far as a prompt shows them."""
    new = [line for _, line in injected.lines() if line not in snapshot.lines]
    return replace(snapshot, lines={**snapshot.lines, **texts_of(recalled, new)}) if new else snapshot


def _lines_for(
    previous: Injected,
    entries: Iterable[Entry],
    snapshot: MemorySnapshot,
    turn: TurnConditions,
    token_counter: TextCounter,
) -> tuple[Line, ...]:
    names = {name for name, _ in entries}
    of_facts = {source for fact in snapshot.facts if fact.id in names for source in fact_sources(fact)}
    in_window = {line_id(turn.thread_id, message_id) for message_id in turn.window}
    lines = choose_lines(
        turn.recalled,
        budget=turn.budget // 2 - token_counter(render_delta([])),
        token_counter=token_counter,
        left_out=of_facts | in_window,
        shown={line for _, line in previous.lines()},
    )
    return lines_by_entry(lines, turn.recalled.entries)


def needs_rebase(
    previous: Injected | None, snapshot: MemorySnapshot, turn: TurnConditions, token_counter: TextCounter
) -> Rebase | None:
    """Say why a new block is due: there is none, or the prefix is cold or wrong anyway; `None` if it is not.

    A new block changes the prompt's prefix, so that the provider reads the whole prompt again at the full price.
    """
    if previous is None:
        return "first"
    if turn.will_summarize:
        return "summary"
    if previous.since == NOT_USED:
        return "stale"
    if previous.is_stale(snapshot):
        return "stale"
    if turn.now - previous.at > turn.cache_ttl_seconds:
        return "idle"
    used = tokens_of_deltas(previous, snapshot, token_counter)
    return "full" if used > _room(turn) else None


def tokens_of_deltas(injected: Injected, snapshot: MemorySnapshot, token_counter: TextCounter) -> int:
    """Return how many tokens the deltas take together."""
    return sum(token_counter(text) for text in render_deltas(injected, snapshot).values())


def choose_block(snapshot: MemorySnapshot, turn: TurnConditions, token_counter: TextCounter) -> tuple[Entry, ...]:
    """Return what the block shows: the profile, then facts while they fit.

    Protected facts come first; then what holds for every answer: wishes about answers, and fresh corrections; then what
    fits the message, best first; then standing instructions; then the others; of equals the strongest. What says the
    same as another fact is shown once.
    """
    places = {hit.document.id: place for place, hit in enumerate(turn.recalled.hits)}

    def rank(fact: Fact) -> tuple[bool, bool, int, bool, float, str]:
        protected = is_protected(fact, turn.protected_categories)
        place = places.get(fact.id, len(places))
        return (
            not protected, not _holds_always(fact, turn.now), place, fact.category not in STANDING, -fact.confidence,
            fact.id,
        )  # fmt: skip

    texts = {name: section.text for name, section in snapshot.profile.items()}
    data = memory_data(without_repeats(sorted(snapshot.facts, key=rank)), texts)
    chosen = {fact.id for fact in fitting_facts(data, turn.budget, token_counter) if isinstance(fact, Fact)}
    sections = [(name, section.revision) for name, section in snapshot.profile.items()]
    facts = [(fact.id, fact.revision) for fact in snapshot.facts if fact.id in chosen]
    return (*sections, *facts)


def _holds_always(fact: Fact, now: float) -> bool:
    if fact.category == "preference":
        return is_about_answers(fact.content)
    written = moment(fact.updated_at)
    return fact.category == "correction" and written is not None and now - written.timestamp() < FRESH_SECONDS


def choose_delta(
    previous: Injected, snapshot: MemorySnapshot, turn: TurnConditions, token_counter: TextCounter
) -> tuple[Entry, ...]:
    """Return the facts that the prompt does not show yet: those written since the block was chosen, and what matters.

    Of the first, the strongest come first. A fact that was older when the block was chosen found no place there, and is
    no news; it is shown where a message asks for it.
    """
    shown = set(previous.fact_ids())
    new: list[Fact] = []
    for fact in snapshot.facts:
        if fact.id in shown or turn.shows(fact) or not _is_news(fact, previous):
            continue
        if token_counter(render_delta([*new, fact])) <= turn.budget // DELTA_SHARE:
            new.append(fact)
    facts = {fact.id: fact for fact in snapshot.facts}
    chosen = {fact.id for fact in new}
    # What is shown already counts, too: a new block would have no more room for what matters.
    left = turn.budget // 2 if any(hit.document.kind == "turn" for hit in turn.recalled.hits) else turn.budget
    for hit in relevant(turn.recalled.hits, LEAST_SHARE):
        wanted = facts.get(hit.document.id)
        if wanted is None:
            continue
        left -= token_counter(fact_line(wanted) + "\n")
        if left < 0:
            break
        if wanted.id not in shown and not turn.shows(wanted):
            chosen.add(wanted.id)
    return tuple((fact.id, fact.revision) for fact in snapshot.facts if fact.id in chosen)
