"""How an owner's facts are read from a store, and what changes of them is written back."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from typing import Final, Self

from langgraph.store.base import Item

from memory.config import MemoryConfig
from memory.control import Control, read_control, read_rows
from memory.door import ask, delete, scan, side_by_side
from memory.facts.chain import by_time
from memory.facts.fact import (
    Fact,
    fact_ids,
    from_item,
    is_fact_id,
    is_over,
    may_be_used,
    strongest_first,
)
from memory.facts.fact_set import FactSet
from memory.facts.profile import StoredSection, drop_sections, read_profile, texts_of
from memory.facts.records import ANSWER, DELETION, Confirmations, is_revision, message_keys
from memory.facts.words import words
from memory.forms import of_items
from memory.namespaces import Owner
from memory.screening.door import may_be_shown

logger = logging.getLogger(__name__)

# So many characters of active facts are screened, far more than any prompt shows: all could hold the loop for seconds.
_JUDGED_CHARS: Final = 200_000
# A section of the profile repeats a fact when it holds this share of the fact's words.
_REPEATS: Final = 0.5
_REVISION: Final = "revision"
_KEPT: Final = {_REVISION: 1000, "evicted": 1000, DELETION: 2000, ANSWER: 2000}


async def read_fact_set(
    owner: Owner,
    looked_up: Sequence[str] | None = None,
    *,
    is_light: bool = False,
    now: str = "",
    config: MemoryConfig | None = None,
) -> FactSet:
    """Read an owner's facts; rows of other epochs, and those that are no facts, are skipped.

    Args:
        owner: Whose facts.
        looked_up: Which keys of history are read, for the facts that are about to be added; `None` reads all of it,
            with the records of what was deleted.
        is_light: Whether neither history is read, nor how often each fact was said again.
        now: When that is, ISO 8601; without it, nothing has waited too long.
        config: The limit, which categories are protected, and how long facts wait for a yes.
    """
    control, rows, past, said = await side_by_side(
        read_control(owner),
        read_rows(owner, "facts"),
        read_rows(owner, "history", () if is_light else looked_up),
        read_rows(owner, "confirmations", () if is_light else None),
    )
    facts, homes = _rows_in(owner, rows)
    return FactSet(
        owner,
        facts,
        homes=homes,
        control=control,
        config=config or MemoryConfig(),
        now=now,
        past=sorted((fact for _, fact in _read(filter(is_revision, past))), key=by_time),
        notes={item.key: item.value for item in past if not is_revision(item)},
        said=of_items(Confirmations, said, ()),
    )


async def read_confirmations(owner: Owner) -> dict[str, Confirmations]:
    """Read how often each of an owner's facts was said again, by their ids: for who has the facts already."""
    return of_items(Confirmations, await read_rows(owner, "confirmations"), ())


def _rows_in(owner: Owner, items: Sequence[Item]) -> tuple[dict[str, Fact], dict[str, str]]:
    """Return facts by their ids, and the keys of those that a hand put elsewhere than under their ids."""
    rows: dict[str, Fact] = {}
    homes: dict[str, str] = {}
    ours = {item.key for item in items if is_fact_id(item.key)}
    # Rows of our own writes first: where a hand copied one, the copy gets another id.
    for item, fact in _read(sorted(items, key=lambda item: item.key not in ours)):
        own = item.key if item.key in ours else fact.id
        ids = chain([own] if own else [], fact_ids(owner.due_key, fact.content))
        fact_id = next(each for each in ids if each not in rows)
        rows[fact_id] = fact if fact.id == fact_id else replace(fact, id=fact_id)
        if fact_id != item.key:
            homes[fact_id] = item.key
    # A hand's words that no prompt may show are quarantined, so that a person sees them and decides.
    for fact in within_bound([fact for fact in rows.values() if fact.status == "active"]):
        if not may_be_used(fact):
            rows[fact.id] = replace(fact, status="quarantined")
    return rows, homes


