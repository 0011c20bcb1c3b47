"""The files of a running server that somebody moved, deleted or replaced: what it writes then is lost with its end.

SQLite goes on with a file that has no name any more, as if nothing had happened.
"""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from graphs.server.asgi import Guard

logger = logging.getLogger(__name__)

_GONE = "the server's data folder was moved, deleted or replaced: put it back, or restart the server"


def data_is_there(files: Sequence[Path]) -> Guard:
    """Return what answers 503 while a file that this server has open is not where it was; the log says so once.

    Args:
        files: The files; one that is not there at the first request is not the server's.
    """
    opened: dict[Path, object] = {}
    is_said = False

    async def guard(_: HTTPConnection) -> ASGIApp | None:
        nonlocal is_said
        if not files:  # in a database: no request waits for a thread that has nothing to look at
            return None
        found = await asyncio.to_thread(lambda: {path: _identity(path) for path in files})
        if not opened:
            opened.update((path, identity) for path, identity in found.items() if identity)
        if all(found[path] == identity for path, identity in opened.items()):
            is_said = False
            return None
        if not is_said:
            logger.error(_GONE)
        is_said = True
        return JSONResponse({"detail": _GONE}, 503)

    return guard


def _identity(path: Path) -> object:
    """Return what tells a file from another one in its place; `None` where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
