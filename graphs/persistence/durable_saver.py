"""What is the same in our checkpointers, wherever they keep what they hold: deletions of threads and of runs."""

from collections.abc import Sequence

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata

from graphs.persistence.deletions import Deletions
from memory.context.running_summary import RunningSummary
from memory.text import check_encodable

CHECKPOINTED_TYPES = ((RunningSummary.__module__, RunningSummary.__qualname__),)
"""Our classes that come back from a checkpoint as themselves; with these named, no unknown class is ever built."""

_KEY = "thread_id, checkpoint_ns, checkpoint_id"
GOING = f"""
    WITH RECURSIVE doomed AS (SELECT {_KEY}, parent_checkpoint_id AS parent FROM checkpoints WHERE {{of_runs}}),
    needed AS (
        SELECT doomed.* FROM checkpoints AS child JOIN doomed ON child.thread_id = doomed.thread_id
            AND child.checkpoint_ns = doomed.checkpoint_ns AND child.parent_checkpoint_id = doomed.checkpoint_id
        WHERE child.checkpoint_id NOT IN (SELECT checkpoint_id FROM doomed)
        UNION SELECT doomed.* FROM needed JOIN doomed ON needed.thread_id = doomed.thread_id
            AND needed.checkpoint_ns = doomed.checkpoint_ns AND needed.parent = doomed.checkpoint_id)
    SELECT {_KEY} FROM doomed EXCEPT SELECT {_KEY} FROM needed ORDER BY 1, 2, 3"""
"""Selects the keys of runs' checkpoints, but for those that another run goes on from: it may be replayed from them."""


class DurableSaver:
    """What is the same in each saver of ours: who deletes a thread does not wait, who uses it afterwards does."""

    _deletions: Deletions

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread, without suspending the caller; an unknown thread is no error.

        Every later call finds it deleted; on disk it is by the time any of them returns that names the thread, or by
        the time the saver is closed. What a run saves that was going on in it is deleted too; a thread that is created
        anew under the id lives.
        """
        check_encodable("thread_id", str(thread_id))
        self._deletions.begin(str(thread_id))

    async def aclose(self) -> None:
        """Carry out the deletions that are under way; to be called before what they delete from is closed."""
        await self._deletions.aclose()

    async def _carried_out(self, config: RunnableConfig | None) -> None:
        """Return when what a config names is deleted, or without a thread in it all that is to be."""
        named = "thread_id" in (config or {}).get("configurable", {})
        await self._deletions.carried_out(*([thread_of(config)] if config and named else []))

    async def _to_copy(self, source_thread_id: str, target_thread_id: str) -> dict[str, str] | None:
        """Return the ids of a thread, as `source`, and of the one that it is copied to, as `target`.

        Returns:
            The ids; `None` if they are the same, so that there is nothing to do.
        """
        names = {"source": str(source_thread_id), "target": str(target_thread_id)}
        for name, thread_id in names.items():
            check_encodable(f"{name}_thread_id", thread_id)
        if names["source"] == names["target"]:
            return None
        await self._deletions.carried_out(*names.values())
        return names

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Refuse: the stock way empties threads whose newest state is replayed from older checkpoints."""
        raise NotImplementedError(
            "aprune is refused: a thread's newest state is replayed from older checkpoints; delete threads that are old"
        )


def thread_of(config: RunnableConfig) -> str:
    """Return the thread that a config names; `ValueError` if nothing could hold its id."""
    thread_id = str(config["configurable"]["thread_id"])
    check_encodable("thread_id", thread_id)
    return thread_id


def user_of(config: RunnableConfig) -> str:
    """Return whose run it is, as the server says; empty where nobody logs in."""
    said = {**config["configurable"], **config.get("metadata", {})}
    return str(said.get("langgraph_auth_user_id") or "")


def may_be_first(metadata: CheckpointMetadata) -> bool:
    """Say whether a checkpoint may be the first of its thread."""
    return metadata.get("step", -1) <= 0


EARLY_SECONDS = 600
"""So long after a task's first writes its thread has a checkpoint, or its process was killed before it saved one."""
