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
from memory.injection.past_turns import choose_lines, line_of, lines_by_entry, texts_of
from memory.journal.entry import line_id
from memory.recall import is_about_answers
from memory.recall.documents import fact_sources
from memory.recall.search import relevant
from memory.recall.user_index import NOTHING, Recalled

Rebase = Literal["first", "summary", "stale", "idle"]

# What the user asked of the assistant holds for every turn, so it comes before facts that only some turns need.
STANDING: Final[frozenset[Category]] = frozenset({"preference", "correction"})
# News in one delta takes at most a quarter of the block's budget: what arrives in a rush is told in several turns. When
# all deltas together take more than half of it, what was recalled goes; where news alone take it, a new block has them.
DELTA_SHARE: Final = 4
DELTAS_SHARE: Final = 2
# Of one message's delta: so much of the block's budget is for what was recalled, and what fits the message a fifth as
# well as the best does is worth its tokens. More found hardly more on public conversations (`make bench-quality`).
RECALLED_SHARE: Final = 0.75
RECALLED_LEAST: Final = 0.2
# A message of whose words no text of the user's has a quarter, counted by their rarity, is about something else.
LEAST_COVERAGE: Final = 0.27
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
    if previous is not None and needs_rebase(previous, snapshot, turn) is None:
        # What was recalled for earlier messages stays while there is room: the provider has it in its cache. Then all
        # of it goes at once, so that the prompt changes once and not each turn. News stays until a new block has it.
        # With a summary the messages before which it stands go, and the prompt changes behind the block anyway.
        for only_news in (True,) if turn.will_summarize else (False, True):
            kept = _only_news(previous, snapshot) if only_news else previous
            after = _with_delta(kept, snapshot, turn, token_counter)
            shown = told(after, snapshot, turn.recalled)
            if tokens_of_deltas(after, shown, token_counter) <= _room(turn):
                return after
    # With half of the budget first: that says which past turns a fact tells already.
    new = Injected(since=turn.now, at=turn.now, edit=snapshot.edit)
    half = choose_block(snapshot, replace(turn, budget=turn.budget // 2), token_counter)
    lines = _lines_beside(half, snapshot, turn, token_counter)
    new = replace(new, deltas=(Delta(turn.message_id, (), lines),) if lines else ())
    left = turn.budget - tokens_of_deltas(new, told(new, snapshot, turn.recalled), token_counter)
    return replace(new, block=choose_block(snapshot, replace(turn, budget=left), token_counter))


def _room(turn: TurnConditions) -> int:
    """Return how many tokens all deltas together may take."""
    return max(turn.room, turn.budget // DELTAS_SHARE)


def _only_news(injected: Injected, snapshot: MemorySnapshot) -> Injected:
    """Return the choice without what was recalled for single messages: of the deltas, what is newer than the block."""
    news = {fact.id for fact in snapshot.facts if _is_news(fact, injected)}
    told_of = [(each.message_id, tuple(entry for entry in each.facts if entry[0] in news)) for each in injected.deltas]
    return replace(injected, deltas=tuple(Delta(message_id, facts) for message_id, facts in told_of if facts))


def _is_news(fact: Fact, injected: Injected) -> bool:
    """Say whether a fact was written since the block was chosen."""
    written = moment(fact.updated_at)
    return written is not None and written.timestamp() > injected.since


def _with_delta(
    previous: Injected, snapshot: MemorySnapshot, turn: TurnConditions, token_counter: TextCounter
) -> Injected:
    """Return the choice with what is new, or matters to the newest message, and is not shown yet."""
    news = choose_news(previous, snapshot, turn, token_counter)
    wanted = choose_recalled(previous, news, snapshot, turn, token_counter)
    facts = tuple((fact.id, fact.revision) for fact in snapshot.facts if fact.id in {*news, *wanted})
    lines = lines_by_entry((each for each in wanted if each in turn.recalled.entries), turn.recalled.entries)
    added = (Delta(turn.message_id, facts, lines),) if facts or lines else ()
    return replace(previous, deltas=(*previous.deltas, *added), at=turn.now, edit=snapshot.edit)


def told(injected: Injected, snapshot: MemorySnapshot, recalled: Recalled) -> MemorySnapshot:
    """Return the snapshot with the texts of the past turns that were just found, as far as a prompt shows them."""
    new = [line for _, line in injected.lines() if line not in snapshot.lines]
    return replace(snapshot, lines={**snapshot.lines, **texts_of(recalled, new)}) if new else snapshot


def _lines_beside(
    entries: Iterable[Entry], snapshot: MemorySnapshot, turn: TurnConditions, token_counter: TextCounter
) -> tuple[Line, ...]:
    """Return the past turns that a new block's first delta shows: none that its facts tell already."""
    names = {name for name, _ in entries}
    of_facts = {source for fact in snapshot.facts if fact.id in names for source in fact_sources(fact)}
    in_window = {line_id(turn.thread_id, message_id) for message_id in turn.window}
    lines = choose_lines(
        turn.recalled,
        budget=turn.budget // 2 - token_counter(render_delta([])),
        token_counter=token_counter,
        left_out=of_facts | in_window,
    )
    return lines_by_entry(lines, turn.recalled.entries)


def needs_rebase(previous: Injected | None, snapshot: MemorySnapshot, turn: TurnConditions) -> Rebase | None:
    """Say why a new block is due: there is none, or the prefix is cold or wrong anyway; `None` if it is not.

    A new block changes the prompt's prefix, so that the provider reads the whole prompt again at the full price. A
    summary stands behind the block: it brings a new one only where there is something new to tell.
    """
    if previous is None:
        return "first"
    if turn.will_summarize and has_news(previous, snapshot):
        return "summary"
    if previous.since == NOT_USED or previous.is_stale(snapshot):
        return "stale"
    return "idle" if turn.now - previous.at > turn.cache_ttl_seconds else None


def has_news(injected: Injected, snapshot: MemorySnapshot) -> bool:
    """Say whether there are facts, or texts of the profile, that are newer than the block."""
    sections = {(name, section.revision) for name, section in snapshot.profile.items()}
    return not sections <= set(injected.block) or any(_is_news(fact, injected) for fact in snapshot.facts)


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


def choose_news(
    previous: Injected, snapshot: MemorySnapshot, turn: TurnConditions, token_counter: TextCounter
) -> list[str]:
    """Return the ids of facts written since the block was chosen that the prompt does not show yet, strongest first.

    A fact that was older when the block was chosen found no place there, and is no news.
    """
    shown = set(previous.fact_ids())
    new: list[Fact] = []
    for fact in snapshot.facts:
        if fact.id in shown or turn.shows(fact) or not _is_news(fact, previous):
            continue
        if token_counter(render_delta([*new, fact])) <= turn.budget // DELTA_SHARE:
            new.append(fact)
    return [fact.id for fact in new]


def choose_recalled(
    previous: Injected,
    news: Iterable[str],
    snapshot: MemorySnapshot,
    turn: TurnConditions,
    token_counter: TextCounter,
) -> list[str]:
    """Return the ids of facts and past turns that matter to a message and that the prompt does not show yet.

    Wishes of earlier conversations come first. Then what fits the message, best first, in one order: a fact needs no
    turn beside it that it was taken from, nor the other way round. What is shown already takes its part of the tokens.
    Nothing is chosen for a message that is about nothing the user ever spoke of, or only greets or thanks.
    """
    recalled, facts = turn.recalled, {fact.id: fact for fact in snapshot.facts}
    if recalled.coverage < LEAST_COVERAGE:
        return []
    shown = {*previous.fact_ids(), *news, *(line for _, line in previous.lines())}
    told_by = {source for name in shown if name in facts for source in fact_sources(facts[name])}
    told_by |= {line_id(turn.thread_id, message_id) for message_id in turn.window}
    left = int(turn.budget * RECALLED_SHARE)
    chosen = choose_lines(
        replace(recalled, hits=()), budget=left, token_counter=token_counter, left_out=told_by, shown=shown
    )
    left -= sum(token_counter(line_of(each) + "\n") for each in recalled.standing if each.id in chosen)
    shown_or_chosen = {*shown, *chosen}
    for hit in relevant(recalled.hits, RECALLED_LEAST):
        name, fact = hit.document.id, facts.get(hit.document.id)
        is_shown = name in shown_or_chosen
        if fact is None:
            if name not in recalled.entries or (not is_shown and name in told_by):
                continue
            text, sources = line_of(hit.document), {name}
        else:
            text, sources = fact_line(fact), set(fact_sources(fact))
            if not is_shown and (turn.shows(fact) or (sources and sources <= told_by)):
                continue
        tokens = token_counter(text + "\n")
        if not text or tokens > left or name in chosen:
            continue
        left -= tokens
        told_by |= sources
        if not is_shown:
            chosen.append(name)
    return chosen
