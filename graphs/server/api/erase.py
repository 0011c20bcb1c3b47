"""Erasing: one fact, everything from one thread, or everything; what was erased does not come back."""

import asyncio
import itertools
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from langchain_core.messages import convert_to_messages
from pydantic import BaseModel, Field

from graphs.identity import LOCAL_USER
from graphs.server.api.guard import RefusedRequest
from graphs.server.api.routing import AgentCall, Call, MemoryRouter, StrictModel, refusals
from memory.effects import tolerated
from memory.erase import aerase_fact, aerase_thread, aerase_user, forget_messages, threads_feeding
from memory.facts.chain import Chain
from memory.facts.fact import FactNotFound
from memory.message import StoredMessage, find_gone, to_stored
from memory.outbox.outbox import read_owners

Json = Mapping[str, object]

MAX_MESSAGES = 1_000
"""Of so many messages in conversations, the newest, it is noted that nothing is to be learned or told of them."""


@dataclass(frozen=True, slots=True)
class Traces:
    """What still holds the words.

    Attributes:
        threads: Ids of the conversations.
        crons: Ids of the crons.
        messages: Ids of the messages with the words, and of the replies to them, by thread.
    """

    threads: tuple[str, ...]
    crons: tuple[str, ...]
    messages: Mapping[str, frozenset[str]]


async def traces_of(call: Call, chain: Chain) -> Traces:
    """Look for the words of erased facts in all that the server holds of the user, whatever memory took from it.

    The newest state of each thread is read by the server's API, page by page, all other checkpoints from the SQLite
    file, if that is where they are.
    """
    found, others, messages = set[str](), list[str](), dict[str, frozenset[str]]()
    async for thread_id, state in call.service.threads.states_of(call.user_id):
        gone, is_there = await asyncio.to_thread(_look, chain, thread_id, state)
        if gone:
            messages[thread_id] = gone
        if is_there or thread_id in chain.sources:
            found.add(thread_id)
        else:
            others.append(thread_id)
    others += [each for each in await orphans_of(call) if each not in found]
    found.update(await call.service.checkpoints.holding(others, chain.is_told_in))
    crons = [
        cron_id
        async for cron_id, given in call.service.crons.all_of(call.user_id)
        if any(chain.wording.is_told_in(text) for text in _texts(given))
    ]
    return Traces(tuple(sorted(found)), tuple(crons), _newest(messages))


async def orphans_of(call: Call) -> list[str]:
    """Return threads of the user that have checkpoints, and may have no row any more."""
    users = ["", LOCAL_USER] if call.service.settings.single_user else [call.user_id]
    return await call.service.checkpoints.threads_of(users)


def _look(chain: Chain, thread_id: str, state: Json) -> tuple[frozenset[str], bool]:
    """Return the ids of the messages of a state that go, and whether anything in it holds the words."""
    gone = find_gone([(thread_id, _messages(state))], chain.is_in).get(thread_id, frozenset())
    return gone, bool(gone) or any(chain.is_told_in(thread_id, text) for text in _texts(state))


def _messages(state: Json) -> tuple[StoredMessage, ...]:
    values = state.get("values")
    messages = values.get("messages") if isinstance(values, Mapping) else None
    try:
        return to_stored(convert_to_messages(messages if isinstance(messages, list) else []), "")
    except (ValueError, KeyError, TypeError, NotImplementedError):  # another graph's messages; their texts count
        return ()


