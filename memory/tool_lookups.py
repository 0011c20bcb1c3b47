"""What the chat model looks up in memory itself, in the middle of a turn: search, read around a hit, list.

What comes back is quoted data within bounds, screened again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Final

from memory import prompts
from memory.control import read_control, read_epoch
from memory.effects import StoreEffects, side_by_side
from memory.facts.effects import FactEffects
from memory.facts.fact import Fact, may_be_used
from memory.facts.snapshot import read_snapshot
from memory.injection.block import escape, fact_line
from memory.journal.entry import JournalEntry, day_of
from memory.message import StoredMessage
from memory.recall import Index
from memory.recall.index import turn_documents
from memory.recall.past import read_past
from memory.recall.search import LEAST_SHARE, relevant, similarity_of
from memory.recall.vectors import QueryVector, read_vectors
from memory.screening.door import without_suspects
from memory.tool_calls import Told, ToolCall

MOST_HITS: Final = 10
PAGE_FACTS: Final = 40
_LINE_CHARS: Final = 300
_CONVERSATION_CHARS: Final = 4_000
_NEIGHBOURS: Final = 2
_HISTORY: Final = "No longer in use, as memory was full (restore brings one back):"


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a search reads: the facts it found, and what past conversations it has to choose from.

    Attributes:
        facts: Best first.
        evicted: What went at the limit, best first.
        journal: All past conversations.
        zone: Where the user is.
        now: The user's local time, ISO 8601.
        question: What an embedder makes of the query.
        vectors: Those of the texts, by `text_key`.
    """

    facts: Sequence[Fact] = ()
    evicted: Sequence[Fact] = ()
    journal: Sequence[JournalEntry] = field(default=(), repr=False)
    zone: tzinfo = UTC
    now: str = ""
    question: QueryVector | None = None
    vectors: Mapping[str, bytes] = field(default_factory=dict, repr=False)


def find(call: ToolCall, query: str, limit: int, question: QueryVector | None = None) -> StoreEffects[Lookup]:
    """Read what has to do with a query; `tell_found` chooses among the past conversations.

    Args:
        call: The turn.
        query: What the model searches for.
        limit: How many facts.
        question: What an embedder makes of the query.
    """
    own = FactEffects(call.owner, call.config, lambda: call.now)
    facts, evicted, snapshot, control = yield from side_by_side(
        own.search(query, None, question=question),
        own.search(query, None, status="evicted"),
        read_snapshot(call.owner),
        read_control(call.owner),
    )
    zone = control.zone or UTC
    in_use = {fact.id for fact in snapshot.facts}
    journal = yield from read_past(call.owner, snapshot.epoch)
    vectors = {}
    if question is not None:
        vectors = yield from read_vectors(call.owner, snapshot.epoch, question.embedder)
    shown = [fact for fact in facts if fact.id in in_use][: _hits(limit)]
    now = datetime.fromtimestamp(call.now, zone).isoformat()
    # What history holds nobody has screened since it went there.
    past = [fact for fact in evicted if may_be_used(fact)][: _hits(limit)]
    return Lookup(shown, past, journal, zone, now, question, vectors)


def tell_found(found: Lookup, query: str, limit: int) -> str:
    """Return the facts, and the past messages that fit the query best, as the model reads them. Takes a while."""
    documents = {entry.key: turn_documents(entry) for entry in found.journal}
    said = {
        document.id: (entry, message)
        for entry in found.journal
        for document, message in zip(documents[entry.key], entry.messages, strict=True)
    }
    index = Index.of(document for each in documents.values() for document in each)
    similarity = similarity_of({name: index[name].text for name in said}, found.question, found.vectors)
    lines, exchanges = [], set[str]()
    for hit in relevant(index.rank(query, now=found.now, similarity=similarity), LEAST_SHARE):
        entry, message = said[hit.document.id]
        if len(exchanges) == _hits(limit):
            break
        if entry.key not in exchanges and (line := _message_line(entry.day, message)):
            exchanges.add(entry.key)
            lines.append(f"{line} (source {entry.key})")
    parts = [
        ("Facts:", [_fact(fact, found.zone) for fact in found.facts]),
        (_HISTORY, [_fact(fact, found.zone) for fact in found.evicted]),
        ("Past conversations:", lines),
    ]
    text = "\n\n".join("\n".join([title, *each]) for title, each in parts if each)
    return _quoted(text) if text else "Nothing is remembered about that. Try other words, or ask the user."


def read_around(call: ToolCall, source: str) -> StoreEffects[Told]:
    """Tell what was said around a hit of a search, oldest first."""
    epoch = yield from read_epoch(call.owner)
    journal = yield from read_past(call.owner, epoch)
    hit = next((entry for entry in journal if entry.key == source.strip()), None)
    if hit is None:
        return Told("No past conversation has this source: take one that search_memory names.")
    thread = [entry for entry in journal if entry.thread_id == hit.thread_id]
    at = thread.index(hit)
    around = sorted(range(len(thread)), key=lambda each: abs(each - at))[: 2 * _NEIGHBOURS + 1]
    room, kept = _CONVERSATION_CHARS, dict[int, str]()
    for each in around:  # the hit first, then what is nearest to it
        lines = [_message_line(thread[each].day, message, room) for message in thread[each].messages]
        text = "\n".join(filter(None, lines))[:room]
        room -= len(text)
        if text:
            kept[each] = text
    text = "\n".join(kept[each] for each in sorted(kept))
    return Told(_quoted(text) if text else "Of this conversation nothing can be shown.")


def list_facts(call: ToolCall, page: int, category: str | None) -> StoreEffects[Told]:
    """Tell what is remembered, strongest first, a page at a time."""
    snapshot, control = yield from side_by_side(read_snapshot(call.owner), read_control(call.owner))
    facts = [fact for fact in snapshot.facts if category in (None, fact.category)]
    start = (max(1, page) - 1) * PAGE_FACTS
    lines = [_fact(fact, control.zone or UTC) for fact in facts[start : start + PAGE_FACTS]]
    if not lines:
        return Told("Nothing is remembered yet." if not facts else f"There is no page {page}.")
    more = f"\n{len(facts) - start - len(lines)} more: ask for page {max(1, page) + 1}."
    return Told(_quoted("\n".join(["Facts:", *lines])) + (more if len(facts) > start + len(lines) else ""))


def _fact(fact: Fact, zone: tzinfo) -> str:
    return f"{fact_line(fact)} (id {fact.id}, since {day_of(fact.created_at, zone)})"


def _message_line(day: str, message: StoredMessage, room: int = _LINE_CHARS) -> str:
    """Return one message on one line, without what must not stand in a prompt; empty if nothing is left."""
    text = escape(without_suspects(message.text[: 2 * room], is_released=True)[0])
    return f"- {day} {message.speaker}: {text[:room]}{'...' if len(text) > room else ''}" if text and room > 0 else ""


def _quoted(text: str) -> str:
    return prompts.TOOL_RESULT.format(memory=text)


def _hits(limit: int) -> int:
    return min(max(1, limit), MOST_HITS)
