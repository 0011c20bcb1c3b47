"""Which documents hold which word, and which words look alike: the inverted index under `Index`, changed in place."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from memory.recall.words import grams

# BM25 as Robertson and Zaragoza recommend it; results hardly change with either.
_K1: Final = 1.2
_B: Final = 0.75
# Of a word's sequences, weighted by rarity, so many must be in another word for it to count as alike.
_LEAST_ALIKE: Final = 0.3


class Postings:
    """Documents are small whole numbers here; a number that was removed may be given again."""

    def __init__(self) -> None:
        # Arrays, as a dict of a dict of numbers takes ten times the memory.
        self._places: dict[str, tuple[array[int], array[int]]] = {}
        self._lengths: list[int] = []
        self._count = 0
        self._total = 0
        self._held = 0
        self._alike: dict[str, list[str]] = {}
        self._norms: list[float] | None = None

    def add(self, number: int, words: Iterable[str]) -> None:
        """Add a document; its number is not in use."""
        counts = Counter(words)
        length = counts.total()
        self._lengths.extend([0] * (number + 1 - len(self._lengths)))
        self._lengths[number] = length
        self._count += 1
        self._total += length
        self._norms = None
        for word, count in counts.items():
            places = self._places.get(word)
            if places is None:
                places = self._places[word] = (array("I"), array("H"))
                for gram in set(grams(word)):
                    self._alike.setdefault(gram, []).append(word)
            places[0].append(number)
            places[1].append(min(count, 65535))
        self._held += len(counts)

    def remove(self, number: int, words: Iterable[str]) -> None:
        """Remove a document that was added with these words."""
        self._count -= 1
        self._total -= self._lengths[number]
        self._lengths[number] = 0
        self._norms = None
        told = set(words)
        self._held -= len(told)
        for word in told:
            numbers, counts = self._places[word]
            at = numbers.index(number)
            del numbers[at], counts[at]
            if not numbers:
                del self._places[word]
                for gram in set(grams(word)):
                    self._alike[gram].remove(word)
                    if not self._alike[gram]:
                        del self._alike[gram]

    def length(self, number: int) -> int:
        """Return how many words a document has."""
        return self._lengths[number]

    def rarity(self, word: str) -> float:
        """Return how much a word tells: BM25's inverse document frequency; 0 for a word that is nowhere."""
        places = self._places.get(word)
        if places is None:
            return 0.0
        found = len(places[0])
        return math.log(1 + (self._count - found + 0.5) / (found + 0.5))

    def with_alike(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return words with their weights, and known words that look alike, which weigh as much as they share.

        "adoption" finds "adopting", and a typing error the right word; no dictionary is needed for that.
        """
        known = len(self._places)
        found: dict[str, float] = {}
        for word, weight in weights.items():
            shared: dict[str, float] = {}
            whole = 0.0
            for gram in set(grams(word)):
                holders = self._alike.get(gram, ())
                rarity = math.log(1 + known / (len(holders) or 1))
                whole += rarity
                for other in holders:
                    shared[other] = shared.get(other, 0.0) + rarity
            for other, share in shared.items():
                if share >= _LEAST_ALIKE * whole:
                    found[other] = max(found.get(other, 0.0), weight * share / whole)
        return {**found, **{word: max(weight, found.get(word, 0.0)) for word, weight in weights.items()}}

    def scores(self, weights: Mapping[str, float]) -> list[float]:
        """Return how well each document fits the words, by its number."""
        if self._norms is None:
            mean = self._total / max(1, self._count) or 1.0
            self._norms = [_K1 * (1 - _B + _B * length / mean) for length in self._lengths]
        norms = self._norms
        scores = [0.0] * len(norms)
        # In one order, as sums of floats depend on it.
        for word in sorted(weights):
            places = self._places.get(word)
            if places is None:
                continue
            weight = weights[word] * self.rarity(word) * (_K1 + 1)
            for number, count in zip(*places, strict=True):
                scores[number] += weight * count / (count + norms[number])
        return scores

    def session_scores(
        self, weights: Mapping[str, float], session_of: Sequence[int], lengths: Sequence[int]
    ) -> list[float]:
        """Return how well each session as a whole fits the words.

        Args:
            weights: The words.
            session_of: Of each document, by its number; 0 where it has none.
            lengths: How many words each session has.
        """
        count = len(lengths) - 1
        mean = sum(lengths) / max(1, count) or 1.0
        norms = [_K1 * (1 - _B + _B * length / mean) for length in lengths]
        scores = [0.0] * len(lengths)
        for word in sorted(weights.keys() & self._places.keys()):
            said: dict[int, int] = {}
            for number, times in zip(*self._places[word], strict=True):
                if session := session_of[number]:
                    said[session] = said.get(session, 0) + times
            # Nothing for a word that every session has: where there is only one, it tells nothing.
            weight = weights[word] * math.log((count + 1) / (len(said) + 1)) * (_K1 + 1)
            for session, times in said.items():
                scores[session] += weight * times / (times + norms[session])
        return scores

    def most_shared(self, weights: Mapping[str, float]) -> float:
        """Return the weighted rarity of the words that one document has of these, of the one that has most."""
        shared = [0.0] * len(self._lengths)
        for word in sorted(weights):
            if (places := self._places.get(word)) is not None:
                weight = weights[word] * self.rarity(word)
                for number in places[0]:
                    shared[number] += weight
        return max(shared, default=0.0)

    def size(self) -> int:
        """Return about how many bytes this takes."""
        # Measured with tracemalloc: 10 bytes for each place with what arrays keep free, 600 for each word with its
        # arrays, its keys and its places among the sequences.
        return 10 * self._held + 600 * len(self._places) + 64 * len(self._lengths)
