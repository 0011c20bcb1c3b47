"""What applying the newest extractions did: one that is applied again does nothing more."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from langgraph.store.base import Op

from memory.control import belongs
from memory.effects import StoreEffects, put, read
from memory.facts.changes import Outcome
from memory.facts.rows import OUTCOMES
from memory.namespaces import Owner

KEPT_OUTCOMES: Final = 32


@dataclass(frozen=True, slots=True)
class RecentOutcomes:
    """What applying the newest 32 extractions did, by the extractions' digests, oldest first.

    At the cap, the rules alone cannot make applying twice the same as once: what the first time found no room would
    find it the second time, in the place of what the first time brought.
    """

    by_digest: Mapping[str, Outcome]

    def with_one(self, digest: str, outcome: Outcome) -> Self:
        """Return these with one more."""
        others = [(each, known) for each, known in self.by_digest.items() if each != digest]
        return replace(self, by_digest=dict([*others, (digest, outcome)][-KEPT_OUTCOMES:]))

    def write(self, owner: Owner, epoch: str) -> Op:
        """Return the write of these, in ids and reasons."""
        done = [[digest, outcome.to_json()] for digest, outcome in self.by_digest.items()]
        return put(owner.namespace("history"), OUTCOMES, {"epoch": epoch, "done": done})

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return those of a stored item; what a hand garbled in it is left out, and may be applied twice."""
        found = {}
        done = value.get("done")
        for each in done if isinstance(done, list) else ():
            with suppress(KeyError, TypeError, ValueError):
                digest, outcome = each
                found[str(digest)] = Outcome.from_json(outcome)
        return cls(found)


def read_outcomes(owner: Owner, epoch: str) -> StoreEffects[RecentOutcomes]:
    """Read what applying the newest extractions did."""
    item = yield from read(owner.namespace("history"), OUTCOMES)
    return RecentOutcomes.from_json(item.value if item and belongs(item.value, epoch) else {})
