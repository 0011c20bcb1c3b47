"""How often a fact was said again, when, and by whom: an item beside the fact, so that the fact stays as it is."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Self

from memory.door import StoreEffects, scan
from memory.facts.fact import DAY_SECONDS, Fact, timestamp
from memory.forms import plain, read_as
from memory.namespaces import Owner
from memory.text import digest

# Enough to know evidence again that an update brings twice, and to say when; the rest is only counted.
KEPT_CONFIRMATIONS: Final = 32


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A fact was said again: by what (a message id or any unique token), when, and by which messages."""

    evidence: str
    time: str
    thread_id: str = ""
    message_ids: tuple[str, ...] = ()


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


def read_confirmations(owner: Owner) -> StoreEffects[dict[str, Confirmations]]:
    """Read what said each fact again, by its id; those that nothing did are absent."""
    items = yield from scan(owner.namespace("confirmations"))
    return {item.key: Confirmations.from_json(item.value) for item in items}


def is_unconfirmed(fact: Fact, said: Confirmations | None, now: float, days: float) -> bool:
    """Say whether for so many days nobody wrote, edited or said a fact; a pinned one needs no confirmation.

    Args:
        fact: The fact.
        said: What said it again, if anything did.
        now: Seconds since 1970.
        days: How many.
    """
    told = max(fact.created_at, fact.updated_at, *(said.times if said else ()))
    return not fact.pinned and told <= timestamp(now - days * DAY_SECONDS)
