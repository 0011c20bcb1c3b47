"""Facts and journal entries as documents of an index: one form for turns, for searches and for vectors. Pure."""

from typing import Final

from memory.facts.fact import Fact
from memory.journal.entry import JournalEntry, line_id, lines_of
from memory.recall.index import Document

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
            id=line.id,
            text=line.text[:MOST_CHARS],
            when=line.day,
            session=f"{line.thread_id}/{line.day}",
            # Sorted by time, and within one by their order; the end of a time is the same for all.
            place=int("".join(filter(str.isdigit, line.time[:19])) or "0") * 100 + number,
            kind="turn",
            is_reply=line.role == "assistant",
        )
        for number, line in enumerate(lines_of(entry))
    ]
