"""Which memory a thread's prompt shows: a frozen block in the system prompt, and deltas appended to it. Pure."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from memory.config import Category
from memory.context.tokens import count_tokens
from memory.facts.fact import Fact, is_protected, moment
from memory.facts.snapshot import MemorySnapshot
from memory.facts.words import without_repeats
from memory.injection.block import TextCounter, fact_line, fitting_facts, memory_data
from memory.injection.injected import NOT_USED, Delta, Entry, Injected, Line, render_delta, render_deltas
from memory.injection.past_turns import choose_lines, line_of, lines_by_entry, texts_of
from memory.journal.entry import line_id
from memory.recall import is_about_answers
from memory.recall.index import Hit, fact_sources
from memory.recall.user_index import NOTHING, Recalled

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
# A message of whose words no text of the user's has a quarter, counted by their rarity, is about something else.
LEAST_COVERAGE: Final = 0.27
# Facts are short: without past turns beside them, much less of a question about them stands in any one text.
LEAST_COVERAGE_OF_FACTS: Final = 0.15
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

    def shows(self, fact: Fact) -> bool:
        """Say whether the model reads in the thread itself what a fact was taken from."""
        return fact.thread_id == self.thread_id and any(each in self.window for each in fact.message_ids)

    def sizes(self, injected: Injected, snapshot: MemorySnapshot) -> dict[str, int]:
        """Return the tokens of the deltas, by the messages that they stand before."""
        return {name: self.count(text) for name, text in render_deltas(injected, snapshot).items()}

    def at_most(self, share: int) -> int:
        """Return a share of the budget, or what one delta may take if that is less."""
        return share if self.delta_budget is None else min(share, self.delta_budget)


def inject(previous: Injected | None, snapshot: MemorySnapshot, turn: TurnConditions) -> Injected:
    """Return what the prompt of this turn shows: the block as it was, with what is new or matters now; or a new block.

    What holds no longer is not shown as current. The texts of past turns that it shows are not in the snapshot yet:
    `told` adds them.
    """
    snapshot = snapshot.at(turn.now)
    if not snapshot.is_used:
        return Injected(since=NOT_USED, at=turn.now, edit=snapshot.edit)
    if previous is not None and not needs_rebase(previous, snapshot, turn):
        for kept, most in _kept(previous, snapshot, turn):
            after = _with_delta(kept, snapshot, turn, most)
            shown = told(after, snapshot, turn.recalled)
            if sum(turn.sizes(after, shown).values()) <= _room(turn):
                return after
    # With half of the budget first: that says which past turns a fact tells already.
    new = Injected(since=turn.now, at=turn.now, edit=snapshot.edit)
    half = choose_block(snapshot, replace(turn, budget=turn.budget // 2))
    lines = _lines_beside(half, snapshot, turn)
    new = replace(new, deltas=(Delta(turn.message_id, (), lines),) if lines else ())
    left = turn.budget - sum(turn.sizes(new, told(new, snapshot, turn.recalled)).values())
    return replace(new, block=choose_block(snapshot, replace(turn, budget=left)))


def _room(turn: TurnConditions) -> int:
    """Return how many tokens all deltas together may take."""
    return max(turn.room, turn.budget // DELTAS_SHARE)


def _kept(previous: Injected, snapshot: MemorySnapshot, turn: TurnConditions) -> Iterator[tuple[Injected, int]]:
    """Yield what may stay of the deltas, most first, and how many tokens the newest message's delta then has at most.

    What was recalled for earlier messages stays while there is room: the provider has it in its cache. Then the newest
    of it goes first, as least of the prompt stands behind it and is read anew. News stays until a new block has it.
    """
    news = {fact.id for fact in snapshot.facts if _is_news(fact, previous)}
    bare = [
        Delta(each.message_id, tuple(entry for entry in each.facts if entry[0] in news)) for each in previous.deltas
    ]

    def kept(number: int) -> Injected:
        return replace(previous, deltas=(*previous.deltas[:number], *(each for each in bare[number:] if each.facts)))

    whole, least = turn.sizes(previous, snapshot), turn.sizes(kept(0), snapshot)

    def spare(number: int) -> int:
        used = [whole.get(each.message_id, 0) for each in previous.deltas[:number]]
        used += [least.get(each.message_id, 0) for each in previous.deltas[number:]]
        return _room(turn) - sum(used)

    full, less = len(bare), turn.budget // DELTAS_SHARE
    # With a summary the messages before which it stands go, and the prompt changes behind the block anyway.
    if turn.will_summarize:
        yield kept(0), min(turn.budget, spare(0))
        return
    yield previous, min(turn.budget, max(less, spare(full)))
    if fewer := next((number for number in range(full - 1, 0, -1) if spare(number) >= less), 0):
        yield kept(fewer), less
    yield kept(0), min(less, spare(0))


def _is_news(fact: Fact, injected: Injected) -> bool:
    """Say whether a fact was written since the block was chosen."""
    written = moment(fact.updated_at)
    return written is not None and written.timestamp() > injected.since


def _with_delta(previous: Injected, snapshot: MemorySnapshot, turn: TurnConditions, most: int) -> Injected:
    """Return the choice with what is new, or matters to the newest message, and is not shown yet.

    With what matters, its delta has so many tokens at most.
    """
    news = choose_news(previous, snapshot, turn)
    wanted = choose_recalled(previous, news, snapshot, turn, most)
    facts = tuple((fact.id, fact.revision) for fact in snapshot.facts if fact.id in {*news, *wanted})
    lines = lines_by_entry((each for each in wanted if each in turn.recalled.entries), turn.recalled.entries)
    added = (Delta(turn.message_id, facts, lines),) if facts or lines else ()
    return replace(previous, deltas=(*previous.deltas, *added), at=turn.now, edit=snapshot.edit)


def told(injected: Injected, snapshot: MemorySnapshot, recalled: Recalled) -> MemorySnapshot:
    """Return the snapshot with the texts of the past turns that were just found, as far as a prompt shows them."""
    new = [line for _, line in injected.lines() if line not in snapshot.lines]
    return replace(snapshot, lines={**snapshot.lines, **texts_of(recalled, new)}) if new else snapshot


def _lines_beside(entries: Iterable[Entry], snapshot: MemorySnapshot, turn: TurnConditions) -> tuple[Line, ...]:
    """Return the past turns that a new block's first delta shows: none that its facts tell already."""
    names = {name for name, _ in entries}
    of_facts = {source for fact in snapshot.facts if fact.id in names for source in fact_sources(fact)}
    in_window = {line_id(turn.thread_id, message_id) for message_id in turn.window}
    lines = choose_lines(
        turn.recalled,
        budget=turn.budget // 2 - turn.count(render_delta([])),
        token_counter=turn.count,
        left_out=of_facts | in_window,
    )
    return lines_by_entry(lines, turn.recalled.entries)


