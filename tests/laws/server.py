"""A LangGraph server in small, as a process sees it: who logs in, and its rows of threads by their public routes."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from langgraph.checkpoint.base import BaseCheckpointSaver
from starlette.authentication import AuthCredentials, AuthenticationBackend, BaseUser, SimpleUser
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp


class NamedUser(SimpleUser):
    """A user as the server describes one."""

    @property
    def identity(self) -> str:
        return self.username


class HeaderSays(AuthenticationBackend):
    """Stands in for the server's authentication: the user is who the header `x-test-user` names."""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, BaseUser] | None:
        name = conn.headers.get("x-test-user")
        return None if name is None else (AuthCredentials(), NamedUser(name))


def logging_in(app: ASGIApp) -> ASGIApp:
    """Return an app behind that login."""
    return AuthenticationMiddleware(app, backend=HeaderSays())


class ThreadServer:
    """What a server answers of threads and crons, by the methods of the SDK's client; checkpoints go with their thread.

    Args:
        rows: The metadata of each thread.
        saver: Where the checkpoints are.
    """

    def __init__(self, rows: dict[str, dict[str, Any]], saver: BaseCheckpointSaver[str]) -> None:
        self.rows, self._saver = rows, saver
        self.threads = self.runs = self
        self.crons = _None()

    def client(self) -> Any:
        """Return a client of this server."""
        return self

    async def search(
        self,
        *,
        ids: Sequence[str] | None = None,
        metadata: Mapping[str, str] | None = None,
        limit: int = 10,
        offset: int = 0,
        **_: Any,
    ) -> list[dict[str, Any]]:
        for each in ids or ():
            UUID(each)  # it refuses the whole question for one that is none
        found = [
            {"thread_id": thread_id, "metadata": row}
            for thread_id, row in self.rows.items()
            if (ids is None or thread_id in ids) and (metadata or {}).items() <= row.items()
        ]
        return found[offset : offset + limit]

    async def create(self, *, thread_id: str, metadata: dict[str, str], **_: Any) -> None:
        self.rows.setdefault(thread_id, metadata)

    async def update(self, thread_id: str, *, metadata: dict[str, str]) -> None:
        self.rows[thread_id] = {**self.rows[thread_id], **metadata}

    async def delete(self, thread_id: str) -> None:
        del self.rows[thread_id]
        await self._saver.adelete_thread(thread_id)

    async def get_history(self, *_: Any, **__: Any) -> list[Any]:
        return []

    async def list(self, *_: Any, **__: Any) -> list[Any]:
        return []


class _None:
    """No crons."""

    async def search(self, **_: Any) -> list[Any]:
        return []
