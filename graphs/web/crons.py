"""The crons of a user, through the server's own API: their text is the user's, and they go on running.

As in `graphs.web.threads`, a call within the server carries no caller: every function looks at the owner itself.
"""

import itertools
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from langgraph_sdk import get_client
from langgraph_sdk.schema import Cron

from graphs.delayed_runs import OWNER_KEY
from graphs.identity import as_server

Json = Mapping[str, object]

_PAGE = 100


class Crons(Protocol):
    """What the memory API needs of a server's crons."""

    def all_of(self, user_id: str) -> AsyncIterator[tuple[str, Json]]:
        """Yield the id of each of the user's crons, and what its runs are given."""

    async def delete(self, cron_id: str) -> None:
        """Delete a cron: it runs no more."""


@dataclass(frozen=True, slots=True)
class ServerCrons:
    """The crons of the server that this process is.

    Attributes:
        single_user: Whether nobody logs in: then crons have no owner, and all belong to the one user there is.
    """

    single_user: bool

    async def all_of(self, user_id: str) -> AsyncIterator[tuple[str, Json]]:
        """Yield the id of each of the user's crons, and what its runs are given."""
        theirs = None if self.single_user else {OWNER_KEY: user_id}
        crons: list[Cron] = []
        for offset in itertools.count(0, _PAGE):
            page = await as_server(_page(theirs, offset))
            crons += page
            if len(page) < _PAGE:
                break
        for cron in crons:  # after all pages are read: who deletes one must not shift the next page
            owner = (cron.get("metadata") or {}).get(OWNER_KEY)
            if owner == user_id or (self.single_user and owner is None):
                yield str(cron["cron_id"]), {"payload": cron.get("payload"), "metadata": cron.get("metadata")}

    async def delete(self, cron_id: str) -> None:
        """Delete a cron: it runs no more."""
        await as_server(get_client().crons.delete(cron_id))


async def _page(metadata: dict[str, str] | None, offset: int) -> list[Cron]:
    return await get_client().crons.search(
        metadata=metadata, limit=_PAGE, offset=offset, sort_by="created_at", sort_order="asc"
    )
