"""The threads of a user, through the server's own API: whose they are, their mode, what a turn was given, deletion.

A call within the server carries no caller, and no rule of `graphs.permissions` holds for it. So every function here
takes the identity and looks at the thread's owner itself.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from langgraph_sdk import get_client
from langgraph_sdk.errors import NotFoundError
from langgraph_sdk.schema import Thread, ThreadSelectField

from graphs.identity import as_server
from graphs.modes import MODE_KEY, MemoryMode
from graphs.permissions import CLOSED_GRAPHS

Json = Mapping[str, Any]

_PAGE = 100
_SELECTED: list[ThreadSelectField] = ["thread_id", "metadata"]


class Threads(Protocol):
    """What the memory API needs of a server's threads; an unknown thread and one of another user look the same."""

    async def metadata(self, user_id: str, thread_id: str) -> Json | None:
        """Return the metadata of a user's thread, or `None`."""

    async def set_mode(self, thread_id: str, mode: MemoryMode) -> None:
        """Write the mode into the metadata of a thread."""

    async def memory_of_turn(self, thread_id: str, checkpoint_id: str | None) -> Json:
        """Return what memory put into the state of a turn; empty if the checkpoint is unknown."""

    async def delete(self, thread_id: str) -> None:
        """Stop what runs in a thread, then delete its checkpoints and its row."""

    def all_of(self, user_id: str) -> AsyncIterator[str]:
        """Yield the ids of the user's threads."""


@dataclass(frozen=True, slots=True)
class ServerThreads:
    """The threads of the server that this process is.

    Attributes:
        single_user: Whether nobody logs in: then threads have no owner, and all belong to the one user there is.
    """

    single_user: bool

    async def metadata(self, user_id: str, thread_id: str) -> Json | None:
        """Return the metadata of a user's thread, or `None`."""
        found = await as_server(get_client().threads.search(ids=[thread_id], select=_SELECTED, limit=1))
        return (found[0].get("metadata") or {}) if found and self._belongs(found[0], user_id) else None

    async def set_mode(self, thread_id: str, mode: MemoryMode) -> None:
        """Write the mode into the metadata of a thread."""
        await as_server(get_client().threads.update(thread_id, metadata={MODE_KEY: mode}))

    async def memory_of_turn(self, thread_id: str, checkpoint_id: str | None) -> Json:
        """Return what memory put into the state of a turn; empty if the checkpoint is unknown."""
        try:
            state = await as_server(get_client().threads.get_state(thread_id, checkpoint_id=checkpoint_id))
        except NotFoundError:
            return {}
        values = state["values"]
        memory = values.get("memory") if isinstance(values, dict) else None
        return memory if isinstance(memory, dict) else {}

    async def delete(self, thread_id: str) -> None:
        """Stop what runs in a thread, then delete its checkpoints and its row."""
        await as_server(_stop_and_delete(thread_id))

    async def all_of(self, user_id: str) -> AsyncIterator[str]:
        """Yield the ids of the user's threads."""
        offset = 0
        while True:
            found = await as_server(self._page(user_id, offset))
            for thread in found:
                if self._belongs(thread, user_id):
                    yield str(thread["thread_id"])
            if len(found) < _PAGE:
                return
            offset += _PAGE

    async def _page(self, user_id: str, offset: int) -> list[Thread]:
        owned = None if self.single_user else {"owner": user_id}
        return await get_client().threads.search(
            metadata=owned, select=_SELECTED, limit=_PAGE, offset=offset, sort_by="created_at", sort_order="asc"
        )

    def _belongs(self, thread: Thread, user_id: str) -> bool:
        metadata = thread.get("metadata") or {}
        if not self.single_user or "owner" in metadata:
            return bool(metadata.get("owner") == user_id)
        return metadata.get("graph_id") not in CLOSED_GRAPHS


async def _stop_and_delete(thread_id: str) -> None:
    client = get_client()
    for status in ("pending", "running"):
        for run in await client.runs.list(thread_id, status=status, limit=_PAGE):
            await client.runs.cancel(thread_id, run["run_id"], wait=True)
    await client.threads.delete(thread_id)