def needs_rebase(previous: Injected, snapshot: MemorySnapshot, turn: TurnConditions) -> bool:
    """Say whether a new block is due: the prefix is cold or wrong anyway.

    A new block changes the prompt's prefix, so that the provider reads the whole prompt again at the full price. A
    summary stands behind the block: it brings a new one only where there are facts, or texts of the profile, that are
    newer than the block.
    """
    if turn.will_summarize:
        sections = {(name, section.revision) for name, section in snapshot.profile.items()}
        if not sections <= set(previous.block) or any(_is_news(fact, previous) for fact in snapshot.facts):
            return True
    is_cold = turn.now - previous.at > turn.cache_ttl_seconds
    return is_cold or previous.since == NOT_USED or previous.is_stale(snapshot)


def choose_block(snapshot: MemorySnapshot, turn: TurnConditions) -> tuple[Entry, ...]:
    """Return what the block shows: the profile, then facts while they fit.

    Pinned facts come first, then the other protected ones; then what holds for every answer: wishes about answers, and
    fresh corrections; then what fits the message, best first; then standing instructions; then the others; of equals
    the strongest. What says the same as another fact is shown once.
    """
    places = {hit.document.id: place for place, hit in enumerate(turn.recalled.hits)}

    def rank(fact: Fact) -> tuple[bool, bool, bool, int, bool, float, str]:
        protected = is_protected(fact, turn.protected_categories)
        place = places.get(fact.id, len(places))
        return (
            not fact.pinned, not protected, not _holds_always(fact, turn.now),
            place, fact.category not in STANDING, -fact.confidence, fact.id,
        )  # fmt: skip

    texts = {name: section.text for name, section in snapshot.profile.items()}
    data = memory_data(without_repeats(sorted(snapshot.facts, key=rank)), texts)
    chosen = {fact.id for fact in fitting_facts(data, turn.budget, turn.count) if isinstance(fact, Fact)}
    sections = [(name, section.revision) for name, section in snapshot.profile.items()]
    facts = [(fact.id, fact.revision) for fact in snapshot.facts if fact.id in chosen]
    return (*sections, *facts)


