"""Which memory a thread's prompt shows: a frozen block in the system prompt, and deltas appended to it. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self

from memory import prompts
from memory.config import Category
from memory.facts.fact import Fact, is_protected, moment
from memory.facts.repeats import without_repeats
from memory.facts.snapshot import MemorySnapshot
from memory.injection.block import TextCounter, fact_line, fitting_facts, memory_data, render_memory_block

Entry = tuple[str, int]
Rebase = Literal["first", "summary", "stale", "idle", "full"]

# What the user asked of the assistant holds for every turn, so it comes before facts that only some turns need.
STANDING: Final[frozenset[Category]] = frozenset({"preference", "correction"})
# One delta takes at most a quarter of the block's budget: what arrives in a rush is told in several turns. When all
# deltas together take more than half of it, one new block costs fewer tokens than they do, and its facts are sorted.
DELTA_SHARE: Final = 4
DELTAS_SHARE: Final = 2


@dataclass(frozen=True, slots=True)
class Delta:
    """Facts that are shown directly before one message of the user."""

    message_id: str
    facts: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """What a thread's prompt shows, as ids and revisions; the texts are rendered from the store.

    Attributes:
        block: Facts (`fact_…`) and profile sections (`user.work`) of the block, each with its revision.
        deltas: What was appended since, oldest first.
        since: When the block was chosen, seconds since 1970.
        at: When the prompt was last built, seconds since 1970.
    """

    block: tuple[Entry, ...] = ()
    deltas: tuple[Delta, ...] = ()
    since: float = 0.0
    at: float = 0.0

    @classmethod
    def from_state(cls, value: object) -> Self | None:
        """Return what a thread's state says; `None` if it says nothing that can be read.

        A state keeps the block under the key `basis`.
        """
        if not isinstance(value, Mapping) or "basis" not in value:
            return None
        try:
            return cls(
                block=_entries(value["basis"]),
                deltas=tuple(
                    Delta(str(each["message_id"]), _entries(each["facts"])) for each in value.get("deltas", ())
                ),
                since=float(value.get("since", 0.0)),
                at=float(value.get("at", 0.0)),
            )
        except (KeyError, TypeError, ValueError):
            return None

    def to_state(self) -> dict[str, object]:
        """Return its JSON form: ids, revisions and times, never texts."""
        return {
            "basis": [list(entry) for entry in self.block],
            "deltas": [
                {"message_id": delta.message_id, "facts": [list(entry) for entry in delta.facts]}
                for delta in self.deltas
            ],
            "since": self.since,
            "at": self.at,
        }

    def entries(self) -> tuple[Entry, ...]:
        """Return all that is shown, in the block and in deltas."""
        return (*self.block, *(entry for delta in self.deltas for entry in delta.facts))

    def fact_ids(self) -> tuple[str, ...]:
        """Return the ids of all facts that are shown."""
        return tuple(dict.fromkeys(name for name, _ in self.entries() if not _is_section(name)))

    def is_stale(self, snapshot: MemorySnapshot) -> bool:
        """Say whether the prompt shows a fact that was corrected, edited or deleted, or a section that is gone."""
        current = {(fact.id, fact.revision) for fact in snapshot.facts}
        return any(
            snapshot.profile[name].at(revision) is None
            if _is_section(name) and name in snapshot.profile
            else (name, revision) not in current
            for name, revision in self.entries()
        )


def _entries(value: Iterable[Any]) -> tuple[Entry, ...]:
    return tuple((str(name), int(revision)) for name, revision in value)


def _is_section(name: str) -> bool:
    return "." in name


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
    """

    thread_id: str
    message_id: str
    window: Collection[str]
    now: float
    cache_ttl_seconds: float
    will_summarize: bool
    budget: int
    protected_categories: frozenset[Category] = frozenset()

    def shows(self, fact: Fact) -> bool:
        """Say whether the model reads in the thread itself what a fact was taken from."""
        return fact.thread_id == self.thread_id and any(each in self.window for each in fact.message_ids)


