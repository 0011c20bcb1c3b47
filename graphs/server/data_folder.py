"""The files of a running server that somebody moved, deleted or replaced: what it writes then is lost with its end.

SQLite goes on with a file that has no name any more, as if nothing had happened.
"""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from graphs.server.this_machine import is_in_process

logger = logging.getLogger(__name__)

_GONE = "the server's data folder was moved, deleted or replaced: put it back, or restart the server"


class DataIsThere:
    """Answers 503 while a file that this server has open is not where it was; the log says so once.

    Args:
        app: What answers everything else.
        files: The files; one that is not there at the first request is not the server's.
    """

    def __init__(self, app: ASGIApp, *, files: Sequence[Path]) -> None:
        self._app, self._files = app, files
        self._first: list[object] | None = None
        self._is_gone = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the server's own calls are left alone."""
        if self._files and scope["type"] == "http" and not is_in_process(scope):
            now = await asyncio.to_thread(lambda: [_identity(path) for path in self._files])
            self._first = self._first or now
            is_gone = any(one and one != other for one, other in zip(self._first, now, strict=True))
            if is_gone != self._is_gone:
                self._is_gone = is_gone
                if is_gone:
                    logger.error(_GONE)
                else:
                    logger.warning("the server's data folder is there again")
            if is_gone:
                await JSONResponse({"detail": _GONE}, 503)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _identity(path: Path) -> object:
    """Return what tells a file from another one in its place; `None` where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