def _holds_always(fact: Fact, now: float) -> bool:
    if fact.category == "preference":
        return is_about_answers(fact.content)
    written = moment(fact.updated_at)
    return fact.category == "correction" and written is not None and now - written.timestamp() < FRESH_SECONDS


def choose_news(previous: Injected, snapshot: MemorySnapshot, turn: TurnConditions) -> list[str]:
    """Return the ids of facts written since the block was chosen that the prompt does not show yet, strongest first.

    A fact that was older when the block was chosen found no place there, and is no news.
    """
    shown = set(previous.fact_ids())
    new: list[Fact] = []
    for fact in snapshot.facts:
        if fact.id in shown or turn.shows(fact) or not _is_news(fact, previous):
            continue
        if turn.count(render_delta([*new, fact])) <= turn.at_most(turn.budget // DELTA_SHARE):
            new.append(fact)
    return [fact.id for fact in new]


def choose_recalled(
    previous: Injected,
    news: Collection[str],
    snapshot: MemorySnapshot,
    turn: TurnConditions,
    most: int,
) -> list[str]:
    """Return the ids of facts and past turns that matter to a message and that the prompt does not show yet.

    They are what a new block would show for the message, without what is shown already. Wishes of earlier conversations
    come first. Then what fits the message, best first: a fact needs no turn beside it that it was taken from, nor the
    other way round. Half of the budget is for facts and half for past turns, and then either takes what the other left.
    What is shown already takes its part of that, but none of what one delta may take.
    Nothing is chosen for a message that is about nothing the user ever spoke of, or only greets or thanks.

    Args:
        previous: What the prompt shows.
        news: Facts that the same delta tells, by their ids.
        snapshot: The memory.
        turn: The turn.
        most: Tokens of the delta at most, with its news and its fence.
    """
    recalled, facts = turn.recalled, {fact.id: fact for fact in snapshot.facts}
    if recalled.coverage < (LEAST_COVERAGE if recalled.entries else LEAST_COVERAGE_OF_FACTS):
        return []
    shown = {*previous.fact_ids(), *news, *(line for _, line in previous.lines())}
    told_by = {source for name in shown if name in facts for source in fact_sources(facts[name])}
    told_by |= {line_id(turn.thread_id, message_id) for message_id in turn.window}
    # A line says what each fact of it does; a fact says nothing of the other facts that its message told.
    lines = {line for _, line in previous.lines()}
    frame = turn.count(render_delta([fact for name, fact in facts.items() if name in news], [""]))
    room = turn.at_most(most) - frame
    chosen = choose_lines(
        replace(recalled, hits=()), budget=room, token_counter=turn.count, left_out=told_by, shown=shown
    )
    wishes = sum(turn.count(line_of(each) + "\n") for each in recalled.standing if each.id in chosen)
    left, room = turn.budget - wishes, room - wishes
    counted = set(chosen)
    lines |= counted
    half = dict.fromkeys(("fact", "turn"), left // 2)
    for is_rest, hit in product((False, True), _worth_telling(recalled)):
        name, fact = hit.document.id, facts.get(hit.document.id)
        if name in counted:
            continue
        is_shown = name in shown
        if fact is None:
            if name not in recalled.entries or (not is_shown and name in told_by):
                continue
            text, sources = line_of(hit.document), {name}
        else:
            text, sources = fact_line(fact), set(fact_sources(fact))
            if not is_shown and (turn.shows(fact) or (sources and sources <= lines)):
                continue
        tokens = turn.count(text + "\n")
        fitting = left if is_rest else min(left, half[hit.document.kind])
        if not text or tokens > (fitting if is_shown else min(fitting, room)):
            continue
        counted.add(name)
        left -= tokens
        half[hit.document.kind] -= tokens
        told_by |= sources
        lines |= sources if fact is None else set()
        if not is_shown:
            room -= tokens
            chosen.append(name)
    return chosen


def _worth_telling(recalled: Recalled) -> list[Hit]:
    """Return the hits, best first, that fit the message better than anything does; all where there are only facts.

    Facts are short, and of those that fit less, many fit into the tokens of a few past turns.
    """
    hits = recalled.hits
    if not recalled.entries:
        return [*hits]
    anything = hits[COMMON_PLACE].score if len(hits) > COMMON_PLACE else 0.0
    return [hit for hit in hits if hit.score - anything >= RECALLED_LEAST * (hits[0].score - anything)]
