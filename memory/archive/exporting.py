"""Everything that is remembered about a user as the text of one JSON document, as large as the memory is.

What may be large is read a page at a time and written an entry at a time, so that no more of it is in memory.
"""

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from langgraph.store.base import BaseStore, Item

from memory.archive.importing import SCHEMA, VERSION
from memory.control import belongs, read_epoch
from memory.effects import Pages, arun
from memory.facts.fact import Fact, timestamp, to_item
from memory.facts.profile import read_profile, texts_of
from memory.facts.store import FactStore
from memory.journal.entry import JournalEntry
from memory.message import StoredMessage
from memory.namespaces import Kind, Owner
from memory.outbox.entry import Entry

Json = Mapping[str, object]

# What means something only in the store that it is in: an epoch and the count of edits are compared with others there.
_INNER = frozenset({"epoch", "schema", "edit"})


async def aexport(
    store: BaseStore, owner: Owner, seconds: float, summaries: AsyncIterator[Json] | None = None
) -> AsyncIterator[str]:
    """Yield the document in pieces: facts and their history, profile, journal, pending updates, threads' summaries.

    Args:
        store: Where memory is kept.
        owner: Whose memory.
        seconds: Now, in seconds since 1970.
        summaries: `{"thread_id", "summary"}` of each of the user's threads; they are in checkpoints, not in the store.
    """
    epoch = await arun(store, read_epoch(owner))
    profile = texts_of(await arun(store, read_profile(owner, epoch)))
    head = {"schema": SCHEMA, "version": VERSION, "exported_at": timestamp(seconds), "agent": owner.agent_name}
    yield _text({**head, "profile": profile})[:-1]
    facts = FactStore.of_owner(store, owner)
    async for piece in _list("facts", _each(_plain(to_item(fact)) for fact in await facts.alist(None))):
        yield piece
    # Facts and their history are bounded and read in one go; journal and updates are not, and are read in pages.
    history = [fact for status in ("superseded", "ended", "evicted") for fact in await facts.alist(status)]
    history.sort(key=lambda fact: (fact.updated_at, fact.id, fact.revision))
    async for piece in _list("history", _each(_plain(to_item(fact)) for fact in history)):
        yield piece
    async for piece in _list("journal", _journal(store, owner, epoch)):
        yield piece
    async for piece in _list("updates", _updates(store, owner, epoch)):
        yield piece
    async for piece in _list("summaries", summaries or _each(())):
        yield piece
    yield "\n}\n"


def facts_document(owner: Owner, facts: Sequence[Fact], seconds: float) -> Json:
    """Return a document with these facts and nothing else, in the form that an import takes."""
    head = {"schema": SCHEMA, "version": VERSION, "exported_at": timestamp(seconds), "agent": owner.agent_name}
    return {**head, "facts": [_plain(to_item(fact)) for fact in facts]}


async def _list(name: str, entries: AsyncIterator[Json]) -> AsyncIterator[str]:
    yield f',\n"{name}": ['
    before = "\n"
    async for entry in entries:
        yield before + _text(entry)
        before = ",\n"
    yield "]"


async def _each(values: Iterable[Json]) -> AsyncIterator[Json]:
    for value in values:
        yield value


async def _journal(store: BaseStore, owner: Owner, epoch: str) -> AsyncIterator[Json]:
    async for item in _items(store, owner, "journal", epoch):
        try:
            entry = JournalEntry.from_json(item.value)
        except ValueError:
            continue  # how far roll-ups have come stands there too, and is of no use elsewhere
        yield _plain({**entry.screened().to_json(), "messages": [_said(message) for message in entry.messages]})


async def _updates(store: BaseStore, owner: Owner, epoch: str) -> AsyncIterator[Json]:
    async for item in _items(store, owner, "outbox", epoch):
        try:
            entry = Entry.from_json(item.value)
        except ValueError:
            continue
        yield {
            "kind": entry.kind,
            "thread_id": entry.thread_id,
            "created": timestamp(entry.created),
            "state": entry.state,
            "error": entry.error,
            "model": entry.model,
            "edited_away": list(entry.edited_away),
            "messages": [_said(message) for message in entry.messages],
        }


async def _items(store: BaseStore, owner: Owner, kind: Kind, epoch: str) -> AsyncIterator[Item]:
    pages = Pages(owner.namespace(kind))
    while page := await arun(store, pages.next()):
        for item in page:
            if belongs(item.value, epoch):
                yield item


def _said(message: StoredMessage) -> Json:
    return _plain(message.to_json())


def _plain(item: Json) -> Json:
    return {name: value for name, value in item.items() if name not in _INNER}


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