def _texts(value: object) -> Iterator[str]:
    """Yield every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from itertools.chain.from_iterable(map(_texts, value.values()))
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(map(_texts, value))


def _newest(messages: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    every = [(thread_id, each) for thread_id, ids in messages.items() for each in sorted(ids)][-MAX_MESSAGES:]
    return {thread_id: frozenset(each for of, each in every if of == thread_id) for thread_id, _ in every}


logger = logging.getLogger(__name__)

router = MemoryRouter()

_TRIES = 3
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)


class FactErasure(StrictModel):
    """The fact to erase."""

    fact_id: str = Field(max_length=64)


class ThreadErasure(StrictModel):
    """The thread to erase."""

    thread_id: UUID


class Erasure(StrictModel):
    """Everything, once more in words so that no slip does it."""

    erase: Literal["everything"]


class Erased(BaseModel):
    """What was erased, and what still holds the words."""

    threads: int = Field(description="Threads that were deleted, with their checkpoints and summaries.")
    crons: int = Field(default=0, description="Crons that were deleted.")
    items: int = Field(description="Items of memory that were deleted; of one fact, it and those of its chain.")
    still_in_threads: list[str] = Field(description="Conversations that still hold the words; erase them too.")
    still_in_crons: list[str] = Field(default=[], description="Crons that still hold the words, and run on.")
    note: str


@router.post("/erase/fact", summary="Erase one fact wherever memory holds it", responses=refusals(404))
async def erase_fact(call: AgentCall, wanted: FactErasure) -> Erased:
    """Erase one fact, what it corrected and what corrected it; conversations and crons keep their words."""
    try:
        chain = await aerase_fact(call.store, call.owner, wanted.fact_id, clock=call.service.clock)
    except FactNotFound as unknown:
        raise RefusedRequest(404, str(unknown)) from None
    traces = await traces_of(call, chain)
    # A later summary takes these messages out of their thread: they must not go into the journal then.
    await call.run(forget_messages(call.owner, traces.messages, chain.ids[-1], call.service.clock()))
    await call.service.empty_logs()
    logger.info(
        "erased a fact and its chain: facts %d, still in threads %d, in crons %d",
        *(len(chain.ids), len(traces.threads), len(traces.crons)),
    )
    holders = {"conversations": traces.threads, "crons": traces.crons}
    still = " and ".join(name for name, ids in holders.items() if ids)
    return Erased(
        threads=0,
        items=len(chain.ids),
        still_in_threads=list(traces.threads),
        still_in_crons=list(traces.crons),
        note=f"These {still} still hold the words: erase or delete them to be rid of them." if still else "",
    )


async def _is_there(call: Call, thread_id: str) -> bool:
    return await call.service.threads.metadata(call.user_id, thread_id) is not None


@router.post("/erase/thread", summary="Erase a thread and all that came from it", responses=refusals(404))
async def erase_thread(call: AgentCall, wanted: ThreadErasure) -> Erased:
    """Erase a thread and all that came from it: facts, journal, pending updates, summaries, checkpoints, its crons."""
    thread_id = str(wanted.thread_id)
    there = await _is_there(call, thread_id)
    if not there and not await _is_orphan(call, thread_id):
        raise RefusedRequest(404, "you have no thread with this id")
    items = await aerase_thread(call.store, thread_id, clock=call.service.clock)
    if not there:
        await call.service.threads.revive(call.user_id, [thread_id])
    await call.service.threads.delete(thread_id)
    items += await aerase_thread(call.store, thread_id, clock=call.service.clock)
    await call.service.empty_logs()
    logger.info("erased a thread: %d items", items)
    return Erased(threads=1, items=items, still_in_threads=[], note="")


async def _is_orphan(call: Call, thread_id: str) -> bool:
    """Say whether a thread without a row is the user's, by whose memory it fed or whose checkpoints it has."""
    fed = [owner.segment == call.owner.segment for owner in await call.run(read_owners(thread_id))]
    return all(fed) if fed else thread_id in await orphans_of(call)


@router.post("/erase/everything", summary="Erase everything")
async def erase_everything(call: AgentCall, _: Erasure) -> Erased:
    """Erase everything that is remembered about you, for every agent, all your threads, and your crons."""
    crons = await _delete_crons(call)
    fed = await call.run(threads_feeding(call.user_id))
    items = await aerase_user(call.store, call.user_id)
    # After a crash a thread may have checkpoints and no row, and the server deletes only what has one.
    await call.service.threads.revive(call.user_id, {*fed, *await orphans_of(call)})
    threads = await _delete_threads(call)
    # Once more: a turn that was under way when its thread went may have written its update down in between.
    items += await aerase_user(call.store, call.user_id)
    on_disk = await _still_on_disk(call)
    await call.service.empty_logs()
    left = {thread_id async for thread_id in call.service.threads.all_of(call.user_id)}.union(on_disk)
    logger.info(
        "erased everything of a user: threads %d, crons %d, items %d, threads left %d",
        *(threads, crons, items, len(left)),
    )
    note = "Some threads could not be deleted: ask once more." if left else ""
    return Erased(threads=threads, crons=crons, items=items, still_in_threads=sorted(left), note=note)


async def _still_on_disk(call: Call) -> list[str]:
    """Return which threads still have checkpoints, after deletions that were answered had time to be carried out."""
    left = await orphans_of(call)
    for pause in _PAUSES:
        if left:
            await asyncio.sleep(pause)
            left = await orphans_of(call)
    return left


async def _delete_crons(call: Call) -> int:
    """Delete the user's crons, before the threads, so that none starts a run meanwhile; return how many."""
    deleted = 0
    async for cron_id, _ in call.service.crons.all_of(call.user_id):
        await call.service.crons.delete(cron_id)
        deleted += 1
    return deleted


async def _delete_threads(call: Call) -> int:
    """Delete the user's threads and return how many went; one that a server fails to delete is tried again."""
    deleted: set[str] = set()
    for _ in range(_TRIES):
        for thread_id in [thread_id async for thread_id in call.service.threads.all_of(call.user_id)]:
            with tolerated(logger, "thread %s is not deleted", thread_id):
                await call.service.threads.delete(thread_id)
                deleted.add(thread_id)
    return len(deleted)
