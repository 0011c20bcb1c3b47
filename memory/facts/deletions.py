"""Deletion records: what stays of a deleted fact, without any text, so that old messages do not bring it back.

They stand among the history, each under a digest of what the fact said or of a message that it came from.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from langgraph.store.base import Item, Op

from memory.control import belongs, count_edit, put_control, read_control, was_said_after
from memory.effects import StoreEffects, delete, put, read_many
from memory.facts.chain import Chain, FactHistory, dormant, read_fact_history
from memory.facts.changes import Change, Section
from memory.facts.fact import HELD, Fact, fact_key, moment
from memory.facts.rows import DELETION, history_key
from memory.forms import plain, read_as
from memory.message import StoredMessage, find_gone
from memory.namespaces import Owner
from memory.text import digest


@dataclass(frozen=True, slots=True)
class DeletionRecord:
    """That a text or a message must not become a fact again.

    Attributes:
        fact_id: The fact that said the text, or came from the message.
        at: When it was deleted, or edited to say something else, ISO 8601.
        edit: The number of that change by hand (`memory.control`).
        epoch: The user's epoch.
        status: Whether the fact is `deleted`, or only this text of it, because the fact was `edited`.
    """

    fact_id: str
    at: str
    edit: str
    epoch: str
    status: Literal["deleted", "edited"] = "deleted"

    def put(self, owner: Owner, key: str) -> Op:
        """Return the write of the record."""
        return put(owner.namespace("history"), key, plain(self))


def _record(item: Item | None, epoch: str) -> DeletionRecord | None:
    """Return the record that an item holds; `None` if there is none, or none of this epoch."""
    with suppress(ValueError):
        return read_as(DeletionRecord, {**item.value, "epoch": epoch}) if item and belongs(item.value, epoch) else None
    return None


def note_erasure(owner: Owner, history: FactHistory, now: str) -> StoreEffects[None]:
    """Note that facts are erased: at `now`, or when the newest change was made, under a clock that is ahead."""
    control = yield from read_control(owner)
    # Undo compares times: what a clock that is ahead has stamped must not count as later than the erase.
    times = [now, control.erased_at.get(owner.agent_name, ""), *(fact.updated_at for fact in history.every)]
    _, newest = max(((at, time) for time in times if (at := moment(time))), default=(None, now))
    erased_at = {**control.erased_at, owner.agent_name: newest}
    yield from put_control(owner, erased=control.erased + 1, erased_at=erased_at)


def deletion_puts(owner: Owner, chain: Chain, *, at: str, edit: str, epoch: str) -> list[Op]:
    """Return the writes that record what facts said, the messages they came from, and those that said them again."""
    texts = {_text_key(fact.content): DeletionRecord(fact.id, at, edit, epoch) for fact in chain.revisions}
    puts = [record.put(owner, key) for key, record in texts.items()]
    return [*puts, *message_deletion_puts(owner, chain.sources, DeletionRecord(chain.ids[-1], at, edit, epoch))]


def message_deletion_puts(owner: Owner, messages: Mapping[str, Iterable[str]], record: DeletionRecord) -> list[Op]:
    """Return the writes after which nothing is learned or told of messages (ids by thread) any more."""
    return [record.put(owner, key) for key in sorted(_message_keys(messages))]


def aside_put(owner: Owner, fact: Fact, *, at: str, edit: str, epoch: str) -> Op:
    """Return the write after which what was said before does not bring back a fact that was put aside."""
    return DeletionRecord(fact.id, at, edit, epoch, "edited").put(owner, _text_key(fact.content))


def aside_drop(owner: Owner, fact: Fact) -> Op:
    """Return the write that drops this record again. Those of its messages stay: they may be of other facts."""
    return delete(owner.namespace("history"), _text_key(fact.content))


def let_go(
    owner: Owner, epoch: str, facts: Sequence[Fact], *, now: str, but: Collection[str] = ()
) -> StoreEffects[None]:
    """Record that facts that waited for a yes got none: nothing said before tells of them, or proposes them again.

    Args:
        owner: Whose facts; their rows are deleted by the caller.
        epoch: The user's current epoch.
        facts: Those that are let go.
        now: ISO 8601.
        but: Ids of messages that facts which stay came from.
    """
    edit = yield from count_edit(owner)
    for fact in facts:
        chain = Chain.of([replace(fact, message_ids=tuple(each for each in fact.message_ids if each not in but))], ())
        yield deletion_puts(owner, chain, at=now, edit=edit, epoch=epoch)


def deletion_drops(owner: Owner, chain: Chain) -> list[Op]:
    """Return the writes that drop the records of these facts: they are there again because a person wants them."""
    keys = {*map(_text_key, chain.contents), *_message_keys(chain.sources)}
    return [delete(owner.namespace("history"), key) for key in sorted(keys)]


def forget(owner: Owner, fact_id: str, *, now: str) -> StoreEffects[Chain]:
    """Delete a fact's chain for good: rows, revisions, confirmations; and record what it was made from.

    Args:
        owner: Whose fact.
        fact_id: One of the chain.
        now: ISO 8601.

    Returns:
        What the chain was.

    Raises:
        FactNotFound: If no fact has or had the id.
    """
    history = yield from read_fact_history(owner)
    chain = history.chain_with(fact_id)
    edit = yield from count_edit(owner)
    if any(fact.status not in HELD for fact in chain.revisions):  # nothing else can be undone to
        yield from note_erasure(owner, history, now)
    yield [
        *deletion_puts(owner, chain, at=now, edit=edit, epoch=history.facts.epoch),
        *(delete(owner.namespace("history"), history_key(fact.id, fact.revision)) for fact in chain.revisions),
        *(delete(owner.namespace("confirmations"), each) for each in chain.ids),
        *(delete(owner.namespace("facts"), key) for key in chain.keys),
    ]
    return chain


def forgotten(owner: Owner, epoch: str, thread_id: str, changes: Sequence[Change]) -> StoreEffects[frozenset[Change]]:
    """Find the changes that would bring a deleted fact back.

    A change does, if a fact with its content, or one made from one of its messages, was deleted after it was said, or
    said its content until a person changed that.
    """
    wanted = {change: {_text_key(change.content), *_message_keys({thread_id: change.sources})} for change in changes}
    keys = sorted(set().union(*wanted.values()))
    records = dict(zip(keys, (yield from _read_records(owner, epoch, keys)), strict=True))
    return frozenset(
        change
        for change, own in wanted.items()
        if any(record and was_said_before(change, record.at, record.edit) for record in map(records.get, own))
    )


def unwanted(owner: Owner, epoch: str, contents: Sequence[str]) -> StoreEffects[frozenset[str]]:
    """Find the contents that a person deleted, said no to, or changed."""
    records = yield from _read_records(owner, epoch, [_text_key(each) for each in contents])
    return frozenset(each for each, record in zip(contents, records, strict=True) if record)


def forgotten_messages(
    owner: Owner, epoch: str, thread_id: str, message_ids: Sequence[str]
) -> StoreEffects[frozenset[str]]:
    """Find the messages of a thread that a deleted fact came from."""
    records = yield from _read_records(owner, epoch, [_message_key(thread_id, each) for each in message_ids])
    return frozenset(each for each, record in zip(message_ids, records, strict=True) if record)


def read_gone(
    owner: Owner, epoch: str, conversations: Sequence[tuple[str, Sequence[StoredMessage]]]
) -> StoreEffects[dict[str, frozenset[str]]]:
    """Read which messages nothing may tell of, and the replies to them: ids by thread; arguments as for `gone_in`."""
    return gone_in((yield from read_fact_history(owner)), epoch, conversations)


def gone_in(
    history: FactHistory, epoch: str, conversations: Sequence[tuple[str, Sequence[StoredMessage]]]
) -> dict[str, frozenset[str]]:
    """Find the messages that nothing may tell of, and the replies to them: ids by thread.

    A deleted fact came from them, or they say what one says that a person may want back, or that waits for a yes.

    Args:
        history: What is known of the user's facts.
        epoch: The user's current epoch.
        conversations: Messages, oldest first, each after the thread they are from.
    """
    records = {
        item.key: record for item in history.items if item.key.startswith(DELETION) if (record := _record(item, epoch))
    }
    untold = _untold(history, records)
    if not records and not untold.ids:
        return {}
    return find_gone(
        conversations,
        lambda thread_id, one: (
            _message_key(thread_id, one.id) in records or (bool(untold.ids) and untold.is_in(thread_id, one))
        ),
    )


def _untold(history: FactHistory, records: Mapping[str, DeletionRecord]) -> Chain:
    """Return what nothing tells of, with its chains: deleted facts that a person may want back, and waiting ones.

    What waits for a yes must not be told by the message that it came from either.
    """
    waiting = [fact for fact in history.facts.rows.values() if fact.status == "waiting"]
    deleted = [
        fact
        for fact in history.past
        if fact.status == "ended"
        and (record := records.get(_text_key(fact.content)))
        and (record.status, record.fact_id) == ("deleted", fact.id)
    ]
    ids = dormant(history.every, {fact.id for fact in (*deleted, *waiting)})
    return history.chain_of([fact for fact in (*history.past, *waiting) if fact.id in ids])


def was_said_before(said: Change | Section, time: str, edit: str) -> bool:
    """Say whether something was said before a change by hand; where nobody can tell, it was.

    Args:
        said: What was said.
        time: When the change was made, ISO 8601; it counts where the numbers of the edits do not tell.
        edit: The number of the change (`memory.control`).
    """
    # Numbers before times: clocks of two processes differ, and may be set back.
    is_later = was_said_after(said.said_after, edit)
    if is_later is not None:
        return not is_later
    then, changed = moment(said.said_at), moment(time)
    return then is None or changed is None or then <= changed


def _read_records(owner: Owner, epoch: str, keys: Sequence[str]) -> StoreEffects[list[DeletionRecord | None]]:
    items = yield from read_many(owner.namespace("history"), keys)
    return [_record(item, epoch) for item in items]


def _text_key(content: str) -> str:
    return DELETION + fact_key(content)


def _message_key(thread_id: str, message_id: str) -> str:
    return DELETION + digest("message", thread_id, message_id)


def _message_keys(messages: Mapping[str, Iterable[str]]) -> set[str]:
    return {_message_key(thread_id, each) for thread_id, ids in messages.items() for each in ids}
