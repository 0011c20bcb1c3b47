"""Erasing: one fact, everything from one thread, or everything; what was erased does not come back."""

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Literal
from uuid import UUID

from pydantic import Field

from graphs.persistence import checkpointed_threads, leave_no_bytes
from graphs.process.identity import LOCAL_USER
from graphs.server.api.guard import RefusedRequest
from graphs.server.api.routing import AgentCall, ApiModel, Call, MemoryRouter, StrictModel
from graphs.server.threads import may_have_row
from memory.backfill import source
from memory.door import tolerated
from memory.facts.chain import Chain
from memory.facts.rows import read_fact_set
from memory.forget import erase
from memory.forget.erase import aerase_thread, threads_feeding, threads_telling
from memory.updates.outbox import read_owners

logger = logging.getLogger(__name__)

router = MemoryRouter()

# Before each try: a deletion may fail, and is answered before it is on disk.
_PAUSES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)


class FactErasure(StrictModel):
    """The fact to erase."""

    fact_id: str = Field(max_length=64)


class ThreadErasure(StrictModel):
    """The thread to erase."""

    thread_id: UUID


class SourceErasure(StrictModel):
    """What to take back, by its name, as GET /memory/sources lists it."""

    source: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")


class Erasure(StrictModel):
    """Everything; the word is asked for, so that no slip erases."""

    erase: Literal["everything"]


class Erased(ApiModel):
    """What was erased, and what still holds the words."""

    items: int
    """Items of memory that were deleted; of one fact, it and those of its chain."""
    threads: int = 0
    """Threads that were deleted, with their checkpoints and summaries."""
    crons: int = 0
    """Crons that were deleted."""
    facts_kept: int = 0
    """Of an import: facts that other conversations said too, or that you changed or pinned."""
    facts_restored: int = 0
    """Facts that the import had replaced, and that are there again."""
    still_in_threads: list[str] = Field(default=[])
    """Conversations that still hold the words; erase them too."""
    still_in_crons: list[str] = Field(default=[])
    """Crons that still hold the words, and run on."""
    note: str = ""


@router.answers("POST /erase/fact", 404)
async def erase_fact(call: AgentCall, wanted: FactErasure) -> Erased:
    """Erase one fact, what it corrected and what corrected it; conversations and crons keep their words."""
    there = (await call.run(read_fact_set(call.owner))).chain_with(wanted.fact_id)
    telling = await call.run(threads_telling(call.owner, there))  # while the journal has the words
    chain = await call.run(erase.erase_fact(call.owner, wanted.fact_id, call.now))
    call.service.forget(call.owner.segment)
    return await _told_to_all(call, telling, chain, Erased(items=len(chain.ids)))


@router.answers("POST /erase/source", 404)
async def erase_source(call: AgentCall, wanted: SourceErasure) -> Erased:
    """Take back what was imported under a name: journal, pending updates, and the facts that nothing else supports."""
    done = await call.run(source.erase_source(call.owner, wanted.source, call.now, call.config))
    call.service.forget(call.owner.segment)
    await leave_no_bytes(call.service.settings.data_dir)
    return Erased(items=done.items, facts_kept=done.kept, facts_restored=done.restored)


@router.answers("POST /erase/thread", 404)
async def erase_thread(call: AgentCall, wanted: ThreadErasure) -> Erased:
    """Erase a thread and all that came from it: facts, journal, pending updates, summaries, checkpoints, its crons.

    Conversations and crons that hold the words of its facts are named; what assistants said of them there is not told.
    """
    thread_id, service = str(wanted.thread_id), call.service
    if await service.threads.metadata(call.user_id, thread_id) is None:
        # Without a row, its checkpoints, or memory that it fed, say whose it is.
        fed = [owner.segment == call.owner.segment for owner in await call.run(read_owners(thread_id))]
        if not (fed and all(fed)) and thread_id not in await orphans_of(call):
            raise RefusedRequest(404, "you have no thread with this id")
    said = (await call.run(read_fact_set(call.owner))).first_said_in(thread_id)
    telling = await call.run(threads_telling(call.owner, said)) - {thread_id}  # while the journal has the words
    # Memory first: after a crash in between, whoever asks again still finds the thread.
    items = await aerase_thread(call.store, thread_id, clock=service.clock)
    await service.threads.revive(call.user_id, [thread_id])  # the server deletes only what has a row
    await service.threads.delete(thread_id)
    service.forget(thread_id)
    # Once more: a turn that was under way may have written something down in between.
    items += await aerase_thread(call.store, thread_id, clock=service.clock)
    if telling:  # a summary prepared ahead may hold the words, too
        service.forget(call.owner.segment)
    return await _told_to_all(call, telling, said, Erased(items=items, threads=1))


