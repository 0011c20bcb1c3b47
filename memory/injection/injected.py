"""What a thread's prompt shows of memory: its block and deltas, as ids in the thread's state and as text. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Self

from pydantic import Field

from memory import prompts
from memory.facts.fact import Fact
from memory.facts.snapshot import MemorySnapshot
from memory.forms import plain, read_as
from memory.injection.block import TextCounter, fact_line, memory_data, render_memory_block
from memory.injection.past_turns import past_section

Entry = tuple[str, int]
# Lines of past turns: the key of a journal entry, and which of its messages.
Line = tuple[str, str]

NOT_USED: Final = -1.0


@dataclass(frozen=True, slots=True)
class Delta:
    """Facts, and lines of past turns, that are shown directly before one message of the user."""

    message_id: str
    facts: tuple[Entry, ...]
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """What a thread's prompt shows, as ids and revisions; the texts are rendered from the store.

    Attributes:
        block: Facts (`fact_…`) and profile sections (`user.work`) of the block, each with its revision; a state keeps
            it under the key `basis`.
        deltas: What was appended since, oldest first.
        since: When the block was chosen, seconds since 1970; `NOT_USED` where the user had memory switched off.
        at: When the prompt was last built, seconds since 1970.
        lines_edit: The number of the user's newest edit by hand when the past turns in it were chosen.
    """

    block: Annotated[tuple[Entry, ...], Field(alias="basis")] = ()
    deltas: tuple[Delta, ...] = ()
    since: float = 0.0
    at: float = 0.0
    lines_edit: str = ""

    @classmethod
    def from_state(cls, value: object) -> Self | None:
        """Return what a thread's state says; `None` if it says nothing that can be read."""
        try:
            return read_as(cls, value) if isinstance(value, Mapping) and "basis" in value else None
        except ValueError:
            return None

    def to_state(self) -> dict[str, object]:
        """Return its JSON form: ids, revisions and times, never texts."""
        return plain(self)

    def entries(self) -> tuple[Entry, ...]:
        """Return all that is shown, in the block and in deltas."""
        return (*self.block, *(entry for delta in self.deltas for entry in delta.facts))

    def fact_ids(self) -> tuple[str, ...]:
        """Return the ids of all facts that are shown."""
        return tuple(dict.fromkeys(name for name, _ in self.entries() if not _is_section(name)))

    def lines(self) -> tuple[Line, ...]:
        """Return the lines of past turns that are shown."""
        return tuple(dict.fromkeys(line for delta in self.deltas for line in delta.lines))

    def is_stale(self, snapshot: MemorySnapshot) -> bool:
        """Say whether the prompt shows a fact that was corrected, edited or deleted, or what is gone."""
        current = {(fact.id, fact.revision) for fact in snapshot.facts}
        # What a person deletes is not told again, and the journal keeps its words until an erase.
        if self.lines() and self.lines_edit != snapshot.edit:
            return True
        if any(line not in snapshot.lines for _, line in self.lines()):
            return True
        return any(
            snapshot.profile[name].at(revision) is None
            if _is_section(name) and name in snapshot.profile
            else (name, revision) not in current
            for name, revision in self.entries()
        )


def _is_section(name: str) -> bool:
    return "." in name


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
    parts: dict[str, tuple[list[Fact], list[str]]] = {}
    for delta in injected.deltas:
        shown, lines = parts.setdefault(delta.message_id, ([], []))
        shown.extend(facts[name] for name, _ in delta.facts if name in facts)
        lines.extend(snapshot.lines[line] for _, line in delta.lines if line in snapshot.lines)
    return {message_id: render_delta(*each) for message_id, each in parts.items() if any(each)}


def render_delta(facts: Iterable[Fact], lines: Iterable[str] = ()) -> str:
    """Return facts, strongest first, and past turns, oldest first, as one fenced text, named as reference data."""
    strongest = [fact_line(fact) for fact in sorted(facts, key=lambda fact: -fact.confidence)]
    return prompts.MEMORY_DELTA.format(memory="\n\n".join(filter(None, ["\n".join(strongest), past_section(lines)])))
