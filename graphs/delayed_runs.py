"""The trigger of deployments with several workers: one delayed run of the memory graph for each owner."""

import math
import uuid

from langgraph_sdk.client import LangGraphClient

from memory.namespaces import Owner

MEMORY_GRAPH = "memory"
_THREADS = uuid.uuid5(uuid.NAMESPACE_URL, "https://palimpsest.invalid/memory-thread")


def memory_thread_id(owner: Owner) -> str:
    """Return the thread on which the memory graph works for an owner: never the thread of a chat."""
    return str(uuid.uuid5(_THREADS, owner.due_key))


async def put_off_drain(client: LangGraphClient, owner: Owner, delay: float) -> None:
    """Have the owner drained in `delay` seconds, in place of a run that waits; one that already runs is followed.

    A drain that is replaced while it runs would never finish under steady traffic.
    """
    thread_id = memory_thread_id(owner)
    await client.threads.create(thread_id=thread_id, if_exists="do_nothing")
    running = await client.runs.list(thread_id, status="running", limit=1)
    await client.runs.create(
        thread_id,
        MEMORY_GRAPH,
        input={"drain": owner.due_key},
        stream_mode=["values", "custom"],  # `memory.updated`, for clients that join the thread's stream
        after_seconds=math.ceil(delay),
        multitask_strategy="enqueue" if running else "rollback",
    )
