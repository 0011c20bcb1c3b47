"""What is kept beside facts: that one was said again, and that a deleted one must not come back. No text of either.

Confirmations are an item a fact, so that the fact stays as it is. Deletion records stand among the history, each under
a digest of what a fact said or of a message that it came from: the fact's id, and when and with which number of the
edits by hand it was deleted, or edited to say something else.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from langgraph.store.base import Item

from memory.text import digest, normalize

# What keys of deletion records, and of a person's answers about past messages (`memory.recall.past`), begin with.
DELETION: Final = "gone."
ANSWER: Final = "asked."
# Enough to know again what an update brings twice, and to say when; the rest is only counted.
KEPT_CONFIRMATIONS: Final = 32


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A fact was said again: when, and by which messages of a thread; of what a program or a person wrote, by none."""

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

    def confirmed(self, again: Confirmation) -> Self:
        """Return these with one more; the same messages of a thread count once."""
        if again.thread_id and again.message_ids in {
            each.message_ids for each in self.said if each.thread_id == again.thread_id
        }:
            return self
        return replace(self, count=self.count + 1, said=(*self.said, again)[-KEPT_CONFIRMATIONS:])

    def without_threads(self, is_gone: Callable[[str], bool]) -> Self:
        """Return these without those from erased threads; those that are only counted have no thread, and stay."""
        kept = tuple(each for each in self.said if not is_gone(each.thread_id))
        if kept == self.said:
            return self
        return replace(self, count=max(len(kept), self.count - len(self.said) + len(kept)), said=kept)


def is_revision(item: Item) -> bool:
    """Say whether an item of history is a fact's revision, not a record of what was deleted or answered."""
    return not item.key.startswith((DELETION, ANSWER))


def text_key(content: str) -> str:
    """Return the key of the record of a text."""
    return DELETION + digest("fact", normalize(content))


def message_keys(messages: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the ids of messages, which are given by thread, by the keys of their records."""
    return {
        DELETION + digest("message", thread_id, one): one
        for thread_id in sorted(messages)
        for one in messages[thread_id]
    }
