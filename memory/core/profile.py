"""The profile: six short texts about the user, one store item a section."""

from collections.abc import Mapping, Sequence
from typing import Final

from memory.control import belongs
from memory.core.changes import Section
from memory.core.relatedness import words
from memory.namespaces import Owner
from memory.storage import Steps, delete, put, scan
from memory.text import one_line

USER_SECTIONS: Final = ("work", "personal", "topOfMind")
HISTORY_SECTIONS: Final = ("recent", "earlier", "background")
SECTIONS: Final = (
    *(f"user.{name}" for name in USER_SECTIONS),
    *(f"history.{name}" for name in HISTORY_SECTIONS),
)
MAX_SECTION_CHARS: Final = 600
# A section repeats a fact when it holds this share of the fact's words.
_REPEATS: Final = 0.5

Profile = Mapping[str, str]


def read_profile(owner: Owner, epoch: str) -> Steps[dict[str, str]]:
    """Read the sections that hold something, by name (`user.work`)."""
    items = yield from scan(owner.namespace("profile"))
    found = {item.key: item.value.get("text") for item in items if belongs(item.value, epoch)}
    return {name: text for name in SECTIONS if isinstance(text := found.get(name), str) and text.strip()}


def write_profile(owner: Owner, sections: Sequence[Section], *, epoch: str, now: str) -> Steps[None]:
    """Write the sections that changed; an empty text deletes its section, an unknown name is ignored."""
    namespace = owner.namespace("profile")
    known = [section for section in sections if section.name in SECTIONS]
    if known:
        yield [
            put(namespace, section.name, {"section": section.name, "text": text, "updatedAt": now, "epoch": epoch})
            if (text := bounded(section.text))
            else delete(namespace, section.name)
            for section in known
        ]


def drop_repeats(owner: Owner, profile: Profile, content: str) -> Steps[None]:
    """Delete the sections that say what a fact says that is gone; the next update writes them anew."""
    namespace = owner.namespace("profile")
    repeating = [name for name, text in profile.items() if repeats(text, content)]
    if repeating:
        yield [delete(namespace, name) for name in repeating]


def repeats(text: str, content: str) -> bool:
    """Say whether a text holds so many of a fact's words that it may say the same."""
    wanted = words(content)
    return bool(wanted) and len(wanted & words(text)) >= _REPEATS * len(wanted)


def bounded(text: str) -> str:
    """Return a section's text on one line, cut at a word when it is too long."""
    line = one_line(text)
    return line if len(line) <= MAX_SECTION_CHARS else line[:MAX_SECTION_CHARS].rsplit(" ", 1)[0]


def sections_of(profile: Profile) -> tuple[dict[str, str], dict[str, str]]:
    """Return the profile as the two mappings that injection takes: `user` and `history`."""
    user = {name: profile[key] for name in USER_SECTIONS if (key := f"user.{name}") in profile}
    history = {name: profile[key] for name in HISTORY_SECTIONS if (key := f"history.{name}") in profile}
    return user, history
