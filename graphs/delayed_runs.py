"""The trigger of deployments with several workers: one delayed run of the memory graph for each owner."""

import math
import uuid

from langgraph_sdk.client import LangGraphClient

from memory.namespaces import Owner

MEMORY_GRAPH = "memory"
OWNER_KEY = "owner"
READER_KEY = "reader"
"""In a thread's metadata: who may do anything with it, and who may only look at it and join its runs."""
_THREADS = uuid.uuid5(uuid.NAMESPACE_URL, "https://palimpsest.invalid/memory-thread")


def memory_thread_id(owner: Owner) -> str:
    """Return the thread on which the memory graph works for an owner: never the thread of a chat."""
    return str(uuid.uuid5(_THREADS, owner.due_key))


async def put_off_drain(client: LangGraphClient, owner: Owner, delay: float, reader: str | None = None) -> None:
    """Schedule the run that applies an owner's updates in `delay` seconds.

    It takes the place of one that waits, and comes after one that works: replaced while it works, none would ever
    finish under steady traffic.

    Args:
        client: Calls the server on its own authority.
        owner: Whose memory it is.
        delay: Seconds.
        reader: The authenticated user who may join the run, if there is one.

    Raises:
        PermissionError: If the thread is a client's, who made it under this id.
    """
    thread_id = memory_thread_id(owner)
    metadata = {READER_KEY: reader} if reader else None
    thread = await client.threads.create(thread_id=thread_id, metadata=metadata, if_exists="do_nothing")
    if OWNER_KEY in (thread["metadata"] or {}):
        raise PermissionError(f"the thread {thread_id} was made by a client: no memory run goes there")
    running = await client.runs.list(thread_id, status="running", limit=1)
    await client.runs.create(
        thread_id,
        MEMORY_GRAPH,
        input={"drain": owner.due_key},
        stream_mode=["values", "custom"],  # `memory.updated`, for clients that join the thread's stream
        after_seconds=math.ceil(delay),  # the server takes whole seconds
        multitask_strategy="enqueue" if running else "rollback",
    )
