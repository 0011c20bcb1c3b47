"""How often a fact was said again, when, and by whom: an item beside the fact, so that the fact stays as it is."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Self

from langgraph.store.base import Op

from memory.control import belongs
from memory.effects import StoreEffects, put, read, read_many, scan
from memory.facts.fact import Fact, moment
from memory.facts.rules import Confirmation
from memory.forms import plain, read_as
from memory.namespaces import Owner
from memory.text import digest

# Enough to know evidence again that an update brings twice, and to say when; the rest is only counted.
KEPT_CONFIRMATIONS: Final = 32


@dataclass(frozen=True, slots=True)
class Confirmations:
    """How often a fact was said again, and the newest 32 times of it, oldest first."""

    count: int = 0
    said: tuple[Confirmation, ...] = ()

    @property
    def times(self) -> tuple[str, ...]:
        """When it was said again, ISO 8601."""
        return tuple(each.time for each in self.said)

    def confirmed(self, confirmation: Confirmation) -> Self:
        """Return these with one more; the same evidence counts once."""
        newest = replace(confirmation, evidence=digest("evidence", confirmation.evidence)[:16])
        if newest.evidence in {each.evidence for each in self.said}:
            return self
        return replace(self, count=self.count + 1, said=(*self.said, newest)[-KEPT_CONFIRMATIONS:])

    def without_threads(self, is_gone: Callable[[str], bool]) -> Self:
        """Return these without what was said in threads that go. Of those that are only counted nobody knows it."""
        kept = tuple(each for each in self.said if not is_gone(each.thread_id))
        return replace(self, count=max(len(kept), self.count - len(self.said) + len(kept)), said=kept)

    def to_json(self, fact_id: str, epoch: str) -> dict[str, object]:
        """Return the JSON form that the store keeps of a fact's confirmations."""
        return {**plain(self), "id": fact_id, "epoch": epoch}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """Return the confirmations of a stored item; none where a hand garbled it."""
        with suppress(ValueError):
            return read_as(cls, value, ())
        return cls()


def read_counts(owner: Owner) -> StoreEffects[dict[str, int]]:
    """Read how often each fact was said again, by its id; those that never were are absent."""
    items = yield from scan(owner.namespace("confirmations"))
    return {item.key: Confirmations.from_json(item.value).count for item in items}


def read_said_last(owner: Owner) -> StoreEffects[dict[str, str]]:
    """Read when each fact was said again last (ISO 8601), by its id; those that never were are absent."""
    items = yield from scan(owner.namespace("confirmations"))
    said = {item.key: Confirmations.from_json(item.value).times for item in items}
    return {fact_id: max(times) for fact_id, times in said.items() if times}


def is_unconfirmed(fact: Fact, said: str, now: float, days: float) -> bool:
    """Say whether for so many days nobody wrote, edited or said a fact; a pinned one needs no confirmation.

    Args:
        fact: The fact.
        said: When it was said again last, ISO 8601; empty if never.
        now: Seconds since 1970.
        days: How many.
    """
    times = [at.timestamp() for text in (fact.created_at, fact.updated_at, said) if (at := moment(text))]
    return not fact.pinned and bool(times) and now - max(times) >= days * 86_400


def read_confirmations(owner: Owner, fact_id: str) -> StoreEffects[Confirmations]:
    """Read how often and when a fact was said again."""
    item = yield from read(owner.namespace("confirmations"), fact_id)
    return Confirmations.from_json(item.value) if item else Confirmations()


def confirmation_puts(
    owner: Owner, epoch: str, confirmations: Sequence[Confirmation], present: frozenset[str]
) -> StoreEffects[list[Op]]:
    """Return the writes that note confirmations of the facts that are present (ids), beside those noted before."""
    namespace = owner.namespace("confirmations")
    ids = sorted({each.fact_id for each in confirmations} & present)
    items = yield from read_many(namespace, ids)
    puts: list[Op] = []
    for fact_id, item in zip(ids, items, strict=True):
        noted = Confirmations.from_json(item.value) if item and belongs(item.value, epoch) else Confirmations()
        for confirmation in confirmations:
            if confirmation.fact_id == fact_id:
                noted = noted.confirmed(confirmation)
        puts.append(put(namespace, fact_id, noted.to_json(fact_id, epoch)))
    return puts
