"""What the chat model does with memory itself, in the middle of a turn: search, read around a hit, remember, forget.

What comes back is quoted data within bounds, screened again. Changes keep the rules of extraction, so that a model that
was talked into something by a web page cannot write more than the user said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Final

from langchain_core.messages import BaseMessage

from memory import prompts
from memory.config import MemoryConfig
from memory.control import read_approval, read_epoch, read_known_time_zone, read_learning
from memory.effects import StoreEffects, put, side_by_side
from memory.erase import forget_rows
from memory.extraction.extraction import judge_fact
from memory.facts.applying import change_facts
from memory.facts.changes import Outcome, Reason, reasons
from memory.facts.effects import FactEffects
from memory.facts.fact import Fact, FactNotFound, MemoryFull, is_protected
from memory.facts.rows import stands
from memory.facts.snapshot import read_snapshot
from memory.injection.block import escape, fact_line
from memory.journal.entry import JournalEntry, day_of
from memory.message import StoredMessage, iso_time
from memory.namespaces import Owner, thread_namespace
from memory.outbox.outbox import settle_thread
from memory.outbox.receipts import UpdateReceipt, receipt_put, trim_receipts
from memory.outbox.transcript import to_turn
from memory.recall import Index
from memory.recall.documents import turn_documents
from memory.recall.kept_vectors import read_vectors
from memory.recall.past import read_past
from memory.recall.search import LEAST_SHARE, relevant, similarity_of
from memory.recall.vectors import QueryVector
from memory.screening.door import may_be_shown, without_suspects
from memory.screening.topics import held_topic
from memory.text import digest
from memory.threads import erased_between, read_thread_epoch
from memory.turn import TurnEpochs, learnable

MOST_HITS: Final = 10
PAGE_FACTS: Final = 40
_LINE_CHARS: Final = 300
_CONVERSATION_CHARS: Final = 4_000
_NEIGHBOURS: Final = 2
_HISTORY: Final = "No longer in use, as memory was full (restore brings one back):"
# What the user says in so many words; only what they wrote by hand is surer.
_CONFIDENCE: Final = 0.9

_WAITS: Final = (
    "Noted, and not used yet: the user wants to be asked first, so it waits for their yes. Only they can give it, on "
    "the page of their memory: tell them that it waits there."
)

_NOT_REMEMBERED: dict[Reason, str] = {
    "secret": "memory keeps no passwords, keys, codes or card numbers. Do not try again.",
    "instruction_like": "it reads as an order to an assistant, so it waits for the user's review and is not used.",
    "not_said": "only what the user said or affirmed in this exchange can be remembered, with their names, numbers and "
    "dates. Ask the user to say it. Earlier messages are learned by themselves.",
    "duplicate": "it is known already.",
    "full": "memory is full, and everything in it is protected: the user must remove something first.",
    "forgotten": "the user deleted it before. They can add it again themselves.",
    "edited": "the user changed this by hand since.",
    "protected": "the user protects it.",
    "stale": "the user erased their memory in the meantime.",
    "small_talk": "thanks and greetings are no facts.",
    "placeholder": "it has a blank where a name should be.",
    "too_long": "it is too long: one short sentence.",
    "empty": "there is no text in it.",
    "unknown_category": "there is no such category.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """In which turn the model asks, as its run says it; nothing of it comes from the model.

    Attributes:
        owner: Whose memory.
        thread_id: The thread.
        messages: The thread's messages, as far as they are at hand.
        epochs: Under which epochs the turn began; empty where nobody read them.
        now: Seconds since the epoch.
        key: What names the call, so that its receipt is written once.
        config: Limits.
    """

    owner: Owner
    thread_id: str
    messages: Sequence[BaseMessage]
    epochs: TurnEpochs
    now: float
    key: str
    config: MemoryConfig


@dataclass(frozen=True, slots=True)
class Told:
    """What the model is told, and what was done, if anything was."""

    text: str
    receipt: UpdateReceipt | None = None


@dataclass(frozen=True, slots=True)
class Found:
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


def find(call: ToolCall, query: str, limit: int, question: QueryVector | None = None) -> StoreEffects[Found]:
    """Read what has to do with a query; `tell_found` chooses among the past conversations.

    Args:
        call: The turn.
        query: What the model searches for.
        limit: How many facts.
        question: What an embedder makes of the query.
    """
    own = FactEffects(call.owner, call.config, lambda: call.now)
    facts, evicted, snapshot, zone = yield from side_by_side(
        own.search(query, None, "active", question),
        own.search(query, None, "evicted"),
        read_snapshot(call.owner),
        read_known_time_zone(call.owner),
    )
    in_use = {fact.id for fact in snapshot.facts}
    journal = yield from read_past(call.owner, snapshot.epoch)
    vectors = {}
    if question is not None:
        vectors = yield from read_vectors(call.owner, snapshot.epoch, question.embedder)
    shown = [fact for fact in facts if fact.id in in_use][: _hits(limit)]
    now = datetime.fromtimestamp(call.now, zone or UTC).isoformat()
    # What history holds nobody has screened since it went there.
    past = [fact for fact in evicted if may_be_shown(fact.content)][: _hits(limit)]
    return Found(shown, past, journal, zone or UTC, now, question, vectors)


def tell_found(found: Found, query: str, limit: int) -> str:
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
    epoch, _ = yield from side_by_side(read_epoch(call.owner), read_known_time_zone(call.owner))
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
    snapshot, zone = yield from side_by_side(read_snapshot(call.owner), read_known_time_zone(call.owner))
    facts = [fact for fact in snapshot.facts if category in (None, fact.category)]
    start = (max(1, page) - 1) * PAGE_FACTS
    lines = [_fact(fact, zone or UTC) for fact in facts[start : start + PAGE_FACTS]]
    if not lines:
        return Told("Nothing is remembered yet." if not facts else f"There is no page {page}.")
    more = f"\n{len(facts) - start - len(lines)} more: ask for page {max(1, page) + 1}."
    return Told(_quoted("\n".join(["Facts:", *lines])) + (more if len(facts) > start + len(lines) else ""))


def remember(call: ToolCall, content: str, category: str, corrects: str | None) -> StoreEffects[Told]:
    """Remember one fact that the user said in this exchange, by the rules of extraction.

    Args:
        call: The turn.
        content: What the model wants to be remembered.
        category: Its category.
        corrects: Id of the fact that it takes the place of, if any.
    """
    snapshot, zone, learning = yield from side_by_side(
        read_snapshot(call.owner), read_known_time_zone(call.owner), read_learning(call.owner)
    )
    if not call.config.enabled or not learning:
        return Told("Not remembered: the user has paused learning.")
    wrong = next((fact for fact in snapshot.facts if fact.id == corrects), None)
    if corrects and wrong is None:
        return Told(_unknown(corrects))
    extraction = judge_fact(
        {"content": content, "category": category, "confidence": _CONFIDENCE},
        _said(call),
        corrects=wrong,
        existing=snapshot.facts,
        config=call.config,
        time_zone=zone,
    )
    epoch, now = call.epochs.user or snapshot.epoch, iso_time(call.now)
    outcome, note = yield from change_facts(
        call.owner, extraction, thread_id=call.thread_id, epoch=epoch, now=now, config=call.config
    )
    told = _told_of(outcome)
    sources = tuple(dict.fromkeys(each for change in extraction.changes for each in change.sources))
    receipt = UpdateReceipt(
        time=now,
        thread_id=call.thread_id,
        created=outcome.created,
        confirmed=outcome.confirmed,
        superseded=outcome.superseded,
        refused=reasons(outcome.refused),
        waiting=outcome.waiting,
        messages=sources,
        epoch=epoch,
    )
    # Erasing the thread finds whose memory it fed by this note, also if the turn is never written down.
    yield [
        *note,
        receipt_put(call.owner, call.key, receipt),
        put(thread_namespace(call.thread_id), call.owner.due_key, {}),
    ]
    # After the last write, so that an erase either sees these rows or is seen here.
    is_current, thread_epoch, _ = yield from side_by_side(
        stands(call.owner, epoch), read_thread_epoch(call.thread_id), trim_receipts(call.owner)
    )
    if call.epochs.thread and erased_between(call.epochs.thread, thread_epoch):
        yield from forget_rows(call.owner, call.thread_id, epoch)
        yield from settle_thread(call.owner, call.thread_id)
        is_current = False
    return Told(told, receipt) if is_current else Told(f"Not remembered: {_NOT_REMEMBERED['stale']}")


def forget(call: ToolCall, fact_id: str) -> StoreEffects[Told]:
    """Retire a fact as the memory API does: it does not come back by itself, and the user can undo it."""
    facts = FactEffects(call.owner, call.config, lambda: call.now)
    try:
        fact = yield from facts.get(fact_id.strip())
        if fact.status != "active":
            return Told("Not forgotten: this fact waits for the user's review, and nothing uses it.")
        if is_protected(fact, call.config.protected_categories):
            return Told("Not forgotten: the user wrote or pinned this, so only they can remove it, in their memory.")
        yield from facts.retire(fact.id)
    except FactNotFound:
        return Told(_unknown(fact_id))
    receipt = UpdateReceipt(time=iso_time(call.now), thread_id=call.thread_id, superseded=(fact.id,), epoch=fact.epoch)
    yield [receipt_put(call.owner, call.key, receipt)]
    yield from trim_receipts(call.owner)
    return Told("Forgotten. The user can undo it.", receipt)


def restore(call: ToolCall, fact_id: str) -> StoreEffects[Told]:
    """Bring back a fact that went at the limit; the weakest of the others goes there in its place."""
    if not call.config.enabled or not (yield from read_learning(call.owner)):
        return Told("Not restored: the user has paused learning.")
    chosen = yield from read_approval(call.owner)
    facts = FactEffects(call.owner, call.config, lambda: call.now)
    try:
        gone = next((each for each in (yield from facts.list("evicted")) if each.id == fact_id.strip()), None)
        # It was used before the user asked to be asked; a model must not take that for a yes.
        if gone and held_topic(gone.content, call.config.approval | chosen, (gone.topic,) if gone.topic else ()):
            return Told("Not restored: only the user can bring this back, as they want to be asked about such things.")
        fact = yield from facts.restore(fact_id.strip())
    except FactNotFound:
        return Told(_unknown(fact_id))
    except MemoryFull:
        return Told(f"Not restored: {_NOT_REMEMBERED['full']}")
    if fact.status != "active":
        return Told(f"Not restored: {_NOT_REMEMBERED['instruction_like']}")
    receipt = UpdateReceipt(time=iso_time(call.now), thread_id=call.thread_id, created=(fact.id,), epoch=fact.epoch)
    yield [receipt_put(call.owner, call.key, receipt)]
    yield from trim_receipts(call.owner)
    return Told(f"Restored as {fact.id}. The user can undo it.", receipt)


def receipt_key(thread_id: str, call_id: str) -> str:
    """Return what names a call of a tool in a thread."""
    return digest("tool", thread_id, call_id)[:32]


def _said(call: ToolCall) -> tuple[StoredMessage, ...]:
    """Return the newest turn as it will be written down, with the answer that it replies to: no more is learned."""
    newest = learnable(call.epochs.newest_turn(call.messages))
    return tuple(replace(message, edit=call.epochs.edit) for message in to_turn(newest, iso_time(call.now)))


def _told_of(outcome: Outcome) -> str:
    if outcome.created:
        return f"Remembered as {outcome.created[0]}."
    if outcome.waiting:
        return _WAITS
    if outcome.confirmed:
        return f"That is known already, as {outcome.confirmed[0]}."
    reason = outcome.refused[0].reason if outcome.refused else "empty"
    return f"Not remembered: {_NOT_REMEMBERED.get(reason, 'it is no fact about the user.')}"


def _unknown(fact_id: str) -> str:
    return f"No fact has the id {escape(fact_id)[:40]!r}: search_memory and list_memories tell the ids."


def _fact(fact: Fact, zone: tzinfo) -> str:
    return f"{fact_line(fact)} (id {fact.id}, since {day_of(fact.created_at, zone)})"


def _message_line(day: str, message: StoredMessage, room: int = _LINE_CHARS) -> str:
    """Return one message on one line, without what must not stand in a prompt; empty if nothing is left."""
    text = escape(without_suspects(message.text[: 2 * room])[0])
    return f"- {day} {message.role}: {text[:room]}{'...' if len(text) > room else ''}" if text and room > 0 else ""


def _quoted(text: str) -> str:
    return prompts.TOOL_RESULT.format(memory=text)


def _hits(limit: int) -> int:
    return min(max(1, limit), MOST_HITS)
