"""Threads whose rows `langgraph dev` had not saved yet when it was killed: their rows are made again at start.

It saves rows every ten seconds, and our saver each checkpoint at once. Whose a thread is, the server wrote into its
checkpoints. What was deleted has none; a run without a thread says in its own that nobody keeps its thread.
"""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph_sdk import get_client
from starlette.types import ASGIApp, Receive, Scope, Send

from graphs.data_folder import CHECKPOINTS
from graphs.identity import OWNER_KEY, as_server
from graphs.server.asgi import read_request, with_body
from graphs.server.threads import batched
from graphs.settings import Settings
from memory.effects import tolerated
from memory.turn import MODE_KEY, MODES

logger = logging.getLogger(__name__)

_TEMPORARY = "palimpsest_temporary"
_PATH = re.compile(r"(?P<thread>/threads/[^/]+)?/runs(?:/(?:wait|stream|batch))?/?$")
_PAGE = 100
_LATELY = 600.0
"""So long before a crash, at most, were threads begun that the server has not saved: it does so every ten seconds."""


class TemporaryThreads:
    """Notes in the metadata of runs without a thread that the server deletes theirs; the checkpoints keep that.

    Args:
        app: What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = _PATH.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if path is None or path["thread"]:
            await self._app(scope, receive, send)
            return
        read, body = await read_request(receive)
        await self._app(*with_body(scope, receive, read, with_note(body)), send)


def with_note(body: bytes) -> bytes:
    """Return the body of a request for one run or several, with the note in each whose thread nobody keeps."""
    try:
        asked = json.loads(body)
    except ValueError:
        return body
    for run in asked if isinstance(asked, list) else [asked]:
        if isinstance(run, dict) and run.get("on_completion") != "keep":
            metadata = run.get("metadata") or {}
            if isinstance(metadata, dict):  # else the server says what is wrong
                run["metadata"] = {**metadata, _TEMPORARY: True}
    return json.dumps(asked).encode()


async def give_back(settings: Settings) -> int:
    """Make the rows of threads that were begun just before a crash, with their values, and return of how many.

    Raises:
        Exception: Whatever the file of checkpoints and the server raise.
    """
    if not settings.own_url or settings.database_uri:
        return 0  # its rows are in a database, or another server of the same database has them
    from graphs.persistence.sqlite_saver import CheckpointFile  # which a server with a database does not need

    given, begun = 0, await CheckpointFile(settings.data_dir / CHECKPOINTS).begun_lately(_LATELY)
    rows = {thread_id: row_of(said, settings.single_user) for thread_id, said in begun}
    for ids in batched([thread_id for thread_id, row in rows.items() if row], _PAGE):
        threads = get_client().threads
        found = await as_server(threads.search(ids=ids, select=["thread_id"], limit=len(ids)))
        for thread_id in set(ids).difference(str(thread["thread_id"]) for thread in found):
            with tolerated(logger, "the row of thread %s is not given back", thread_id):
                row = rows[thread_id]
                await as_server(threads.create(thread_id=thread_id, metadata=row, if_exists="raise"))
                # It copies the newest checkpoint, and the row has its values then.
                await as_server(threads.update_state(thread_id, None, as_node="__copy__"))
                given += 1
    if given:
        logger.info("%d threads that were begun just before a crash have their rows again", given)
    return given


def row_of(said: Sequence[Mapping[str, Any]], single_user: bool) -> dict[str, Any] | None:
    """Return the metadata of a thread's row; `None` for a thread that is nobody's to see, or maybe another user's.

    Args:
        said: What the server wrote into each of its checkpoints, the oldest first.
        single_user: Whether nobody logs in: then a thread has no owner.
    """
    first, newest = ({**said[0]}, said[-1]) if said else ({}, {})
    # Without a user: what the server itself copied.
    users = {str(each.get("langgraph_auth_user_id") or "") for each in said} - {""}
    owner, graph = first.get("langgraph_auth_user_id") or "", first.get("graph_id")
    is_known = not users if single_user else users == {owner}
    if not is_known or not graph or any(_TEMPORARY in each for each in said):
        return None
    row = {key: first[key] for key in ("graph_id", "assistant_id") if first.get(key)}
    if (mode := newest.get(MODE_KEY)) in MODES:
        row[MODE_KEY] = mode
    return row if single_user else {**row, OWNER_KEY: owner}
