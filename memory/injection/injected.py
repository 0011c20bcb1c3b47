"""What a thread's prompt shows of memory: its block and deltas, as ids in the thread's state and as text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Self

from pydantic import Field

from memory import prompts
from memory.control import read_rows
from memory.door import side_by_side
from memory.facts.fact import Fact
from memory.facts.rows import MemorySnapshot, read_snapshot
from memory.forms import read_as
from memory.injection.block import TextCounter, fact_line, line_of, render_memory_block
from memory.journal.journal import entries_in
from memory.namespaces import Owner
from memory.recall.documents import turn_documents

Entry = tuple[str, int]
# Lines of past turns: the key of a journal entry, and which of its messages.
Line = tuple[str, str]

NOT_USED: Final = -1.0
_PAST: Final = "Past conversations:"


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
    lines_edit: int = 0

    @classmethod
    def from_state(cls, value: object) -> Self | None:
        """Return what a thread's state says; `None` if it says nothing that can be read."""
        try:
            return read_as(cls, value) if isinstance(value, Mapping) and "basis" in value else None
        except ValueError:
            return None

    def entries(self) -> tuple[Entry, ...]:
        """Return all that is shown, in the block and in deltas."""
        return (*self.block, *(entry for delta in self.deltas for entry in delta.facts))

    def fact_ids(self) -> tuple[str, ...]:
        """Return the ids of all facts that are shown."""
        return tuple(dict.fromkeys(name for name, _ in self.entries() if "." not in name))

    def lines(self) -> tuple[Line, ...]:
        """Return the lines of past turns that are shown."""
        return tuple(dict.fromkeys(line for delta in self.deltas for line in delta.lines))

    def is_stale(self, snapshot: MemorySnapshot) -> bool:
        """Say whether the prompt shows a fact that was corrected, edited or deleted, or what is gone."""
        current, lines = {(fact.id, fact.revision) for fact in snapshot.facts}, self.lines()
        # What a person deletes is not told again, and the journal keeps its words until an erase.
        if lines and (self.lines_edit != snapshot.control.edit or any(line not in snapshot.lines for _, line in lines)):
            return True
        return any(
            snapshot.profile[name].at(revision) is None if name in snapshot.profile else (name, revision) not in current
            for name, revision in self.entries()
        )


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
    return render_memory_block(texts, shown, budget, token_counter)


def render_deltas(injected: Injected, snapshot: MemorySnapshot) -> dict[str, str]:
    """Return the fenced texts to show directly before messages of the user, by the messages' ids."""
    facts = {fact.id: fact for fact in snapshot.facts}
    parts: dict[str, tuple[list[Fact], list[str]]] = {}
    for delta in injected.deltas:
        shown, lines = parts.setdefault(delta.message_id, ([], []))
        shown.extend(facts[name] for name, _ in delta.facts if name in facts)
        lines.extend(snapshot.lines[line] for _, line in delta.lines if line in snapshot.lines)
    return {message_id: render_delta(*each) for message_id, each in parts.items() if any(each)}


def render_delta(facts: Iterable[Fact], lines: Iterable[str]) -> str:
    """Return facts, strongest first, and past turns, oldest first, as one fenced text, named as reference data."""
    told = "\n".join(fact_line(fact) for fact in sorted(facts, key=lambda fact: -fact.confidence))
    dated = sorted(lines, key=lambda line: line[:12])
    past = "\n".join([_PAST, *dated]) if dated else ""
    return prompts.MEMORY_DELTA.format(memory="\n\n".join(filter(None, [told, past])))


async def read_snapshot_with(owner: Owner, lines: Sequence[Line]) -> MemorySnapshot:
    """Read what may be shown of an owner's memory, with the texts of some lines of the journal, in one batch.

    Args:
        owner: Whose memory.
        lines: Journal entries, by key, and which of their messages; those that are gone have no text.
    """
    keys = list(dict.fromkeys(entry for entry, _ in lines))
    snapshot, items = await side_by_side(read_snapshot(owner), read_rows(owner, "journal", keys))
    wanted = {line for _, line in lines}
    texts = {
        document.id: text
        for entry in entries_in(items).values()
        for document in turn_documents(entry)
        if document.id in wanted and (text := line_of(document))
    }
    return replace(snapshot, lines=texts) if snapshot.control.use else MemorySnapshot(snapshot.control)
