"""Deletion records: what stays of a deleted fact, without any text, so that old messages do not bring it back.

They stand among the history, each under a digest of what the fact said or of a message that it came from.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from langgraph.store.base import Item, Op

from memory.control import belongs, put_control, read_control, was_said_after
from memory.door import StoreEffects, put, read_many
from memory.facts.changes import Change, Section
from memory.facts.fact import Fact, moment
from memory.forms import plain, read_as
from memory.namespaces import Owner
from memory.text import digest, normalize

# What keys of deletion records begin with: they stand among the revisions.
DELETION: Final = "gone."


@dataclass(frozen=True, slots=True)
class DeletionRecord:
    """That a text or a message must not become a fact again.

    Attributes:
        fact_id: The fact that said the text, or came from the message.
        at: When it was deleted, or edited to say something else, ISO 8601.
        edit: The number of that change by hand (`memory.control`).
        epoch: The user's epoch.
    """

    fact_id: str
    at: str
    edit: str
    epoch: str

    def put(self, owner: Owner, key: str) -> Op:
        """Return the write of the record."""
        return put(owner.namespace("history"), key, plain(self))


def text_key(content: str) -> str:
    """Return the key of the record of a text."""
    return DELETION + digest("fact", normalize(content))


def message_key(thread_id: str, message_id: str) -> str:
    """Return the key of the record of a message."""
    return DELETION + digest("message", thread_id, message_id)


def message_keys(messages: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the ids of messages, which are given by thread, by the keys of their records."""
    return {message_key(thread_id, one): one for thread_id in sorted(messages) for one in messages[thread_id]}


def message_deletion_puts(owner: Owner, messages: Mapping[str, Iterable[str]], record: DeletionRecord) -> list[Op]:
    """Return the writes after which nothing is learned or told of messages (ids by thread) any more."""
    return [record.put(owner, key) for key in message_keys(messages)]


def note_erasure(owner: Owner, facts: Iterable[Fact], now: str) -> StoreEffects[None]:
    """Note that facts are erased: at `now`, or when the newest change was made, under a clock that is ahead."""
    control = yield from read_control(owner)
    # Undo compares times: what a clock that is ahead has stamped must not count as later than the erase.
    newest = max(now, control.erased_at.get(owner.agent_name, ""), *(fact.updated_at for fact in facts))
    erased_at = {**control.erased_at, owner.agent_name: newest}
    yield from put_control(owner, erased=control.erased + 1, erased_at=erased_at)


def forgotten(owner: Owner, epoch: str, thread_id: str, changes: Sequence[Change]) -> StoreEffects[frozenset[Change]]:
    """Find the changes that would bring a deleted fact back.

    A change does, if a fact with its content, or one made from one of its messages, was deleted after it was said, or
    said its content until a person changed that.
    """
    wanted = {each: {text_key(each.content), *message_keys({thread_id: each.sources})} for each in changes}
    records = yield from read_records(owner, epoch, {key for keys in wanted.values() for key in keys})
    return frozenset(
        change
        for change, keys in wanted.items()
        if any(was_said_before(change, records[key].at, records[key].edit) for key in keys & records.keys())
    )


def forgotten_messages(
    owner: Owner, epoch: str, thread_id: str, message_ids: Sequence[str]
) -> StoreEffects[frozenset[str]]:
    """Find the messages of a thread that a deleted fact came from."""
    keys = message_keys({thread_id: message_ids})
    return frozenset(keys[key] for key in (yield from read_records(owner, epoch, keys)))


def read_records(owner: Owner, epoch: str, keys: Iterable[str]) -> StoreEffects[dict[str, DeletionRecord]]:
    """Read those records of this epoch that there are of these keys."""
    found: dict[str, DeletionRecord] = {}
    items: list[Item | None] = yield from read_many(owner.namespace("history"), sorted(keys))
    for item in items:
        with suppress(ValueError):  # a hand garbled it
            if item and belongs(item.value, epoch):
                found[item.key] = read_as(DeletionRecord, {**item.value, "epoch": epoch})
    return found


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
