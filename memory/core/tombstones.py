"""What a deleted fact leaves behind: marks without text, so that it does not come back from old messages."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain

from langgraph.store.base import Op

from memory.control import belongs
from memory.core.changes import Change
from memory.core.facts import Fact, fact_key
from memory.core.rules import Shelf
from memory.core.shelf import GONE, history_key
from memory.namespaces import Owner
from memory.storage import Steps, delete, put, read, read_many
from memory.text import digest


def forget(owner: Owner, shelf: Shelf, fact: Fact, *, now: str, epoch: str) -> Steps[None]:
    """Delete a fact for good: its row, its revisions, its confirmations; and mark what it was made from.

    Marked are a digest of what it said, in every revision, and of each message it came from; `forgotten` reads them.
    """
    history = owner.namespace("history")
    keys = [history_key(fact.id, revision) for revision in range(1, fact.revision + 1)]
    revisions = yield from read_many(history, keys)
    earlier = [str(item.value.get("content", "")) for item in revisions if item is not None]
    yield [
        *marks(owner, fact, earlier, now=now, epoch=epoch),
        *(delete(history, key) for key in keys),
        delete(owner.namespace("confirmations"), fact.id),
        *(delete(owner.namespace("facts"), key) for key, row in shelf.rows.items() if row.id == fact.id),
    ]


def marks(owner: Owner, fact: Fact, earlier: Sequence[str] = (), *, now: str, epoch: str) -> list[Op]:
    """Return the writes that mark what a fact said, now and earlier, and the messages it came from."""
    marker = {"id": fact.id, "status": "deleted", "deletedAt": now, "epoch": epoch}
    return [put(owner.namespace("history"), mark, marker) for mark in _all_marks(fact, earlier)]


def unmarks(owner: Owner, fact: Fact) -> list[Op]:
    """Return the writes that take a fact's marks away: it is there again because a person wants it."""
    return [delete(owner.namespace("history"), mark) for mark in _all_marks(fact)]


def _all_marks(fact: Fact, earlier: Sequence[str] = ()) -> list[str]:
    contents = {_of_content(content) for content in (fact.content, *earlier)}
    return sorted(contents | {_of_message(fact.thread_id, each) for each in fact.message_ids})


def deleted_meanwhile(owner: Owner, epoch: str, shelf: Shelf, fact: Fact) -> Steps[bool]:
    """Say, after a fact was rewritten, whether somebody deleted it in between; if so, delete what was written."""
    item = yield from read(owner.namespace("history"), _of_content(fact.content))
    if item is None or not belongs(item.value, epoch) or item.value.get("id") != fact.id:
        return False
    if str(item.value.get("deletedAt", "")) < fact.created_at:
        return False  # the mark of an earlier life of the same content
    keys = [key for key, row in shelf.rows.items() if row.id == fact.id]
    revisions = [history_key(fact.id, number) for number in range(1, fact.revision + 1)]
    history = owner.namespace("history")
    yield [
        *(delete(owner.namespace("facts"), key) for key in keys),
        *(delete(history, key) for key in revisions),
    ]
    return True


def forgotten(owner: Owner, epoch: str, thread_id: str, changes: Sequence[Change]) -> Steps[frozenset[Change]]:
    """Find the changes that would bring a deleted fact back.

    A change does, if a fact with its content, or one made from one of its messages, was deleted after it was said.
    """
    wanted = [_marks(change, thread_id) for change in changes]
    keys = sorted(set(chain.from_iterable(wanted)))
    items = yield from read_many(owner.namespace("history"), keys)
    deleted = {
        key: str(item.value.get("deletedAt", ""))
        for key, item in zip(keys, items, strict=True)
        if item is not None and belongs(item.value, epoch)
    }
    return frozenset(
        change
        for change, own in zip(changes, wanted, strict=True)
        if any(_not_after(change.said_at, deleted[mark]) for mark in own if mark in deleted)
    )


def forgotten_messages(owner: Owner, epoch: str, thread_id: str, message_ids: Sequence[str]) -> Steps[frozenset[str]]:
    """Find the messages of a thread that a deleted fact came from."""
    keys = [_of_message(thread_id, each) for each in message_ids]
    items = yield from read_many(owner.namespace("history"), keys)
    return frozenset(
        each for each, item in zip(message_ids, items, strict=True) if item is not None and belongs(item.value, epoch)
    )


def _marks(change: Change, thread_id: str) -> list[str]:
    return [_of_content(change.content), *(_of_message(thread_id, each) for each in change.sources)]


def _not_after(said_at: str, deleted_at: str) -> bool:
    said, deleted = moment(said_at), moment(deleted_at)
    return said is None or deleted is None or said <= deleted


def moment(text: str) -> datetime | None:
    """Return the time that ISO 8601 text names, UTC where it has no offset; `None` for any other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _of_content(content: str) -> str:
    return GONE + fact_key(content)


def _of_message(thread_id: str, message_id: str) -> str:
    return GONE + digest("message", thread_id, message_id)
