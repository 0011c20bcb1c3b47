"""Which past turns a prompt shows beside facts, as dated lines with who said them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from memory.control import read_control
from memory.door import StoreEffects, read_many, side_by_side
from memory.facts.snapshot import MemorySnapshot, read_snapshot
from memory.injection.block import turn_line
from memory.journal.entry import line_id
from memory.journal.journal import entries_in
from memory.namespaces import Owner
from memory.recall import Document
from memory.recall.user_index import Recalled

_TITLE: Final = "Past conversations:"


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
