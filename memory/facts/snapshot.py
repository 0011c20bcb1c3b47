"""What is remembered about a user at one moment, as it was read from the store; stored texts are screened again."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from memory.door import StoreEffects, scan, side_by_side
from memory.facts.fact import Fact, is_over, may_be_used
from memory.facts.profile import StoredSection, sections_of, texts_of
from memory.facts.rows import read_fact_set, within_bound
from memory.namespaces import Owner
from memory.screening.door import may_be_shown

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """Active facts, strongest first, and the profile, under the epoch they were read with.

    `lines` are past turns as a prompt shows them, by the ids that the journal gives its lines. `edit` is the number of
    the user's newest edit by hand: after one, another line may have to be hidden. Where `is_used` is false, the user
    has switched off that models are shown any of it, and it is empty.
    """

    epoch: str = ""
    facts: tuple[Fact, ...] = ()
    profile: Mapping[str, StoredSection] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    edit: str = ""
    is_used: bool = True

    def unused(self) -> Self:
        """Return the snapshot of a user whose memory no model is shown: epochs and edits, and nothing else."""
        return replace(self, facts=(), profile={}, lines={}, is_used=False)

    def at(self, now: float) -> Self:
        """Return what of it holds at a time (seconds since 1970): what is over is history, and no prompt shows it."""
        return replace(self, facts=tuple(fact for fact in self.facts if not is_over(fact, now)))


def read_snapshot(owner: Owner) -> StoreEffects[MemorySnapshot]:
    """Read everything that may be injected or shown to the extractor, as it is at one moment.

    Texts that must not stand in a prompt are left out: somebody edited the store by hand.
    """
    facts, items = yield from side_by_side(read_fact_set(owner), scan(owner.namespace("profile")))
    active, sections = facts.active(), sections_of(items, facts.epoch)
    shown = tuple(filter(may_be_used, within_bound(active)))
    profile = {
        name: replace(section, past={at: text for at, text in section.past.items() if may_be_shown(text)})
        for name, section in sections.items()
        if section.text.strip() and may_be_shown(section.text)
    }
    if kept_out := len(active) - len(shown) + len(texts_of(sections)) - len(profile):
        logger.warning("kept %d stored texts out of the prompt: secrets, orders, or more than is shown", kept_out)
    return MemorySnapshot(facts.epoch, shown, profile)
