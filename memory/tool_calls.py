"""A call of memory's tools by the chat model, in the middle of a turn, and what it changes: remember, forget, restore.

Changes keep the rules of extraction, so that a model that was talked into something by a web page cannot write more
than the user said. What the model looks up is in `memory/tool_lookups.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from langchain_core.messages import BaseMessage

from memory.config import MemoryConfig, stricter
from memory.control import read_control
from memory.door import transaction
from memory.effects import StoreEffects, put, side_by_side
from memory.extraction.extraction import judge_fact
from memory.facts.applying import change_facts
from memory.facts.changes import Outcome, Reason, reasons
from memory.facts.effects import FactEffects
from memory.facts.fact import FactNotFound, MemoryFull, is_protected
from memory.facts.snapshot import read_snapshot
from memory.injection.block import escape
from memory.message import StoredMessage, iso_time
from memory.namespaces import Owner, thread_namespace
from memory.text import digest
from memory.threads import erased_between, read_thread_epoch
from memory.turn import TurnEpochs, learnable
from memory.updates.receipts import UpdateReceipt, receipt_put, trim_receipts
from memory.updates.transcript import to_turn

# What the user says in so many words; only what they wrote by hand is surer.
_CONFIDENCE: Final = 0.9

_WAITS: Final = (
    "Noted, and not used yet: the user wants to be asked first, so it waits for their yes. Only they can give it, on "
    "the page of their memory: tell them that it waits there."
)

_NOT_REMEMBERED: dict[Reason, str] = {
    "secret": "memory keeps no keys or card numbers. Do not try again.",
    "suspected": "it may hold a password or a code, so it waits for the user's review and is not used.",
    "instruction_like": "it reads as an order to an assistant, so it waits for the user's review and is not used.",
    "not_said": "only what the user said or affirmed in this exchange can be remembered, with their names, numbers and "
    "dates. Ask the user to say it. Earlier messages are learned by themselves.",
    "unfounded": "it has a number or a date that the user did not say, so it waits for their review and is not used.",
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


@transaction
def remember(call: ToolCall, content: str, category: str, corrects: str | None) -> StoreEffects[Told]:
    """Remember one fact that the user said in this exchange, by the rules of extraction.

    Args:
        call: The turn.
        content: What the model wants to be remembered.
        category: Its category.
        corrects: Id of the fact that it takes the place of, if any.
    """
    snapshot, control, thread_epoch = yield from side_by_side(
        read_snapshot(call.owner), read_control(call.owner), read_thread_epoch(call.thread_id)
    )
    if not call.config.enabled or not control.learning:
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
        time_zone=control.zone,
    )
    epoch, now = call.epochs.user or snapshot.epoch, iso_time(call.now)
    is_erased = bool(call.epochs.thread) and erased_between(call.epochs.thread, thread_epoch)
    if is_erased or epoch != snapshot.epoch:
        return Told(f"Not remembered: {_NOT_REMEMBERED['stale']}")
    outcome = yield from change_facts(
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
        receipt_put(call.owner, call.key, receipt),
        put(thread_namespace(call.thread_id), call.owner.due_key, {}),
    ]
    yield from trim_receipts(call.owner)
    return Told(told, receipt)


@transaction
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
    return (yield from _noted(call, receipt, "Forgotten. The user can undo it."))


@transaction
def restore(call: ToolCall, fact_id: str) -> StoreEffects[Told]:
    """Bring back a fact that went at the limit; the weakest of the others goes there in its place."""
    control = yield from read_control(call.owner)
    if not call.config.enabled or not control.learning:
        return Told("Not restored: the user has paused learning.")
    facts = FactEffects(call.owner, call.config, lambda: call.now)
    try:
        gone = next((each for each in (yield from facts.list("evicted")) if each.id == fact_id.strip()), None)
        # It was used before the user asked to be asked; a model must not take that for a yes.
        if gone and stricter(call.config.approval, control.approval) != "off":
            return Told("Not restored: only the user can bring this back, as they want to be asked first.")
        fact = yield from facts.restore(fact_id.strip())
    except FactNotFound:
        return Told(_unknown(fact_id))
    except MemoryFull:
        return Told(f"Not restored: {_NOT_REMEMBERED['full']}")
    if fact.status != "active":
        return Told(f"Not restored: {_NOT_REMEMBERED['instruction_like']}")
    receipt = UpdateReceipt(time=iso_time(call.now), thread_id=call.thread_id, created=(fact.id,), epoch=fact.epoch)
    return (yield from _noted(call, receipt, f"Restored as {fact.id}. The user can undo it."))


def _noted(call: ToolCall, receipt: UpdateReceipt, text: str) -> StoreEffects[Told]:
    yield [receipt_put(call.owner, call.key, receipt)]
    yield from trim_receipts(call.owner)
    return Told(text, receipt)


def receipt_key(thread_id: str, call_id: str) -> str:
    """Return what names a call of a tool in a thread."""
    return digest("tool", thread_id, call_id)[:32]


def _said(call: ToolCall) -> tuple[StoredMessage, ...]:
    """Return the newest turn as it will be written down, with the answer that it replies to: no more is learned."""
    newest = learnable(call.epochs.newest_turn(call.messages))
    said = to_turn(newest, iso_time(call.now), call.epochs.speaker)
    return tuple(replace(message, edit=call.epochs.edit) for message in said)


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