def inject(
    previous: Injected | None, snapshot: MemorySnapshot, turn: TurnConditions, token_counter: TextCounter
) -> Injected:
    """Return what the prompt of this turn shows: the block as it was and what arrived since, or a new block.

    What holds no longer is not shown as current.
    """
    snapshot = snapshot.at(turn.now)
    if previous is None or needs_rebase(previous, snapshot, turn, token_counter) is not None:
        return Injected(block=choose_block(snapshot, turn, token_counter), since=turn.now, at=turn.now)
    chosen = choose_delta(previous, snapshot, turn, token_counter)
    deltas = (*previous.deltas, Delta(turn.message_id, chosen)) if chosen else previous.deltas
    return replace(previous, deltas=deltas, at=turn.now)


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
    if previous.is_stale(snapshot):
        return "stale"
    if turn.now - previous.at > turn.cache_ttl_seconds:
        return "idle"
    used = sum(token_counter(text) for text in render_deltas(previous, snapshot).values())
    return "full" if used > turn.budget // DELTAS_SHARE else None


def choose_block(snapshot: MemorySnapshot, turn: TurnConditions, token_counter: TextCounter) -> tuple[Entry, ...]:
    """Return what the block shows: the profile, then facts while they fit.

    Protected facts come first, then standing instructions, then the others; in each group the strongest. What says the
    same as another fact is shown once.
    """

    def rank(fact: Fact) -> tuple[bool, bool, float, str]:
        protected = is_protected(fact, turn.protected_categories)
        return (not protected, fact.category not in STANDING, -fact.confidence, fact.id)

    texts = {name: section.text for name, section in snapshot.profile.items()}
    data = memory_data(without_repeats(sorted(snapshot.facts, key=rank)), texts)
    chosen = {fact.id for fact in fitting_facts(data, turn.budget, token_counter) if isinstance(fact, Fact)}
    sections = [(name, section.revision) for name, section in snapshot.profile.items()]
    facts = [(fact.id, fact.revision) for fact in snapshot.facts if fact.id in chosen]
    return (*sections, *facts)


def choose_delta(
    previous: Injected, snapshot: MemorySnapshot, turn: TurnConditions, token_counter: TextCounter
) -> tuple[Entry, ...]:
    """Return the facts written since the block was chosen that the prompt does not show yet, as many as fit.

    The strongest come first. A fact that was older when the block was chosen found no place there, and is no news.
    """
    shown = set(previous.fact_ids())
    chosen: list[Fact] = []
    for fact in snapshot.facts:
        written = moment(fact.updated_at)
        if fact.id in shown or turn.shows(fact) or written is None or written.timestamp() <= previous.since:
            continue
        if token_counter(render_delta([*chosen, fact])) <= turn.budget // DELTA_SHARE:
            chosen.append(fact)
    return tuple((fact.id, fact.revision) for fact in chosen)


def render_block(injected: Injected, snapshot: MemorySnapshot, budget: int, token_counter: TextCounter) -> str:
    """Return the memory block of the system prompt, fenced, within the budget; empty where there is nothing to say."""
    facts = {fact.id: fact for fact in snapshot.facts}
    shown = [facts[name] for name, _ in injected.block if name in facts]
    texts = {
        # The text that the thread began with, so that the prefix stays as the provider cached it.
        name: section.at(revision) or section.text
        for name, revision in injected.block
        if (section := snapshot.profile.get(name)) is not None
    }
    return render_memory_block(memory_data(shown, texts), budget, token_counter)


def render_deltas(injected: Injected, snapshot: MemorySnapshot) -> dict[str, str]:
    """Return the fenced texts to show directly before messages of the user, by the messages' ids."""
    facts = {fact.id: fact for fact in snapshot.facts}
    texts: dict[str, list[Fact]] = {}
    for delta in injected.deltas:
        texts.setdefault(delta.message_id, []).extend(facts[name] for name, _ in delta.facts if name in facts)
    return {message_id: render_delta(shown) for message_id, shown in texts.items() if shown}


def render_delta(facts: Iterable[Fact]) -> str:
    """Return facts as one fenced text, named as reference data."""
    return prompts.MEMORY_DELTA.format(memory="\n".join(map(fact_line, facts)))
