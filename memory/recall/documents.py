"""What can be recalled: facts and past messages, in one form for turns, for searches and for vectors. Pure."""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from memory.facts.fact import Fact
from memory.journal.entry import JournalEntry, line_id

Kind = Literal["fact", "turn"]

# A longer line of the journal is a pasted document: its beginning has to do.
MOST_CHARS: Final = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One thing that can be recalled.

    Attributes:
        id: Of a fact, or of a past message; unique in an index.
        text: What it says.
        when: When it was said, ISO 8601 (a day or a time), in the user's time zone; empty if unknown.
        who: Who said it, as the question may name them; empty if unknown.
        session: The same for what was said together (a thread's day); empty: it stands alone.
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
    place: str = ""
    kind: Kind = "fact"
    sources: tuple[str, ...] = ()
    is_reply: bool = False
    entry: str = ""


class Hit(NamedTuple):
    """A document that was found, and how well it fits; only the order of scores means something."""

    document: Document
    score: float


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
            # Sorted by time, then by order; the rest of a time is the same for all.
            place=f"{one.time[:19]} {number:04}",
            kind="turn",
            is_reply=one.role != "user",
            who=one.speaker if one.role == "other" else "",
            entry=entry.key,
        )
        for number, one in enumerate(entry.messages)
    )
