"""An index over one user's facts and past turns, kept up to date item by item, and what ranks them for a question.

Facts and journal entries become its documents here: in one form for turns, for searches and for vectors. Pure.
"""

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Self

from memory.facts.fact import Fact
from memory.journal.entry import JournalEntry, line_id
from memory.recall.postings import Postings
from memory.recall.relations import Relations
from memory.recall.words import date_words, is_phatic, is_standing, names, terms

Kind = Literal["fact", "turn"]

# Chosen on some conversations, and checked on others (`make bench-quality`); results change little around them.
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


class Hit(NamedTuple):
    """A document that was found, and how well it fits; only the order of scores means something."""

    document: Document
    score: float


class Index:
    """Words and their documents. `put` and `remove` take the time of the documents given, not of the whole index."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._documents: list[Document | None] = []
        self._free: list[int] = []
        self._postings = Postings()
        self._sessions: dict[tuple[str, Kind], list[tuple[int, str, str]]] = {}
        self._standing: set[str] = set()
        self._relations: Relations | None = None

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Self:
        """Return an index of the documents."""
        index = cls()
        index.put(documents)
        return index

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, document_id: object) -> bool:
        return document_id in self._numbers

    def __getitem__(self, document_id: str) -> Document:
        document = self._documents[self._numbers[document_id]]
        assert document is not None
        return document

    def put(self, documents: Iterable[Document]) -> None:
        """Add documents; one whose id is there takes the other's place."""
        for document in documents:
            self.remove([document.id])
            self._relations = None
            number = self._free.pop() if self._free else len(self._documents)
            self._documents[number:number] = [None] * (number == len(self._documents))
            self._documents[number] = document
            self._numbers[document.id] = number
            self._postings.add(number, _words(document))
            if document.kind == "turn" and not document.is_reply and is_standing(document.text):
                self._standing.add(document.id)
            if document.session:
                insort(self._sessions.setdefault((document.session, document.kind), []), _order(document))

    def remove(self, ids: Iterable[str]) -> None:
        """Drop documents; an id that is not there is passed over."""
        for document_id in ids:
            number = self._numbers.pop(document_id, None)
            document = None if number is None else self._documents[number]
            if number is None or document is None:
                continue
            self._documents[number] = None
            self._relations = None
            self._standing.discard(document_id)
            self._free.append(number)
            self._postings.remove(number, _words(document))
            if document.session:
                session = self._sessions[document.session, document.kind]
                del session[bisect_left(session, _order(document))]
                if not session:
                    del self._sessions[document.session, document.kind]

    def rank(
        self,
        query: str,
        *,
        before: str = "",
        now: str = "",
        similarity: Mapping[str, float] | None = None,
        limit: int = 500,
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
        alike = None if similarity is None else self._by_number(similarity)
        own = self._postings.scores(self._with_names(self._postings.with_alike(asked), query))
        left_out = self._not_asked(own, alike) if only_asked else []
        more = self._feedback(self._fused(own, alike), asked)
        if more:
            own = [a + b for a, b in zip(own, self._postings.scores(more), strict=True)]
        own = self._with_conversations(own, asked)
        scores = self._relations_now().shared(self._fused(own, alike))
        for number in left_out:
            scores[number] = 0.0
        return [Hit(document, score) for score, document in self._best(scores, limit)]

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
        whole = sum(self._postings.rarity(word) or unheard for word in asked)
        # Squared, as words that look a little alike may have nothing to do with each other: "cellar" and "cello".
        alike = {word: share**2 for word, share in self._postings.with_alike(asked).items()}
        # A message without a word of its own ("and when was that?") is about what was said before.
        return min(1.0, self._postings.most_shared(alike) / whole) if whole else 1.0

    def standing(self, hits: Iterable[Hit] = ()) -> list[Document]:
        """Return the turns in which the user asked for something once and for all: those found first, then the newest.

        Args:
            hits: What a question found, best first.
        """
        fitting = {hit.document.id: at for at, hit in enumerate(hits)}
        newest = sorted(map(self.__getitem__, self._standing), key=lambda each: (each.when, each.place), reverse=True)
        return sorted(newest, key=lambda each: fitting.get(each.id, len(fitting)))

    def size(self) -> int:
        """Return about how many bytes the index takes, without the texts of its documents."""
        # Measured with tracemalloc, as the constants in `Postings.size`.
        return self._postings.size() + 300 * len(self._documents)

    def _with_names(self, weights: Mapping[str, float], query: str) -> dict[str, float]:
        """Return words with their weights, the names among them as if they were rare."""
        raised = dict(weights)
        for name in names(query):
            if rarity := self._postings.rarity(name):
                raised[name] = raised.get(name, 1.0) * max(1.0, _NAME / rarity)
        return raised

    def _not_asked(self, own: Sequence[float], alike: Sequence[float] | None) -> list[int]:
        """Return the numbers of the documents that neither words nor an embedder find."""
        near = [0.0] * len(own) if alike is None else _scaled(alike)
        return [at for at, score in enumerate(own) if not score and near[at] < _LEAST_ALIKE]

    def _with_conversations(self, own: Sequence[float], asked: Mapping[str, float]) -> list[float]:
        """Return the scores, each with a share of what its whole conversation says of the words, by number."""
        relations = self._relations_now()
        whole = self._postings.session_scores(asked, relations.session_of, relations.lengths)
        return [a + _CONVERSATION * whole[at] for a, at in zip(own, relations.session_of, strict=True)]

    def _fused(self, lexical: Sequence[float], similar: Sequence[float] | None) -> list[float]:
        """Return the sum of both, each between 0 and 1; the lexical scores alone where there are no others."""
        if similar is None:
            return list(lexical)
        most = max(lexical, default=0.0) or 1.0
        return [a / most + _SIMILARITY * b for a, b in zip(lexical, _scaled(similar), strict=True)]

    def _by_number(self, values: Mapping[str, float]) -> list[float]:
        lowest = min(values.values(), default=0.0)
        return [lowest if each is None else values.get(each.id, lowest) for each in self._documents]

    def _best(self, scores: Sequence[float], limit: int) -> list[tuple[float, Document]]:
        """Return the documents with the highest scores above 0, those that are equal sorted by their ids."""
        least = max(0.0, min(sorted(scores, reverse=True)[:limit], default=0.0))
        found = [
            (score, document)
            for score, document in zip(scores, self._documents, strict=True)
            if score >= least and score > 0 and document is not None
        ]
        return sorted(found, key=lambda each: (-each[0], each[1].id))

    def _feedback(self, scores: Sequence[float], asked: Mapping[str, float]) -> dict[str, float]:
        """Return the words that tell most about what was found first, and were not asked for."""
        top = self._best(scores, _FEEDBACK_FROM)[:_FEEDBACK_FROM]
        weights: dict[str, float] = {}
        for score, document in top:
            for word in set(_words(document)).difference(asked):
                weights[word] = weights.get(word, 0.0) + self._postings.rarity(word) * score / top[0][0]
        best = sorted(weights, key=lambda word: (-weights[word], word))[:_FEEDBACK_WORDS]
        return {word: _FEEDBACK * weights[word] / weights[best[0]] for word in best}

    def _relations_now(self) -> Relations:
        """Return how the documents stand to each other: derived once after a change."""
        if self._relations is None:
            numbers = self._numbers
            rows = [(kind, [numbers[name] for _, _, name in order]) for (_, kind), order in self._sessions.items()]
            links = []
            replies = []
            for number, document in enumerate(self._documents):
                sources = [numbers[each] for each in document.sources if each in numbers] if document else []
                if sources:
                    links.append((number, sources))
                if document and document.is_reply:
                    replies.append(number)
            self._relations = Relations.of(rows, links, replies, *self._whole_sessions())
        return self._relations

    def _whole_sessions(self) -> tuple[list[int], list[int]]:
        """Return the number of each document's session, facts and turns together, and how many words each has."""
        together = Counter(document.session for document in self._documents if document is not None)
        numbers: dict[object, int] = {}
        session_of, lengths = [], [0]
        for number, document in enumerate(self._documents):
            at = 0
            # What stands alone, as a fact by hand does, has no conversation: its own words would count twice.
            if document is not None and document.session and together[document.session] > 1:
                at = numbers.setdefault(document.session, len(numbers) + 1)
                lengths[at:at] = [0] * (at == len(lengths))
                lengths[at] += self._postings.length(number)
            session_of.append(at)
        return session_of, lengths


def _order(document: Document) -> tuple[int, str, str]:
    return (document.place, document.when, document.id)


def _words(document: Document) -> list[str]:
    return [*terms(document.text), *terms(document.who), *date_words(document.when)]


def _scaled(scores: Sequence[float]) -> list[float]:
    lowest, highest = min(scores, default=0.0), max(scores, default=0.0)
    if lowest == highest:  # as of a single document, which was found or was not
        return [1.0 if highest > 0 else 0.0] * len(scores)
    return [(each - lowest) / (highest - lowest) for each in scores]


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


def turn_documents(entry: JournalEntry) -> list[Document]:
    """Return the messages of an exchange as documents, each on the user's day."""
    return [
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
        )
        for number, one in enumerate(entry.messages)
    ]
