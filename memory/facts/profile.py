"""The profile: six short texts about the user, one store item a section."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from memory.control import count_edit, read_rows, write_rows
from memory.door import transaction
from memory.facts.changes import Section, was_said_before
from memory.facts.fact import Time
from memory.facts.words import words
from memory.forms import of_items, plain
from memory.namespaces import Owner
from memory.text import normalize, one_line, sentences

logger = logging.getLogger(__name__)

SECTIONS: Final = (
    "user.work",
    "user.personal",
    "user.topOfMind",
    "history.recent",
    "history.earlier",
    "history.background",
)
MAX_SECTION_CHARS: Final = 600

# So many older revisions are stored: a thread's prompt keeps the one that it began with while it is cached.
KEPT_REVISIONS: Final = 6

Profile = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredSection:
    """One section: its text, a revision that counts its changes, and the older texts by their revision.

    `edited_at` (ISO 8601), `edit` (its number, see `memory.control`) and `by_hand` (the text) are those of the newest
    change by hand, if any. A section that a person emptied has only these.
    """

    text: str
    revision: int = 1
    past: Mapping[int, str] = field(default_factory=dict)
    edited_at: Time = ""
    edit: int = 0
    by_hand: str = ""

    def at(self, revision: int) -> str | None:
        """Return the text of a revision; `None` if it is no longer kept."""
        return self.text if revision == self.revision else self.past.get(revision)

    def changed(self, text: str) -> "StoredSection":
        """Return the section with a new text, on one line and within its bound, and the old one among the past."""
        kept = sorted({**self.past, **({self.revision: self.text} if self.revision else {})}.items())
        return replace(self, text=fitted_section(text), revision=self.revision + 1, past=dict(kept[-KEPT_REVISIONS:]))

    def row(self, name: str, now: str) -> dict[str, object]:
        """Return what the store keeps of the section."""
        return {**plain(self), "section": name, "updatedAt": now}


_NOTHING: Final = StoredSection("", 0)


async def read_profile(owner: Owner) -> dict[str, StoredSection]:
    """Read the sections by name (`user.work`), in their order, also emptied ones; a garbled row is left out."""
    found = of_items(StoredSection, await read_rows(owner, "profile"), ("text",))
    return {name: found[name] for name in SECTIONS if name in found}


def texts_of(profile: Mapping[str, StoredSection]) -> dict[str, str]:
    """Return the newest text of each section that says something."""
    return {name: section.text for name, section in profile.items() if section.text.strip()}


async def write_profile(owner: Owner, sections: Sequence[Section], now: str) -> None:
    """Write the sections that changed; an empty text deletes its section, an unknown name is ignored.

    What was said before a person wrote a section does not change it.

    Args:
        owner: Whose profile.
        sections: What the sections are to say.
        now: ISO 8601.
    """
    stored = await read_profile(owner)
    for section in sections:
        old = stored.get(section.name, _NOTHING)
        new = old.changed(section.text)
        if section.name not in SECTIONS or new.text == old.text:
            continue
        if old.edited_at and section.said_at and was_said_before(section, old.edited_at, old.edit):
            logger.info("left %s as a person wrote it", section.name)
        else:
            await write_rows(owner, "profile", {section.name: new.row(section.name, now) if new.text else None})


def approved_sections(
    sections: Sequence[Section], stored: Mapping[str, StoredSection], in_use: Sequence[str]
) -> tuple[Section, ...]:
    """Return the sections without sentences that neither the stored profile nor an active fact tells. Pure.

    Args:
        sections: As the model wrote them.
        stored: The profile as it is.
        in_use: What the active facts say.
    """
    known = [words(content) for content in in_use]
    kept = []
    for section in sections:
        before = normalize(stored.get(section.name, _NOTHING).text)
        told = [
            sentence
            for sentence in sentences(section.text)
            if normalize(sentence) in before or any(words(sentence) <= fact for fact in known)
        ]
        if told or not section.text:  # an empty text would delete the section
            kept.append(replace(section, text=" ".join(told)))
    return tuple(kept)


@transaction
async def edit_section(owner: Owner, name: str, text: str, now: str) -> None:
    """Write a section as a person wants it; an empty text empties it, with its past."""
    edit = await count_edit(owner)
    stored = await read_profile(owner)
    new = stored.get(name, _NOTHING).changed(text)
    new = replace(new, past=new.past if new.text else {}, edited_at=now, edit=edit, by_hand=new.text)
    await write_rows(owner, "profile", {name: new.row(name, now)})


async def drop_sections(owner: Owner, is_gone: Callable[[str, str], bool]) -> None:
    """Delete the sections of which any text, new or old, is gone by `is_gone(name, text)`."""
    sections = await read_profile(owner)
    gone = [
        name
        for name, section in sections.items()
        if section.text and any(is_gone(name, text) for text in (section.text, section.by_hand, *section.past.values()))
    ]
    await write_rows(owner, "profile", dict.fromkeys(gone))


def fitted_section(text: str) -> str:
    """Return a section's text on one line, cut at a word when it is too long."""
    line = one_line(text)
    return line if len(line) <= MAX_SECTION_CHARS else line[:MAX_SECTION_CHARS].rsplit(" ", 1)[0]
