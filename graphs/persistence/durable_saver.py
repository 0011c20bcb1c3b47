"""What is the same in our checkpointers, wherever they keep what they hold: deletions, and what of a history may go."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata

from graphs.persistence.deletions import Deletions
from memory.context.running_summary import RunningSummary
from memory.text import check_encodable

CHECKPOINTED_TYPES = ((RunningSummary.__module__, RunningSummary.__qualname__),)
"""Our classes that come back from a checkpoint as themselves; with these named, no unknown class is ever built."""


class CheckpointKey(NamedTuple):
    """One checkpoint's primary key."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str


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


async def removable(
    doomed: set[CheckpointKey],
    children: Callable[[CheckpointKey], Awaitable[Sequence[tuple[str, set[str]]]]],
    stored: Callable[[CheckpointKey], Awaitable[tuple[str | None, set[str]] | None]],
) -> set[CheckpointKey]:
    """Return those of some checkpoints that no surviving delta channel is replayed from.

    Args:
        doomed: Those that are to go.
        children: Returns the ids of a checkpoint's children that have delta channels, each with their names.
        stored: Returns the id of a checkpoint's parent, and the channels whose values it holds; `None` if it is gone.
    """

    async def chain(start: CheckpointKey, channels: set[str]) -> list[CheckpointKey]:
        """Return the checkpoints from `start` up to the one where the last of the channels has a stored value."""
        found: list[CheckpointKey] = []
        following: str | None = start.checkpoint_id
        while channels and following:
            key = start._replace(checkpoint_id=following)
            state = await stored(key)
            if state is None:
                break
            found.append(key)
            following, held = state
            channels = channels.difference(held)
        return found

    spared = [
        ancestor
        for parent in doomed
        for child, channels in await children(parent)
        if parent._replace(checkpoint_id=child) not in doomed
        for ancestor in await chain(parent, channels)
    ]
    return doomed.difference(spared)
