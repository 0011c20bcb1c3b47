"""An index over one user's facts and past turns, kept up to date item by item, and what ranks them for a question."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Self

Kind = Literal["fact", "turn"]

_WORD = re.compile(r"\w+")
# BM25 as Robertson and Zaragoza recommend it.
_K1: Final = 1.2
_B: Final = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One thing that can be recalled.

    Attributes:
        id: A fact's id, or what names one past message; no two documents of an index share it.
        text: What it says.
        when: When it was said, ISO 8601 (a day or a time), in the user's time zone; empty if unknown.
        who: Who said it, as the question may name them; empty if unknown.
        session: What was said together has the same one (a thread's day); empty stands alone.
        kind: A fact, or one message of a past turn.
    """

    id: str
    text: str
    when: str = ""
    who: str = ""
    session: str = ""
    kind: Kind = "fact"


class Hit(NamedTuple):
    """A document that was found, and how well it fits; only the order of scores means something."""

    document: Document
    score: float


class Index:
    """Words and their documents. `put` and `remove` take the time of the documents given, not of the whole index."""

    def __init__(self) -> None:
        self._documents: dict[str, Document] = {}
        self._words: dict[str, dict[str, int]] = {}
        self._postings: dict[str, dict[str, int]] = {}
        self._length = 0

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Self:
        """Return an index of the documents."""
        index = cls()
        index.put(documents)
        return index

    def __len__(self) -> int:
        return len(self._documents)

    def __contains__(self, document_id: object) -> bool:
        return document_id in self._documents

    def __getitem__(self, document_id: str) -> Document:
        return self._documents[document_id]

    def put(self, documents: Iterable[Document]) -> None:
        """Add documents; one whose id is there takes the other's place."""
        for document in documents:
            self.remove([document.id])
            counts: dict[str, int] = {}
            for word in _WORD.findall(document.text.lower()):
                counts[word] = counts.get(word, 0) + 1
            self._documents[document.id] = document
            self._words[document.id] = counts
            self._length += sum(counts.values())
            for word, count in counts.items():
                self._postings.setdefault(word, {})[document.id] = count

    def remove(self, ids: Iterable[str]) -> None:
        """Drop documents; an id that is not there is passed over."""
        for document_id in ids:
            if self._documents.pop(document_id, None) is None:
                continue
            for word, count in self._words.pop(document_id).items():
                self._length -= count
                postings = self._postings[word]
                del postings[document_id]
                if not postings:
                    del self._postings[word]

    def rank(
        self, query: str, *, before: str = "", now: str = "", similarity: Mapping[str, float] | None = None
    ) -> list[Hit]:
        """Return the documents that have something to do with the question, best first.

        Args:
            query: The user's newest message, or what a tool searches for.
            before: The turn before it, which says what "it" and "there" mean; it counts less.
            now: The user's local time, ISO 8601: from it "yesterday" and "last May" are dates; empty if unknown.
            similarity: How alike an embedder finds the query and the documents (cosine), by id; `None` without one.
        """
        del before, now, similarity
        scores: dict[str, float] = {}
        mean = self._length / max(1, len(self._documents))
        for word in set(_WORD.findall(query.lower())):
            postings = self._postings.get(word, {})
            rarity = math.log(1 + (len(self._documents) - len(postings) + 0.5) / (len(postings) + 0.5))
            for document_id, count in postings.items():
                length = sum(self._words[document_id].values())
                weight = count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * length / mean))
                scores[document_id] = scores.get(document_id, 0.0) + rarity * weight
        best = sorted(scores, key=lambda each: (-scores[each], each))
        return [Hit(self._documents[each], scores[each]) for each in best]