async def _told_to_all(call: Call, telling: Collection[str], gone: Chain, erased: Erased) -> Erased:
    """Add who still holds the words to what was erased: threads that the user still has, and crons."""
    # What is imported has no thread, and others were deleted.
    there = [*await orphans_of(call), *await call.service.threads.all_of(call.user_id)]  # rows, or checkpoints alone
    still = sorted({*telling}.intersection(there))
    crons = await call.service.threads.crons_of(call.user_id)
    telling_crons = [cron_id for cron_id, given in crons.items() if any(map(gone.is_told_in, _texts_in(given)))]
    await leave_no_bytes(call.service.settings.data_dir)
    note = "These conversations and crons still hold the words: erase or delete them to be rid of them."
    found = {"still_in_threads": still, "still_in_crons": telling_crons, "note": note if still or telling_crons else ""}
    return erased.model_copy(update=found)


def _texts_in(value: object) -> Iterator[str]:
    """Yield every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts_in(each)


async def orphans_of(call: Call) -> list[str]:
    """Return threads of the user that have checkpoints, and may have no row any more."""
    settings = call.service.settings
    # Where nobody logs in, the server writes down no user, or the local one.
    return await checkpointed_threads(settings, ["", LOCAL_USER] if settings.single_user else [call.user_id])


@router.answers("POST /erase/everything")
async def erase_everything(call: AgentCall, _: Erasure) -> Erased:
    """Erase everything that is remembered about you, for every agent, all your threads, and your crons."""
    server, deleted = call.service.threads, set[str]()
    crons = await server.crons_of(call.user_id)
    for cron_id in crons:  # before the threads, so that none starts a run meanwhile
        await server.delete_cron(cron_id)
    fed = await call.run(threads_feeding(call.user_id))
    items = await call.run(erase.erase_user(call.owner, call.now))
    # After a crash a thread may have checkpoints and no row, and the server deletes only what has one.
    await server.revive(call.user_id, {*fed, *await orphans_of(call)})
    left, deletable = set[str](), set[str]()
    for pause in _PAUSES:
        await asyncio.sleep(pause)
        for thread_id in await server.all_of(call.user_id):
            with tolerated(logger, "thread %s is not deleted", thread_id):
                await server.delete(thread_id)
                deleted.add(thread_id)
        rows, orphans = await server.all_of(call.user_id), await orphans_of(call)
        left, deletable = {*rows, *orphans}, {*rows, *filter(may_have_row, orphans)}
        if not deletable:
            break
    # Once more: a turn that was under way when its thread went may have written its update down in between.
    items += await call.run(erase.erase_user(call.owner, call.now))
    call.service.forget(call.owner.segment)
    await leave_no_bytes(call.service.settings.data_dir)
    logger.info("erased everything of a user: threads %d, items %d, threads left %d", len(deleted), items, len(left))
    notes = list[str]()
    if deletable:
        notes.append("Some threads could not be deleted: ask once more.")
    if left - deletable:
        notes.append(
            "The server cannot delete threads that a program named in its own way: delete them with that program."
        )
    note = " ".join(notes)
    return Erased(threads=len(deleted), crons=len(crons), items=items, still_in_threads=sorted(left), note=note)
