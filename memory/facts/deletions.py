"""What a deleted fact leaves behind: marks without text, so that it does not come back from old messages."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from langgraph.store.base import Item, Op

from memory.control import belongs, count_edit, was_said_after
from memory.effects import StoreEffects, delete, put, read, read_many
from memory.facts.chain import Chain, dormant, read_chain
from memory.facts.changes import Change, Section
from memory.facts.fact import Fact, FactNotFound, fact_key
from memory.facts.rows import ERASED, GONE, history_key, read_fact_set, read_history, read_provenance
from memory.facts.rules import FactSet
from memory.namespaces import Owner
from memory.text import digest

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LastErasure:
    """The last erase of facts: a random token, and when (ISO 8601). No undo reaches behind it."""

    token: str = ""
    at: str = ""


def read_erasure(owner: Owner, epoch: str) -> StoreEffects[LastErasure]:
    """Read when facts were erased last; an empty one if never."""
    item = yield from read(owner.namespace("history"), ERASED)
    value = item.value if item and belongs(item.value, epoch) else {}
    return LastErasure(str(value.get("token", "")), str(value.get("at", "")))


def note_erasure(owner: Owner, epoch: str, token: str, now: str) -> StoreEffects[None]:
    """Note that facts are erased: at `now`, or when the newest change was made, under a clock that is ahead."""
    fact_set = yield from read_fact_set(owner, epoch)
    history = yield from read_history(owner, epoch)
    before = yield from read_erasure(owner, epoch)
    times = [now, before.at, *(fact.updated_at for fact in (*fact_set.rows.values(), *history))]
    newest = max((time for time in times if moment(time)), key=lambda time: moment(time) or _NEVER, default=now)
    yield [put(owner.namespace("history"), ERASED, {"token": token, "at": newest, "epoch": epoch})]


def discard(owner: Owner, fact_set: FactSet, fact: Fact, *, now: str, edit: str, epoch: str) -> list[Op]:
    """Return the writes that delete a fact that nobody uses, one that waits for review, and mark what it was."""
    return [
        *marks(owner, Chain.of([fact], ()), now=now, edit=edit, epoch=epoch),
        delete(owner.namespace("confirmations"), fact.id),
        *(delete(owner.namespace("facts"), key) for key, row in fact_set.rows.items() if row.id == fact.id),
    ]


def forget(owner: Owner, epoch: str, fact_id: str, *, token: str, now: str) -> StoreEffects[Chain]:
    """Delete a fact's chain for good: rows, revisions, confirmations; and mark what it was made from.

    Marked are a digest of what each said, in every revision, and of each message it came from or was confirmed by;
    `forgotten` reads them. The marks stand before the rows are read for the last time: a writer under way is seen
    here, or sees them and takes back what it wrote (`take_back_erased`).

    Args:
        owner: Whose fact.
        epoch: The user's current epoch.
        fact_id: One of the chain.
        token: A random one.
        now: ISO 8601.

    Returns:
        What the chain was.

    Raises:
        FactNotFound: If no fact has or had the id.
    """
    edit = yield from count_edit(owner)
    chain = yield from read_chain(owner, epoch, fact_id)
    yield marks(owner, chain, now=now, edit=edit, epoch=epoch)
    yield from note_erasure(owner, epoch, token, now)
    with suppress(FactNotFound):  # the one who deletes the same fact at the same time was faster
        chain = yield from read_chain(owner, epoch, fact_id)
        yield marks(owner, chain, now=now, edit=edit, epoch=epoch)
    yield [
        *(delete(owner.namespace("history"), history_key(fact.id, fact.revision)) for fact in chain.revisions),
        *(delete(owner.namespace("confirmations"), each) for each in chain.ids),
        *(delete(owner.namespace("facts"), key) for key in chain.keys),
    ]
    return chain


def message_marks(
    owner: Owner, messages: Mapping[str, Iterable[str]], fact_id: str, *, now: str, edit: str, epoch: str
) -> list[Op]:
    """Return the writes that mark messages, by thread: nothing is learned or told of them any more."""
    marker = _marker(fact_id, now, edit, epoch)
    return [put(owner.namespace("history"), key, marker) for key in sorted(_of_messages(messages))]


def _marker(fact_id: str, now: str, edit: str, epoch: str) -> dict[str, str]:
    return {"id": fact_id, "status": "deleted", "deletedAt": now, "edit": edit, "epoch": epoch}


def marks_of_edit(owner: Owner, old: Fact, new: Fact, *, epoch: str) -> list[Op]:
    """Return the writes after which what was said before an edit does not bring back what the fact said then."""
    history = owner.namespace("history")
    marker = {**_marker(old.id, new.edited_at, new.edit, epoch), "status": "edited"}
    return [put(history, _of_content(old.content), marker), delete(history, _of_content(new.content))]


def _is_of(mark: Item | None, fact: Fact) -> bool:
    """Say whether a mark tells that this fact was deleted, and not only that an edit took this text of it away."""
    return mark is not None and mark.value.get("id") == fact.id and mark.value.get("status") == "deleted"


def take_back_erased(owner: Owner, epoch: str, before: LastErasure, ids: Collection[str]) -> StoreEffects[bool]:
    """Say, after facts were written, whether somebody erased one of them in between; if so, delete what was written.

    Args:
        owner: Whose facts.
        epoch: The epoch they were written under.
        before: The last erase as it was read before.
        ids: The facts that were there before and were written again.
    """
    if (yield from read_erasure(owner, epoch)) == before:
        return False
    fact_set = yield from read_fact_set(owner, epoch)
    history = yield from read_history(owner, epoch)
    written = [fact for fact in (*history, *fact_set.rows.values()) if fact.id in ids]
    found = yield from read_many(owner.namespace("history"), [_of_content(fact.content) for fact in written])
    gone = {
        fact.id
        for fact, mark in zip(written, found, strict=True)
        if mark and _is_of(mark, fact) and str(mark.value.get("deletedAt", "")) >= fact.created_at
    }
    if not gone:
        return False
    yield [
        *(delete(owner.namespace("history"), history_key(one.id, one.revision)) for one in history if one.id in gone),
        *(delete(owner.namespace("facts"), key) for key, fact in fact_set.rows.items() if fact.id in gone),
        *(delete(owner.namespace("confirmations"), each) for each in sorted(gone)),
    ]
    return True


def marks(owner: Owner, chain: Chain, *, now: str, edit: str, epoch: str) -> list[Op]:
    """Return the writes that mark what facts said, the messages they came from, and those that said them again."""
    contents = [
        put(owner.namespace("history"), _of_content(fact.content), _marker(fact.id, now, edit, epoch))
        for fact in chain.revisions
    ]
    return [*contents, *message_marks(owner, chain.sources, chain.ids[-1], now=now, edit=edit, epoch=epoch)]


def unmarks(owner: Owner, chain: Chain) -> list[Op]:
    """Return the writes that take these marks away: the fact is there again because a person wants it."""
    contents = {_of_content(content) for content in chain.contents}
    return [delete(owner.namespace("history"), mark) for mark in sorted(contents | _of_messages(chain.sources))]


def _of_messages(messages: Mapping[str, Iterable[str]]) -> set[str]:
    return {_of_message(thread_id, each) for thread_id, ids in messages.items() for each in ids}


def deleted_meanwhile(owner: Owner, epoch: str, fact_set: FactSet, fact: Fact) -> StoreEffects[bool]:
    """Say, after a fact was rewritten, whether somebody deleted it in between; if so, delete what was written."""
    item = yield from read(owner.namespace("history"), _of_content(fact.content))
    if item is None or not belongs(item.value, epoch) or not _is_of(item, fact):
        return False
    if str(item.value.get("deletedAt", "")) < fact.created_at:
        return False  # the mark of an earlier life of the same content
    keys = [key for key, row in fact_set.rows.items() if row.id == fact.id]
    revisions = [history_key(fact.id, number) for number in range(1, fact.revision + 1)]
    history = owner.namespace("history")
    yield [
        *(delete(owner.namespace("facts"), key) for key in keys),
        *(delete(history, key) for key in revisions),
    ]
    return True


def forgotten(owner: Owner, epoch: str, thread_id: str, changes: Sequence[Change]) -> StoreEffects[frozenset[Change]]:
    """Find the changes that would bring a deleted fact back.

    A change does, if a fact with its content, or one made from one of its messages, was deleted after it was said, or
    said its content until a person changed that.
    """
    wanted = [_marks(change, thread_id) for change in changes]
    keys = sorted({key for own in wanted for key in own})
    items = yield from read_many(owner.namespace("history"), keys)
    deleted = {
        key: item.value
        for key, item in zip(keys, items, strict=True)
        if item is not None and belongs(item.value, epoch)
    }
    return frozenset(
        change
        for change, own in zip(changes, wanted, strict=True)
        if any(
            was_said_before(change, str(deleted[mark].get("deletedAt", "")), str(deleted[mark].get("edit", "")))
            for mark in own
            if mark in deleted
        )
    )


def read_deleted(owner: Owner, epoch: str) -> StoreEffects[Chain]:
    """Read the facts that a person deleted and may want back, with their chains: nothing tells of them meanwhile."""
    history = yield from read_history(owner, epoch)
    fact_set = yield from read_fact_set(owner, epoch)
    ended = [fact for fact in history if fact.status == "ended"]
    found = yield from read_many(owner.namespace("history"), [_of_content(fact.content) for fact in ended])
    deleted = {fact.id for fact, mark in zip(ended, found, strict=True) if _is_of(mark, fact)}
    ids = dormant((*history, *fact_set.rows.values()), deleted)
    return Chain.of([fact for fact in history if fact.id in ids], (yield from read_provenance(owner, sorted(ids))))


def forgotten_messages(
    owner: Owner, epoch: str, thread_id: str, message_ids: Sequence[str]
) -> StoreEffects[frozenset[str]]:
    """Find the messages of a thread that a deleted fact came from."""
    keys = [_of_message(thread_id, each) for each in message_ids]
    items = yield from read_many(owner.namespace("history"), keys)
    return frozenset(
        each for each, item in zip(message_ids, items, strict=True) if item is not None and belongs(item.value, epoch)
    )


def _marks(change: Change, thread_id: str) -> list[str]:
    return [_of_content(change.content), *(_of_message(thread_id, each) for each in change.sources)]


def was_said_before(said: Change | Section, time: str, edit: str) -> bool:
    """Say whether something was said before a change by hand; where nobody can tell, it was.

    Args:
        said: What was said.
        time: When the change was made, ISO 8601; it counts where the marks do not tell.
        edit: The mark of the change (`memory.control`).
    """
    is_later = was_said_after(said.said_after, edit)
    if is_later is not None:
        return not is_later
    then, changed = moment(said.said_at), moment(time)
    return then is None or changed is None or then <= changed


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
