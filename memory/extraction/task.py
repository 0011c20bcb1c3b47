"""What one extraction is made of: what the model reads, and what its answer is judged by. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final, Self

from memory.config import MemoryConfig
from memory.extraction.dialogue import in_pieces
from memory.facts.fact import Fact, strongest_first
from memory.facts.profile import Profile
from memory.message import StoredMessage
from memory.recall.search import search_facts

# Each is a line of the prompt: more would take the room of the messages in a small model's window.
MAX_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Task:
    """One extraction.

    Attributes:
        messages: What was said, oldest first, in pieces that the model can read.
        existing: The active facts.
        shown: Those that the model is shown, in the order of their numbers.
        profile: The profile's sections by name.
        config: Threshold, longest fact, form of the answer.
        zone: Where the user is, if it is known.
    """

    messages: Sequence[StoredMessage]
    existing: Sequence[Fact]
    shown: Sequence[Fact]
    profile: Profile
    config: MemoryConfig
    zone: tzinfo | None

    @classmethod
    def of(
        cls,
        messages: Sequence[StoredMessage],
        existing: Sequence[Fact] = (),
        profile: Profile | None = None,
        config: MemoryConfig | None = None,
        zone: tzinfo | None = None,
    ) -> Self:
        """Return the task of reading these messages."""
        active = [fact for fact in existing if fact.status == "active"]
        # Of many facts, those that have to do with what was said.
        said = " ".join(message.text for message in messages)
        shown = strongest_first(active) if len(active) <= MAX_SHOWN else search_facts(active, said)[:MAX_SHOWN]
        return cls(in_pieces(messages), active, shown, profile or {}, config or MemoryConfig(), zone)