def within_bound(active: Sequence[Fact]) -> list[Fact]:
    """Return the facts that are judged and shown: the strongest, as many as keep the bound of characters."""
    strongest = strongest_first(active)
    read = accumulate(len(fact.content) for fact in strongest)
    return [fact for fact, chars in zip(strongest, read, strict=True) if chars <= _JUDGED_CHARS]


def _read(items: Iterable[Item]) -> Iterator[tuple[Item, Fact]]:
    unreadable = []
    for item in items:
        try:
            yield item, from_item(item.value, created_at=item.created_at.isoformat())
        except ValueError as error:
            unreadable.append(f"{item.key:.64} (bad {str(error).partition(' ')[0]})")
    if unreadable:
        logger.warning("skipped %d unreadable facts: %s", len(unreadable), ", ".join(unreadable[:5]))


async def save(facts: FactSet, kept: Collection[str] = ()) -> None:
    """Write the changes of facts, and delete sections of the profile that tell of facts which are no longer in use.

    The next update writes these sections anew.

    Args:
        facts: The facts.
        kept: Sections to leave alone.
    """
    if writes := facts.writes():
        await ask(*writes)
    if facts.archived:
        await _trim_history(facts.owner)
    gone = [words(content) for content in facts.over()]

    def is_about(name: str, text: str) -> bool:
        said = words(text)
        # So many of a fact's words may say the same.
        return name not in kept and any(each and len(each & said) >= _REPEATS * len(each) for each in gone)

    if gone:
        await drop_sections(facts.owner, is_about)


async def _trim_history(owner: Owner) -> None:
    """Delete the oldest revisions, deletion records and answers above their bounds; what lost its answer waits."""
    kept: Counter[str] = Counter()
    surplus = []
    # By the store's time of the last write, which items of every kind have; the newest first.
    items = await scan(owner.namespace("history"))
    for item in sorted(items, key=lambda item: (item.updated_at.timestamp(), item.key), reverse=True):
        kinds = (each for each in _KEPT if item.key.startswith(each) or item.value.get("status") == each)
        kind = next(kinds, _REVISION)
        kept[kind] += 1
        if kept[kind] > _KEPT[kind]:
            surplus.append(delete(item.namespace, item.key))
    if surplus:
        await ask(*surplus)


async def forgotten_messages(owner: Owner, thread_id: str, message_ids: Iterable[str]) -> frozenset[str]:
    """Find the messages of a thread that a deleted fact came from."""
    keys = message_keys({thread_id: message_ids})
    return frozenset(keys[item.key] for item in await read_rows(owner, "history", keys))


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """What is remembered about a user at one moment: active facts, strongest first, and the profile.

    `lines` are past turns as a prompt shows them, by the ids that the journal gives its lines. `control` is the user's
    then: after an edit by hand, another line may have to be hidden. Where models are shown nothing, all else is empty.
    """

    control: Control = Control()  # noqa: RUF009 - a frozen value
    facts: tuple[Fact, ...] = ()
    profile: Mapping[str, StoredSection] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)

    def at(self, now: float) -> Self:
        """Return what of it holds at a time (seconds since 1970): what is over is history, and no prompt shows it."""
        return replace(self, facts=tuple(fact for fact in self.facts if not is_over(fact, now)))


async def read_snapshot(owner: Owner) -> MemorySnapshot:
    """Read everything that may be injected or shown to the extractor, as it is at one moment.

    Texts that must not stand in a prompt are left out, as somebody edited the store by hand: secrets and orders, unless
    a person released them from quarantine.
    """
    facts, sections = await side_by_side(read_fact_set(owner, is_light=True), read_profile(owner))
    active = facts.active()
    shown = tuple(filter(may_be_used, within_bound(active)))
    profile = {
        name: replace(section, past={at: text for at, text in section.past.items() if may_be_shown(text)})
        for name, section in sections.items()
        if section.text.strip() and may_be_shown(section.text)
    }
    if kept_out := len(active) - len(shown) + len(texts_of(sections)) - len(profile):
        logger.warning("kept %d stored texts out of the prompt: secrets, orders, or more than is shown", kept_out)
    return MemorySnapshot(facts.control, shown, profile)
