"""An index over one user's facts and past turns, kept up to date item by item, and what ranks them for a question.

Words and their documents are an inverted index that is changed in place. How documents stand to each other, in
conversations and through what facts were taken from, is derived once after a change. Pure.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from operator import add, itemgetter
from typing import Final, NamedTuple

from memory.recall.documents import Document, Hit
from memory.recall.words import date_words, grams, is_phatic, is_standing, names, terms

# BM25 as Robertson and Zaragoza recommend it; results hardly change with either.
_K1: Final = 1.2
_B: Final = 0.75
# What follows was chosen on some conversations, and checked on others (`make bench-quality`); results change little
# around these. Of a word's sequences, weighted by rarity, so many must be in another word for it to count as alike.
_LEAST_SHARED: Final = 0.3
# What the turn before the question said says what "it" and "there" mean.
_BEFORE: Final = 0.3
# Pseudo-relevance feedback: words that the first finds share count as if they had been asked for.
_FEEDBACK_FROM: Final = 5
_FEEDBACK_WORDS: Final = 12
_FEEDBACK: Final = 0.35
_SIMILARITY: Final = 1.3
# A name that half of the texts have is hardly rare, but says whom a question is about.
_NAME: Final = 1.5
# What a conversation is about is said all over it: each text of it counts for the words of the whole.
_CONVERSATION: Final = 0.6
# With less of what the most alike text has, an embedder does not find one; what is half as alike counts less than half.
_LEAST_ALIKE: Final = 0.2
_ALIKE_POWER: Final = 1.7
# Facts of one conversation are about the same: each counts for those of it that are most alike, too.
_ALIKE_FACTS: Final = 3
_ALIKE_TOGETHER: Final = 0.2
# A question and its answer are found together, a fact through what it was taken from, and the other way round.
_NEXT_TO: Final = 0.4
_FROM_TURN: Final = 0.6
_FROM_FACT: Final = 0.2
# What better hits tell of already adds less than what is told of another message.
_TOLD: Final = 0.85
# A reply with more words is an explanation: it has all those of its question, and tells less of the user.
_LONG_REPLY: Final = 35
_REPLY: Final = 0.4
# What a message is about: of few texts every word would be common, so they count as so many. Facts tell what matters to
# the user; what was only said is like much else that people say. Beside an embedder words count less.
_LEAST_TEXTS: Final = 100
_FEW: Final = 1.4
_SAID: Final = 0.5
_SAID_ALONE: Final = 0.75  # in a conversation that no fact was taken from
_STANDS_OUT: Final = 1.45
_BESIDE: Final = 0.45
# The day that "tomorrow" is has four words, and may only be named beside something else.
_OF_A_DAY: Final = 0.6


class _Relations(NamedTuple):
    """How documents stand to each other, by their numbers.

    Attributes:
        norms: What BM25 divides by in each document, for its length, a word that is said once.
        session_of: Of each document the number of its session, facts and turns together; 0 where it stands alone.
        session_norms: The same of each session.
        before: Of each document the turn before it; -1 where there is none.
        after: The turn after it, too.
        facts_together: The facts of each session.
        sources: Facts with the turns that they were taken from.
        explanations: The long replies of the assistant.
        tells: How much each document says what a message is about.
        alike: Of words that were asked for, the known ones that look alike, with how much they share.
    """

    norms: list[float]
    session_of: list[int]
    session_norms: list[float]
    before: list[int]
    after: list[int]
    facts_together: list[list[int]]
    sources: list[tuple[int, list[int]]]
    explanations: list[int]
    tells: list[float]
    alike: dict[str, Mapping[str, float]]


_NONE: Final = Document(id="", text="")
"""Stands where a document was."""


class Index:
    """Words and their documents. `put` and `remove` take the time of the documents given, not of the whole index."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        # A document has a number while it is here; then `_NONE` has it, or another one gets that.
        self._numbers: dict[str, int] = {}
        self._documents: list[Document] = []
        self._words: list[list[str]] = []
        self._free: list[int] = []
        # How often each document has a word, and the known words that have a sequence of characters.
        self._holders: dict[str, dict[int, int]] = {}
        self._words_with: dict[str, list[str]] = {}
        self._standing: dict[str, Document] = {}
        self._relations: _Relations | None = None
        self.put(documents)

    def __len__(self) -> int:
        return len(self._numbers)

    def put(self, documents: Iterable[Document]) -> None:
        """Add documents; one whose id is there takes the other's place."""
        for document in documents:
            self.remove([document.id])
            words = _document_words(document)
            number = self._numbers[document.id] = self._free.pop() if self._free else len(self._documents)
            self._documents[number : number + 1] = [document]
            self._words[number : number + 1] = [words]
            for word, count in Counter(words).items():
                if word not in self._holders:
                    self._holders[word] = {}
                    for gram in set(grams(word)):
                        self._words_with.setdefault(gram, []).append(word)
                self._holders[word][number] = count
            if document.kind == "turn" and not document.is_reply and is_standing(document.text):
                self._standing[document.id] = document
            self._relations = None

    def remove(self, ids: Iterable[str]) -> None:
        """Drop documents; an id that is not there is passed over."""
        for document_id in ids:
            number = self._numbers.pop(document_id, None)
            if number is None:
                continue
            for word in set(self._words[number]):
                del self._holders[word][number]
                if not self._holders[word]:
                    del self._holders[word]
                    for gram in set(grams(word)):
                        self._words_with[gram].remove(word)
                        if not self._words_with[gram]:
                            del self._words_with[gram]
            self._documents[number], self._words[number] = _NONE, []
            self._free.append(number)
            self._standing.pop(document_id, None)
            self._relations = None

    def rank(
        self,
        query: str,
        *,
        before: str = "",
        now: str = "",
        similarity: Mapping[str, float] | None = None,
        limit: int = 400,
        only_asked: bool = False,
    ) -> list[Hit]:
        """Return the documents that have something to do with the question, best first; no clock and no chance in it.

        Args:
            query: The user's newest message, or what a tool searches for.
            before: The turn before it, which says what "it" and "there" mean; it counts less.
            now: The user's local time, ISO 8601: from it "yesterday" is a date; empty if unknown.
            similarity: How alike an embedder finds the query and the documents (cosine), by id; `None` without one.
            limit: So many at most, and what is as good as the last of them.
            only_asked: Leave out what nothing of the query finds, neither a word of it, a date, one that looks alike,
                nor the embedder: only words of other hits do, or what else was said that day.
        """
        asked = dict.fromkeys(terms(before, today=now), _BEFORE) | dict.fromkeys(terms(query, today=now), 1.0)
        alike = self._shares(similarity or {})
        weights = self._with_alike(asked)
        for name in names(query):
            weights[name] = weights.get(name, 1.0) * max(1.0, _NAME / self._rarity(name))
        own = [0.0] * len(self._documents)
        self._add_scores(own, weights)
        left_out = [at for at, score in enumerate(own) if not score and alike[at] < _LEAST_ALIKE] if only_asked else []

        def fused() -> list[float]:
            """Add similarities to the scores by words: the best of them counts `_SIMILARITY` times the best score."""
            if not similarity:
                return own
            weight = _SIMILARITY * max(own, default=0.0) or 1.0
            return [a + weight * b for a, b in zip(own, alike, strict=True)]

        self._add_scores(own, self._feedback(fused(), asked))
        own = [*map(add, own, map(self._session_scores(asked).__getitem__, self._related().session_of))]
        scores = self._shared(fused())
        for number in left_out:
            scores[number] = 0.0
        hits, told = self._best(scores, limit), set[str]()
        for place, (document, score) in enumerate(hits):
            of = document.sources or (document.id,)
            if told.issuperset(of):
                hits[place] = Hit(document, score * _TOLD)
            told.update(of)
        return sorted(hits, key=itemgetter(1), reverse=True)

    def coverage(self, query: str, now: str = "", similarity: Mapping[str, float] | None = None) -> float:
        """Return how clearly a sentence is about what one document says: 0 for not at all, 1 for all that it says.

        It is about a document that has much of what it says, in more than one word: one may be there by chance. Words
        count by their rarity, those that nobody has said most.

        Args:
            query: The sentence.
            now: As for `rank`.
            similarity: As for `rank`: a document that stands out from what is usual is what the sentence is about.
        """
        if is_phatic(query):
            return 0.0
        asked, named = dict.fromkeys(terms(query, today=now), 1.0), names(query)
        if not asked:  # a message without a word of its own ("and when was that?") is about what was said before
            return 1.0
        count, day = max(len(self), _LEAST_TEXTS), asked.keys() - terms(query)
        told = {word: max(self._rarity(word, count), _NAME * (word in named)) for word in asked}
        whole = sum(told.values())
        shared, times = ([0.0] * len(self._documents) for _ in range(2))
        for word, share in sorted(self._with_alike(asked).items()):
            # Squared, as words that look a little alike may have nothing to do with each other: "cellar", "cello".
            square = share**2
            part = square * (told.get(word) or self._rarity(word, count)) / whole
            for number in self._holders.get(word, ()):
                shared[number] += part
                times[number] += square * (_OF_A_DAY if word in day else 1)
        # An explanation has words of every question.
        for number in self._related().explanations:
            shared[number] = 0.0
        # One word is enough where it is all that was asked for, or there are few texts: silence would save little.
        most = max(shared, default=0.0)
        lenient = most * max(_FEW * (1 - len(self) / _LEAST_TEXTS), most > 0.999)  # but for rounding
        covered = [share * count for share, count in zip(shared, times, strict=True)]
        if similarity is not None:
            covered = [_BESIDE * min(1.0, each) for each in covered]
            for name, close in similarity.items():
                at = self._numbers.get(name)
                # With less, and without a word of it, a text is not what the sentence is about.
                if at is not None and (close > _LEAST_ALIKE or covered[at]):
                    covered[at] += _STANDS_OUT * close
        counted = [each * share for each, share in zip(covered, self._related().tells, strict=True)]
        return min(1.0, max([lenient, *counted]))

    def standing(self, hits: Iterable[Hit] = ()) -> list[Document]:
        """Return the turns in which the user asked for something once and for all: those found first, then the newest.

        Args:
            hits: What a question found, best first.
        """
        fitting = {hit.document.id: at for at, hit in enumerate(hits)}
        newest = sorted(self._standing.values(), key=lambda each: (each.when, each.place), reverse=True)
        return sorted(newest, key=lambda each: fitting.get(each.id, len(fitting)))

    def size(self) -> int:
        """Return about how many bytes the index takes, with the texts of its documents."""
        # Measured with tracemalloc: a word with its places among the sequences, a document, and each word in one, with
        # what its text takes.
        return 600 * len(self._holders) + 400 * len(self._documents) + 80 * sum(map(len, self._words))

    def _rarity(self, word: str, count: int = 0) -> float:
        """Return how much a word tells, of so many documents: BM25's inverse frequency; most if nobody has said it."""
        found = len(self._holders.get(word, ())) or 0.5
        return math.log(1 + ((count or len(self) or 1) - found + 0.5) / (found + 0.5))

    def _with_alike(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return words with their weights, and known words that look alike, which weigh as much as they share.

        "adoption" finds "adopting", and a typing error the right word; no dictionary is needed for that.
        """
        found, alike = {**weights}, self._related().alike
        for word, weight in weights.items():
            if word not in alike:
                shared, whole = defaultdict[str, float](float), 0.0
                for gram in set(grams(word)):
                    holders = self._words_with.get(gram, ())
                    rarity = math.log(1 + len(self._holders) / (len(holders) or 1))
                    whole += rarity
                    for other in holders:
                        shared[other] += rarity
                least = _LEAST_SHARED * whole
                alike[word] = {other: each / whole for other, each in shared.items() if each >= least}
            for other, share in alike[word].items():
                found[other] = max(found.get(other, 0.0), weight * share)
        return found

    def _shares(self, similarity: Mapping[str, float]) -> list[float]:
        """Return for each document how alike it is, of what the most alike one has, with the facts beside it."""
        alike = [0.0] * len(self._documents)
        low, high = (of(similarity.values(), default=0.0) for of in (min, max))
        low = max(low, 0.0)
        for name, close in similarity.items():
            if name in self._numbers:
                # What is alike in the same way, as a single document is, was found.
                alike[self._numbers[name]] = ((close - low) / (high - low) if low < high else 1.0) ** _ALIKE_POWER
        for facts in self._related().facts_together if similarity else ():
            most = sorted(map(alike.__getitem__, facts))[-_ALIKE_FACTS:]
            for number in facts:
                alike[number] += _ALIKE_TOGETHER * sum(most) / _ALIKE_FACTS
        return alike

    def _add_scores(self, scores: list[float], weights: Mapping[str, float]) -> None:
        """Add how well each document fits the words."""
        # In one order, as sums of floats depend on it.
        for word in sorted(weights.keys() & self._holders.keys()):
            _add_bm25(scores, self._holders[word], weights[word] * self._rarity(word), self._related().norms)

    def _session_scores(self, weights: Mapping[str, float]) -> list[float]:
        """Return what each session as a whole gives its texts for the words."""
        session_of, norms = self._related().session_of, self._related().session_norms
        scores = [0.0] * len(norms)
        for word in sorted(weights.keys() & self._holders.keys()):
            said = defaultdict[int, int](int)
            for number, times in self._holders[word].items():
                said[session_of[number]] += times
            said.pop(0, None)
            # Nothing for a word that every session has: where there is only one, it tells nothing.
            weight = _CONVERSATION * weights[word] * math.log(len(norms) / (len(said) + 1))
            _add_bm25(scores, said, weight, norms)
        return scores

    def _feedback(self, scores: Sequence[float], asked: Mapping[str, float]) -> dict[str, float]:
        """Return the words that tell most about what was found first, and were not asked for."""
        top = self._best(scores, _FEEDBACK_FROM)[:_FEEDBACK_FROM]
        weights = defaultdict[str, float](float)
        for document, score in top:
            for word in set(self._words[self._numbers[document.id]]).difference(asked):
                weights[word] += self._rarity(word) * score / top[0].score
        best = sorted(weights, key=lambda word: (-weights[word], word))[:_FEEDBACK_WORDS]
        return {word: _FEEDBACK * weights[word] / weights[best[0]] for word in best}

    def _best(self, scores: Sequence[float], limit: int) -> list[Hit]:
        """Return the documents with the highest scores above 0; of equals the user's come first, then by their ids."""
        # So that few are sorted: where twice as many would end, by what every sixteenth has.
        likely = min(sorted(scores[::16])[-(limit // 8) - 1 :], default=0.0)
        some = [score for score in scores if score >= likely]
        least = min(sorted(some if len(some) >= limit else scores)[-limit:], default=0.0)
        found = [Hit(self._documents[at], score) for at, score in enumerate(scores) if score >= least and score > 0]
        return sorted(found, key=lambda each: (-each.score, each.document.is_reply, each.document.id))

    def _shared(self, own: Sequence[float]) -> list[float]:
        """Return the scores of all documents, each with a share of those that belong to it."""
        related, lent = self._related(), [*own, 0.0].__getitem__
        beside = zip(own, map(lent, related.before), map(lent, related.after), strict=True)
        # Twice as fast as with max.
        scores = [score + _NEXT_TO * (one if one > other else other) for score, one, other in beside]
        near, told = [*scores], defaultdict[int, float](float)
        for number, turns in related.sources:
            scores[number] += _FROM_TURN * max(map(near.__getitem__, turns))
            for turn in turns:
                told[turn] = max(told[turn], own[number])
        for turn, most in told.items():
            scores[turn] += _FROM_FACT * most
        for number in related.explanations:
            scores[number] *= _REPLY
        return scores

    def _related(self) -> _Relations:
        """Return how the documents stand to each other: derived once after a change."""
        if self._relations is None:
            there = self._documents
            places = {
                at: (each.session, each.place, each.when, each.id) for at, each in enumerate(there) if each.session
            }
            together = groupby(sorted(places, key=places.__getitem__), lambda at: places[at][0])
            # What stands alone, as a fact by hand does, has no conversation: its own words would count twice.
            sessions = [row for _, session in together if len(row := [*session]) > 1]
            facts_together = [[at for at in session if there[at].kind == "fact"] for session in sessions]
            session_of, before, after = ([nothing] * len(self._documents) for nothing in (0, -1, -1))
            tells = [1.0 if each.kind == "fact" else _SAID_ALONE for each in there]
            for place, (session, facts) in enumerate(zip(sessions, facts_together, strict=True), start=1):
                for number in session:
                    session_of[number] = place
                row = [at for at in session if there[at].kind == "turn"]
                for one, other in pairwise(row):
                    before[other], after[one] = one, other
                for at in row if facts else ():
                    tells[at] = _SAID
            lengths = [*map(len, self._words)]
            of_sessions = [0, *(sum(map(lengths.__getitem__, session)) for session in sessions)]
            self._relations = _Relations(
                norms=_norms(lengths, len(self)),
                session_of=session_of,
                session_norms=_norms(of_sessions, len(sessions)),
                before=before,
                after=after,
                facts_together=facts_together,
                sources=[
                    (at, turns)
                    for at, each in enumerate(there)
                    if (turns := [self._numbers[name] for name in each.sources if name in self._numbers])
                ],
                explanations=[at for at, each in enumerate(there) if each.is_reply and lengths[at] > _LONG_REPLY],
                tells=tells,
                alike={},
            )
        return self._relations


def _norms(lengths: Sequence[int], count: int) -> list[float]:
    mean = sum(lengths) / max(1, count) or 1.0
    return [1 + _K1 * (1 - _B + _B * length / mean) for length in lengths]


def _add_bm25(scores: list[float], holders: Mapping[int, int], weight: float, norms: Sequence[float]) -> None:
    weight *= _K1 + 1
    for number, times in holders.items():
        # Most words are said once: twice as fast so.
        scores[number] += weight / norms[number] if times == 1 else weight * times / (times - 1 + norms[number])


def _document_words(document: Document) -> list[str]:
    return [*terms(document.text), *terms(document.who), *date_words(document.when)]
