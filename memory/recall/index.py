"""An index over one user's facts and past turns, kept up to date item by item, and what ranks them for a question.

Words and their documents are an inverted index that is changed in place. How documents stand to each other, in
conversations and through what facts were taken from, is derived once after a change. Facts and journal entries become
documents here: in one form for turns, for searches and for vectors. Pure.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Self

from memory.facts.fact import Fact
from memory.journal.entry import JournalEntry, line_id
from memory.recall.words import date_words, grams, is_phatic, is_standing, names, terms

Kind = Literal["fact", "turn"]

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
_CONVERSATION: Final = 0.45
# An embedder finds each text a little alike: with less of what the most alike one has, it does not find it.
_LEAST_ALIKE: Final = 0.2
# A question and its answer are found together, a fact through what it was taken from, and the other way round.
_NEXT_TO: Final = 0.4
# Among people a second message often goes on with what was said before the first; an assistant's reply ends that.
_TWO_AWAY: Final = 0.15
_FROM_TURN: Final = 0.6
_FROM_FACT: Final = 0.2
_SAME_SESSION: Final = 0.1
# A long answer has all the words of its question; what the user said themselves tells more about them.
_REPLY: Final = 0.5
_GAP: Final = -1
"""Stands for no document: scores have one more at their end, which is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One thing that can be recalled.

    Attributes:
        id: A fact's id, or what names one past message; no two documents of an index share it.
        text: What it says.
        when: When it was said, ISO 8601 (a day or a time), in the user's time zone; empty if unknown.
        who: Who said it, as the question may name them; empty if unknown.
        session: What was said together has the same one (a thread's day); empty stands alone.
        place: Where it stands in its session: turns with neighbouring places, sorted, are next to each other.
        kind: A fact, or one message of a past turn.
        sources: Of a fact, the ids of the turns that it was taken from.
        is_reply: Of a turn, whether somebody else than the user said it.
        entry: Of a turn, the key of the journal entry that holds it.
    """

    id: str
    text: str
    when: str = ""
    who: str = ""
    session: str = ""
    place: int = 0
    kind: Kind = "fact"
    sources: tuple[str, ...] = ()
    is_reply: bool = False
    entry: str = ""


class Hit(NamedTuple):
    """A document that was found, and how well it fits; only the order of scores means something."""

    document: Document
    score: float


_Link = tuple[int, Sequence[int]]
"""A document and others that lend it a share of what the best of them has, by their numbers."""


class _Relations(NamedTuple):
    """How documents stand to each other, by their numbers.

    Attributes:
        norms: What BM25 makes of each document's length.
        session_of: Of each document the number of its session, facts and turns together; 0 where it stands alone.
        session_norms: What BM25 makes of each session's length.
        groups: The facts, and the turns, of each session.
        next_to: Turns with the one before and the one after.
        two_away: What people said, with what they said before the one before, and after the one after.
        turns_of: Facts with the turns that they were taken from.
        facts_of: These turns with the facts.
        replies: What the assistant said.
    """

    norms: list[float]
    session_of: list[int]
    session_norms: list[float]
    groups: list[list[int]]
    next_to: list[_Link]
    two_away: list[_Link]
    turns_of: list[_Link]
    facts_of: list[_Link]
    replies: list[int]


class Index:
    """Words and their documents. `put` and `remove` take the time of the documents given, not of the whole index."""

    def __init__(self) -> None:
        # A document has a number while it is here; then another one gets that.
        self._numbers: dict[str, int] = {}
        self._documents: list[Document | None] = []
        self._lengths: list[int] = []
        self._free: list[int] = []
        # How often each document has a word, and the known words that have a sequence of characters.
        self._holders: dict[str, dict[int, int]] = {}
        self._words_with: dict[str, list[str]] = {}
        self._standing: dict[str, Document] = {}
        self._relations: _Relations | None = None

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Self:
        """Return an index of the documents."""
        index = cls()
        index.put(documents)
        return index

    def __len__(self) -> int:
        return len(self._numbers)

    def put(self, documents: Iterable[Document]) -> None:
        """Add documents; one whose id is there takes the other's place."""
        for document in documents:
            self.remove([document.id])
            if not self._free:
                self._free.append(len(self._documents))
                self._documents.append(None)
                self._lengths.append(0)
            number, counts = self._free.pop(), Counter(_document_words(document))
            self._numbers[document.id], self._documents[number] = number, document
            self._lengths[number] = counts.total()
            for word, count in counts.items():
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
            number = self._numbers.pop(document_id, _GAP)
            document = self._documents[number] if number != _GAP else None
            if document is None:
                continue
            for word in set(_document_words(document)):
                del self._holders[word][number]
                if not self._holders[word]:
                    del self._holders[word]
                    for gram in set(grams(word)):
                        self._words_with[gram].remove(word)
                        if not self._words_with[gram]:
                            del self._words_with[gram]
            self._documents[number], self._lengths[number] = None, 0
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
        asked = dict.fromkeys(terms(before, today=now), _BEFORE)
        asked.update(dict.fromkeys(terms(query, today=now), 1.0))
        alike = [0.0] * len(self._documents)
        if similarity is not None:
            lowest = min(similarity.values(), default=0.0)
            cosines = [similarity.get(each.id, lowest) if each else lowest for each in self._documents]
            low, high = min(cosines, default=0.0), max(cosines, default=0.0)
            # What is alike in the same way, as a single document is, was found or was not.
            alike = [(each - low) / (high - low) if low < high else float(each > 0) for each in cosines]
        weights = self._with_alike(asked)
        for name in names(query):
            if rarity := self._rarity(name):
                weights[name] = weights.get(name, 1.0) * max(1.0, _NAME / rarity)
        own = self._scores(weights)
        left_out = [at for at, score in enumerate(own) if only_asked and not score and alike[at] < _LEAST_ALIKE]

        def fused() -> list[float]:
            """Both between 0 and 1; the words alone where there is nothing else."""
            if similarity is None:
                return own
            most = max(own, default=0.0) or 1.0
            return [a / most + _SIMILARITY * b for a, b in zip(own, alike, strict=True)]

        if more := self._feedback(fused(), asked):
            own = [a + b for a, b in zip(own, self._scores(more), strict=True)]
        sessions, session_of = self._session_scores(asked), self._related().session_of
        own = [a + _CONVERSATION * sessions[at] for a, at in zip(own, session_of, strict=True)]
        scores = self._shared(fused())
        for number in left_out:
            scores[number] = 0.0
        return self._best(scores, limit)

    def coverage(self, query: str, now: str = "") -> float:
        """Return how much of what a message says the document has that says most of it: 0 for nothing, 1 for all.

        Words count by their rarity, those that nobody has said most.

        Args:
            query: The message.
            now: As for `rank`.
        """
        if is_phatic(query):
            return 0.0
        asked = dict.fromkeys(terms(query, today=now), 1.0)
        unheard = math.log(1 + len(self))
        whole = sum(self._rarity(word) or unheard for word in asked)
        if not whole:  # a message without a word of its own ("and when was that?") is about what was said before
            return 1.0
        shared = [0.0] * len(self._documents)
        for word, share in sorted(self._with_alike(asked).items()):
            # Squared, as words that look a little alike may have nothing to do with each other: "cellar" and "cello".
            weight = share**2 * self._rarity(word)
            for number in self._holders.get(word, ()):
                shared[number] += weight
        return min(1.0, max(shared, default=0.0) / whole)

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
        return 600 * len(self._holders) + 400 * len(self._documents) + 70 * sum(self._lengths)

    def _rarity(self, word: str) -> float:
        """Return how much a word tells: BM25's inverse document frequency; 0 for a word that is nowhere."""
        found = len(self._holders.get(word, ()))
        return math.log(1 + (len(self) - found + 0.5) / (found + 0.5)) if found else 0.0

    def _with_alike(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return words with their weights, and known words that look alike, which weigh as much as they share.

        "adoption" finds "adopting", and a typing error the right word; no dictionary is needed for that.
        """
        known = len(self._holders)
        found: dict[str, float] = {}
        for word, weight in weights.items():
            shared: dict[str, float] = {}
            whole = 0.0
            for gram in set(grams(word)):
                holders = self._words_with.get(gram, ())
                rarity = math.log(1 + known / (len(holders) or 1))
                whole += rarity
                for other in holders:
                    shared[other] = shared.get(other, 0.0) + rarity
            for other, share in shared.items():
                if share >= _LEAST_SHARED * whole:
                    found[other] = max(found.get(other, 0.0), weight * share / whole)
        return {**found, **{word: max(weight, found.get(word, 0.0)) for word, weight in weights.items()}}

    def _scores(self, weights: Mapping[str, float]) -> list[float]:
        """Return how well each document fits the words."""
        scores, norms = [0.0] * len(self._documents), self._related().norms
        # In one order, as sums of floats depend on it.
        for word in sorted(weights.keys() & self._holders.keys()):
            _add_bm25(scores, self._holders[word], weights[word] * self._rarity(word), norms)
        return scores

    def _session_scores(self, weights: Mapping[str, float]) -> list[float]:
        """Return how well each session as a whole fits the words."""
        session_of, norms = self._related().session_of, self._related().session_norms
        scores = [0.0] * len(norms)
        for word in sorted(weights.keys() & self._holders.keys()):
            said: dict[int, int] = {}
            for number, times in self._holders[word].items():
                said[session_of[number]] = said.get(session_of[number], 0) + times
            said.pop(0, None)
            # Nothing for a word that every session has: where there is only one, it tells nothing.
            _add_bm25(scores, said, weights[word] * math.log(len(norms) / (len(said) + 1)), norms)
        return scores

    def _feedback(self, scores: Sequence[float], asked: Mapping[str, float]) -> dict[str, float]:
        """Return the words that tell most about what was found first, and were not asked for."""
        top = self._best(scores, _FEEDBACK_FROM)[:_FEEDBACK_FROM]
        weights: dict[str, float] = {}
        for document, score in top:
            for word in set(_document_words(document)).difference(asked):
                weights[word] = weights.get(word, 0.0) + self._rarity(word) * score / top[0].score
        best = sorted(weights, key=lambda word: (-weights[word], word))[:_FEEDBACK_WORDS]
        return {word: _FEEDBACK * weights[word] / weights[best[0]] for word in best}

    def _best(self, scores: Sequence[float], limit: int) -> list[Hit]:
        """Return the documents with the highest scores above 0, those that are equal sorted by their ids."""
        least = max(0.0, min(sorted(scores, reverse=True)[:limit], default=0.0))
        found = [
            Hit(document, score)
            for document, score in zip(self._documents, scores, strict=True)
            if score >= least and score > 0 and document is not None
        ]
        return sorted(found, key=lambda each: (-each.score, each.document.id))

    def _shared(self, own: Sequence[float]) -> list[float]:
        """Return the scores of all documents, each with a share of those that belong to it."""
        related, alone = self._related(), [*own, 0.0]
        scores = [*alone]

        def lend(links: Iterable[_Link], share: float, lenders: Sequence[float]) -> None:
            for number, others in links:
                if most := max(map(lenders.__getitem__, others)):
                    scores[number] += share * most

        lend(related.next_to, _NEXT_TO, alone)
        lend(related.two_away, _TWO_AWAY, alone)
        lend(related.turns_of, _FROM_TURN, [*scores])
        lend(related.facts_of, _FROM_FACT, alone)
        for group in related.groups:
            if share := _SAME_SESSION * max([scores[number] for number in group]):
                for number in group:
                    scores[number] += share
        for number in related.replies:
            scores[number] *= _REPLY
        return scores[:-1]

    def _related(self) -> _Relations:
        """Return how the documents stand to each other: derived once after a change."""
        if self._relations is not None:
            return self._relations
        there = [(number, document) for number, document in enumerate(self._documents) if document]
        groups: dict[tuple[str, Kind], list[tuple[int, str, str, int]]] = {}
        for number, each in there:
            if each.session:
                groups.setdefault((each.session, each.kind), []).append((each.place, each.when, each.id, number))
        rows = {name: [number for *_, number in sorted(group)] for name, group in groups.items()}
        replies = [number for number, each in there if each.is_reply]
        next_to: list[_Link] = []
        two_away: list[_Link] = []
        said = set(replies)
        for row in (row for (_, kind), row in rows.items() if kind == "turn"):
            next_to += zip(row, zip([_GAP, *row], [*row[1:], _GAP], strict=False), strict=True)
            heard = [_GAP, _GAP, *(_GAP if number in said else number for number in row), _GAP, _GAP]
            two_away += [
                (number, (_GAP if last == _GAP else before, _GAP if following == _GAP else after))
                for before, last, number, following, after in zip(
                    heard, heard[1:], heard[2:], heard[3:], heard[4:], strict=False
                )
                if number != _GAP
            ]
        # What stands alone, as a fact by hand does, has no conversation: its own words would count twice.
        together = Counter(each.session for _, each in there if each.session)
        sessions = {name: at for at, name in enumerate((name for name in together if together[name] > 1), start=1)}
        session_of, lengths = [0] * len(self._documents), [0] * (len(sessions) + 1)
        for number, each in there:
            if at := sessions.get(each.session, 0):
                session_of[number] = at
                lengths[at] += self._lengths[number]
        turns_of: list[_Link] = []
        facts_of: dict[int, list[int]] = {}
        for number, each in there:
            if turns := [self._numbers[name] for name in each.sources if name in self._numbers]:
                turns_of.append((number, turns))
                for turn in turns:
                    facts_of.setdefault(turn, []).append(number)
        self._relations = _Relations(
            norms=_norms(self._lengths, len(self)),
            session_of=session_of,
            session_norms=_norms(lengths, len(sessions)),
            groups=[*rows.values()],
            next_to=next_to,
            two_away=two_away,
            turns_of=turns_of,
            facts_of=[*facts_of.items()],
            replies=replies,
        )
        return self._relations


def _norms(lengths: Sequence[int], count: int) -> list[float]:
    mean = sum(lengths) / max(1, count) or 1.0
    return [_K1 * (1 - _B + _B * length / mean) for length in lengths]


def _add_bm25(scores: list[float], holders: Mapping[int, int], weight: float, norms: Sequence[float]) -> None:
    weight *= _K1 + 1
    for number, times in holders.items():
        scores[number] += weight * times / (times + norms[number])


def _document_words(document: Document) -> list[str]:
    return [*terms(document.text), *terms(document.who), *date_words(document.when)]


# A line of the journal that takes more than this is a document that was pasted: its beginning has to do.
MOST_CHARS: Final = 4_000


def fact_document(fact: Fact) -> Document:
    """Return a fact as a document; what it was taken from are lines of the journal."""
    return Document(
        id=fact.id,
        text=fact.content,
        when=fact.created_at,
        session=f"{fact.thread_id}/{fact.created_at[:10]}" if fact.thread_id else "",
        sources=fact_sources(fact),
    )


def fact_sources(fact: Fact) -> tuple[str, ...]:
    """Return the lines of the journal that a fact was taken from, by their ids."""
    return tuple(line_id(fact.thread_id, message) for message in fact.message_ids)


def turn_documents(entry: JournalEntry) -> tuple[Document, ...]:
    """Return the messages of an exchange as documents, each on the user's day."""
    return tuple(
        Document(
            id=line_id(entry.thread_id, one.id),
            text=one.text[:MOST_CHARS],
            when=entry.day,
            session=f"{entry.thread_id}/{entry.day}",
            # Sorted by time, and within one by their order; the end of a time is the same for all.
            place=int("".join(filter(str.isdigit, one.time[:19])) or "0") * 100 + number,
            kind="turn",
            is_reply=one.role != "user",
            who=one.speaker if one.role == "other" else "",
            entry=entry.key,
        )
        for number, one in enumerate(entry.messages)
    )
