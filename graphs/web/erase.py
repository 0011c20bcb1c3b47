"""Erasing: one fact, everything from one thread, or everything; what was erased does not come back."""

import logging
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from graphs.web.endpoint import Call, Endpoint, Form
from graphs.web.problems import Refused
from memory.core.facts import FactNotFound
from memory.erase import aerase_fact, aerase_thread, aerase_user
from memory.tolerance import tolerated
from memory.updates.outbox import read_owners

logger = logging.getLogger(__name__)

_TRIES = 3


class FactErasure(Form):
    """The fact to erase."""

    fact_id: str = Field(max_length=64)


class ThreadErasure(Form):
    """The thread to erase."""

    thread_id: UUID


class Erasure(Form):
    """Everything, once more in words so that no slip does it."""

    erase: Literal["everything"]


class Erased(BaseModel):
    """What was erased, and what still holds the words."""

    threads: int = Field(description="Threads that were deleted, with their checkpoints and summaries.")
    items: int = Field(description="Items of memory that were deleted.")
    still_in_threads: list[str] = Field(description="Conversations that still hold the words; erase them too.")
    note: str


async def erase_fact(call: Call, wanted: FactErasure) -> Erased:
    """Erase one fact from facts, history, journal and pending updates; the conversation keeps its words."""
    try:
        erased = await aerase_fact(call.store, call.owner, wanted.fact_id, clock=call.service.clock)
    except FactNotFound as unknown:
        raise Refused(404, str(unknown)) from None
    await call.service.empty_logs()
    still = [thread_id for thread_id in sorted(erased.sources) if await _is_there(call, thread_id)]
    note = "The conversations it came from still hold the words: erase them to be rid of them." if still else ""
    return Erased(threads=0, items=len(erased.ids), still_in_threads=still, note=note)


async def _is_there(call: Call, thread_id: str) -> bool:
    return bool(thread_id) and await call.service.threads.metadata(call.user_id, thread_id) is not None


async def erase_thread(call: Call, wanted: ThreadErasure) -> Erased:
    """Erase a thread and all that came from it: facts, journal, pending updates, summaries, checkpoints."""
    thread_id = str(wanted.thread_id)
    there = await _is_there(call, thread_id)
    fed = [owner.segment == call.owner.segment for owner in await call.run(read_owners(thread_id))]
    if not there and not (fed and all(fed)):
        raise Refused(404, "you have no thread with this id")
    items = await aerase_thread(call.store, thread_id, clock=call.service.clock)
    if there:
        await call.service.threads.delete(thread_id)
        items += await aerase_thread(call.store, thread_id, clock=call.service.clock)
    await call.service.empty_logs()
    logger.info("erased a thread: %d items", items)
    return Erased(threads=int(there), items=items, still_in_threads=[], note="")


async def erase_everything(call: Call, _: Erasure) -> Erased:
    """Erase everything that is remembered about you, for every agent, and all your threads."""
    items = await aerase_user(call.store, call.user_id)
    threads = await _delete_threads(call)
    # Once more: a turn that was under way when its thread went may have written its update down in between.
    items += await aerase_user(call.store, call.user_id)
    await call.service.empty_logs()
    left = [thread_id async for thread_id in call.service.threads.all_of(call.user_id)]
    logger.info("erased everything of a user: %d threads, %d items, %d threads left", threads, items, len(left))
    note = "Some threads could not be deleted: ask once more." if left else ""
    return Erased(threads=threads, items=items, still_in_threads=left, note=note)


async def _delete_threads(call: Call) -> int:
    """Delete the user's threads and return how many went; one that a server fails to delete is tried again."""
    deleted: set[str] = set()
    for _ in range(_TRIES):
        for thread_id in [thread_id async for thread_id in call.service.threads.all_of(call.user_id)]:
            with tolerated(logger, "thread %s is not deleted", thread_id):
                await call.service.threads.delete(thread_id)
                deleted.add(thread_id)
    return len(deleted)


ENDPOINTS = (
    Endpoint(
        method="POST", path="/erase/fact", handler=erase_fact, takes=FactErasure, answers=Erased,
        summary="Erase one fact wherever memory holds it", refusals=(404,),
    ),
    Endpoint(
        method="POST", path="/erase/thread", handler=erase_thread, takes=ThreadErasure, answers=Erased,
        summary="Erase a thread and all that came from it", refusals=(404,),
    ),
    Endpoint(
        method="POST", path="/erase/everything", handler=erase_everything, takes=Erasure, answers=Erased,
        summary="Erase everything",
    ),
)  # fmt: skip
