"""Everything that is remembered about a user as lines of JSON: a header, then each entry under the name of its part.

What may be large is read a page at a time, so that no more of it is in memory.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress

from langgraph.store.base import BaseStore, Item

from memory.archive.importing import FORMAT, SCHEMA
from memory.control import belongs, read_epoch
from memory.effects import Pages, arun
from memory.facts.fact import Fact, timestamp, to_item
from memory.facts.profile import read_profile, texts_of
from memory.facts.store import FactStore
from memory.journal.entry import JournalEntry
from memory.namespaces import Kind, Owner
from memory.outbox.entry import Entry

Json = Mapping[str, object]

# What means something only in the store that it is in: an epoch and the count of edits are compared with others there.
_INNER = frozenset({"epoch", "schema", "edit"})


async def aexport(
    store: BaseStore, owner: Owner, seconds: float, summaries: AsyncIterator[Json] | None = None
) -> AsyncIterator[str]:
    """Yield the lines: profile, facts and their history, journal, pending updates, threads' summaries.

    Args:
        store: Where memory is kept.
        owner: Whose memory.
        seconds: Now, in seconds since 1970.
        summaries: `{"thread_id", "summary"}` of each of the user's threads; they are in checkpoints, not in the store.
    """
    epoch = await arun(store, read_epoch(owner))
    facts = FactStore.of_owner(store, owner)
    for line in fact_lines(owner, await facts.alist(None), seconds):
        yield line
    yield _line("profile", texts_of(await arun(store, read_profile(owner, epoch))))
    # Facts and their history are bounded and read in one go; journal and updates are not, and are read in pages.
    history = [fact for status in ("superseded", "ended", "evicted") for fact in await facts.alist(status)]
    history.sort(key=lambda fact: (fact.updated_at, fact.id, fact.revision))
    for fact in history:
        yield _line("history", _plain(to_item(fact)))
    # What is no entry there, such as how far roll-ups have come, is of no use elsewhere.
    async for item in _items(store, owner, "journal", epoch):
        with suppress(ValueError):
            entry = JournalEntry.from_json(item.value)
            said = [_plain(message.to_json()) for message in entry.messages]
            yield _line("journal", _plain({**entry.screened().to_json(), "messages": said}))
    async for item in _items(store, owner, "outbox", epoch):
        with suppress(ValueError):
            yield _line("update", _update(Entry.from_json(item.value)))
    if summaries is not None:
        async for summary in summaries:
            yield _line("summary", summary)


def fact_lines(owner: Owner, facts: Sequence[Fact], seconds: float) -> Iterator[str]:
    """Yield the header, and these facts: an export that an import takes."""
    header = {"format": FORMAT, "schema": SCHEMA, "exported_at": timestamp(seconds), "agent": owner.agent_name}
    yield json.dumps(header, ensure_ascii=False) + "\n"
    for fact in facts:
        yield _line("fact", _plain(to_item(fact)))


def _update(entry: Entry) -> Json:
    return {
        "kind": entry.kind,
        "thread_id": entry.thread_id,
        "created": timestamp(entry.created),
        "state": entry.state,
        "error": entry.error,
        "model": entry.model,
        "edited_away": list(entry.edited_away),
        "messages": [_plain(message.to_json()) for message in entry.messages],
    }


async def _items(store: BaseStore, owner: Owner, kind: Kind, epoch: str) -> AsyncIterator[Item]:
    pages = Pages(owner.namespace(kind))
    while page := await arun(store, pages.next()):
        for item in page:
            if belongs(item.value, epoch):
                yield item


def _plain(item: Json) -> Json:
    return {name: value for name, value in item.items() if name not in _INNER}


def _line(part: str, entry: Json) -> str:
    return json.dumps({part: entry}, ensure_ascii=False) + "\n"
