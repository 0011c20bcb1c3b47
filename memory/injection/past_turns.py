"""Which past turns a prompt shows beside facts, as dated lines with who said them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from memory.control import read_control
from memory.effects import StoreEffects, read_many, side_by_side
from memory.facts.snapshot import MemorySnapshot, read_snapshot
from memory.injection.block import TextCounter, turn_line
from memory.journal.entry import line_id
from memory.journal.journal import entries_in
from memory.namespaces import Owner
from memory.recall import Document
from memory.recall.search import relevant
from memory.recall.user_index import Recalled

# What fits a message much less than the best does is not worth a change of the prompt.
LEAST_SHARE: Final = 0.1
# What the user asked for once and for all, in messages that no fact was made of, takes so much of the budget at most.
_STANDING_SHARE: Final = 4
_TITLE: Final = "Past conversations:"


def choose_lines(
    recalled: Recalled,
    *,
    budget: int,
    token_counter: TextCounter,
    left_out: Collection[str] = frozenset(),
    shown: Collection[str] = frozenset(),
) -> list[str]:
    """Return the ids of the past turns to be shown with a message, what was asked for once and for all first.

    Args:
        recalled: What was found for it.
        budget: Tokens of all lines together, with those that are shown already: what they say needs no other line.
        token_counter: Counts tokens of a text.
        left_out: What the window or a fact tells.
        shown: What the prompt shows already.
    """
    chosen: dict[str, None] = {}

    def take(documents: Iterable[Document], most: int) -> int:
        for document in documents:
            if document.id in chosen or document.id in left_out or document.id not in recalled.entries:
                continue
            text = line_of(document)
            tokens = token_counter(text + "\n")
            if text and tokens <= most:
                most -= tokens
                chosen[document.id] = None
        return most

    left = budget - token_counter(_TITLE + "\n")
    standing = max(0, left // _STANDING_SHARE)
    left -= standing - take(recalled.standing, standing)
    take((hit.document for hit in relevant(recalled.hits, LEAST_SHARE) if hit.document.kind == "turn"), left)
    return [line for line in chosen if line not in shown]


def texts_of(recalled: Recalled, lines: Iterable[str]) -> dict[str, str]:
    """Return the texts of those lines that were found, by their ids."""
    found = {document.id: document for document in (*(hit.document for hit in recalled.hits), *recalled.standing)}
    return {line: text for line in lines if line in found and (text := line_of(found[line]))}


def line_of(document: Document) -> str:
    """Return a past turn as a prompt shows it; empty if it must not be shown."""
    return turn_line(document.when[:10], document.who or ("assistant" if document.is_reply else "user"), document.text)


def read_snapshot_with(owner: Owner, lines: Sequence[tuple[str, str]]) -> StoreEffects[MemorySnapshot]:
    """Read what may be shown of an owner's memory, with the texts of some lines of the journal, in one batch.

    Args:
        owner: Whose memory.
        lines: Journal entries, by key, and which of their messages; those that are gone have no text.
    """
    keys = list(dict.fromkeys(entry for entry, _ in lines))
    snapshot, items, control = yield from side_by_side(
        read_snapshot(owner), read_many(owner.namespace("journal"), keys), read_control(owner)
    )
    wanted = {line for _, line in lines}
    texts = {
        line: text
        for entry in entries_in(items, snapshot.epoch)
        for one in entry.messages
        if (line := line_id(entry.thread_id, one.id)) in wanted
        and (text := turn_line(entry.day, one.speaker, one.text))
    }
    shown = replace(snapshot, lines=texts, edit=control.edit)
    return shown if control.use else shown.unused()


def past_section(lines: Iterable[str]) -> str:
    """Return past turns as a section, oldest first; empty without any."""
    dated = sorted(lines, key=lambda line: line[:12])
    return "\n".join([_TITLE, *dated]) if dated else ""


def lines_by_entry(lines: Iterable[str], entries: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return lines with the journal entries that hold them, as a state keeps them."""
    return tuple((entries[line], line) for line in lines)
