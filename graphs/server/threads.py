"""The threads and crons of a user, through the server's own API."""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from uuid import UUID

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError

from graphs.process.identity import OWNER_KEY, as_server

Json = Mapping[str, object]

T = TypeVar("T")

logger = logging.getLogger(__name__)

_PAGE = 100
_CANCEL_SECONDS = 5.0
_GONE = (NotFoundError, ConflictError)  # a run has ended, or somebody else has deleted the thread


async def all_pages(page_at: Callable[[int], Coroutine[object, object, Sequence[T]]], size: int) -> AsyncIterator[T]:
    """Yield what all pages of a list of the server hold.

    Args:
        page_at: Asks for the page at an offset.
        size: How much a full page holds; the first that is not full is the last.
    """
    for offset in itertools.count(0, size):
        page = await as_server(page_at(offset))
        for each in page:
            yield each
        if len(page) < size:
            return


async def rows_of(client: LangGraphClient, thread_ids: Iterable[str]) -> dict[str, Json]:
    """Return the metadata of those of the threads that the server has, whoever's they are, by their ids."""
    # Searched, not read: an unknown id is no error then, and the values stay where they are.
    rows, ids = dict[str, Json](), [*thread_ids]
    for at in range(0, len(ids), _PAGE):
        some = ids[at : at + _PAGE]
        found = await as_server(client.threads.search(ids=some, select=["thread_id", "metadata"], limit=len(some)))
        rows |= {str(row["thread_id"]): row.get("metadata") or {} for row in found}
    return rows


def may_have_row(thread_id: str) -> bool:
    """Say whether a server may have a row of a thread: it names each by a UUID, and knows it by no other spelling.

    In the same files a program may name its threads as it likes. A server that is asked for such an id among others
    refuses them all.
    """
    with suppress(ValueError):
        return str(UUID(thread_id)) == thread_id
    return False


class ServerThreads:
    """What users have made on the server that this process is; what is unknown and what is another's look the same.

    Args:
        single_user: Whether nobody logs in: then nothing has an owner, and all belongs to the one user there is.
        client: Returns a client of the server.
    """

    def __init__(self, single_user: bool, client: Callable[[], LangGraphClient] = get_client) -> None:
        self._single_user, self._client = single_user, client

    async def all_of(self, user_id: str) -> list[str]:
        """Return the ids of the user's threads."""
        found = await self._owned(user_id, self._client().threads.search, select=["thread_id", "metadata"])
        return [str(thread["thread_id"]) for thread in found]

    async def crons_of(self, user_id: str) -> dict[str, Json]:
        """Return what the runs of each of the user's crons are given, by its id."""
        found = await self._owned(user_id, self._client().crons.search)
        return {str(each["cron_id"]): {name: each.get(name) for name in ("payload", "metadata")} for each in found}

    async def _owned(self, user_id: str, search: Callable[..., Coroutine[Any, Any, Any]], **options: Any) -> list[Any]:
        """Return what of a kind a user has, the oldest first: what is made meanwhile does not shift a page."""
        options |= {"metadata": None if self._single_user else {OWNER_KEY: user_id}, "limit": _PAGE}
        options |= {"sort_by": "created_at", "sort_order": "asc"}
        # All pages are read before who asked deletes one, which would shift the next page.
        pages = all_pages(lambda offset: search(offset=offset, **options), _PAGE)
        return [each async for each in pages if self._belongs(each.get("metadata"), user_id)]

    def _belongs(self, metadata: Json | None, user_id: str) -> bool:
        owner = (metadata or {}).get(OWNER_KEY)
        return owner == user_id or (self._single_user and not owner)

    async def metadata(self, user_id: str, thread_id: str) -> Json | None:
        """Return the metadata of a user's thread, or `None`."""
        found = (await rows_of(self._client(), [thread_id])).get(thread_id)
        return found if found is not None and self._belongs(found, user_id) else None

    async def revive(self, user_id: str, thread_ids: Iterable[str]) -> None:
        """Give those of the threads a row again that have none, so that they can be deleted."""
        # An id that is there already may be another user's: only what the server has not is made.
        ids, metadata = [*filter(may_have_row, thread_ids)], {} if self._single_user else {OWNER_KEY: user_id}
        rows, threads = await rows_of(self._client(), ids), self._client().threads
        for thread_id in (each for each in ids if each not in rows):
            await as_server(threads.create(thread_id=thread_id, metadata=metadata, if_exists="do_nothing"))

    async def delete(self, thread_id: str) -> None:
        """Stop what runs in a thread, then delete its checkpoints and its row."""
        await as_server(_stop_and_delete(self._client(), thread_id))

    async def delete_cron(self, cron_id: str) -> None:
        """Delete a cron: it runs no more."""
        await as_server(self._client().crons.delete(cron_id))


async def _stop_and_delete(client: LangGraphClient, thread_id: str) -> None:
    with suppress(*_GONE):
        # A run that is under way would write its checkpoints after the deletion.
        for status in ("pending", "running"):
            for run in await client.runs.list(thread_id, status=status, limit=_PAGE):
                with suppress(*_GONE):
                    try:
                        async with asyncio.timeout(_CANCEL_SECONDS):
                            await client.runs.cancel(thread_id, run["run_id"], wait=True)
                    except TimeoutError:
                        logger.warning("a run could not be stopped before its thread is deleted")
        await client.threads.delete(thread_id)
