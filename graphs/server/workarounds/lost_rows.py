"""Threads whose rows `langgraph dev` had not saved yet when it was killed: their rows are made again at start.

It saves rows every ten seconds, and our saver each checkpoint at once (langgraph-runtime-inmem 0.36.7). Whose a thread
is, the server wrote into its checkpoints. What was deleted has none, nor has a run without a thread. A row that was
saved before the first run names no graph, and the server shows no state of its thread: it is completed.

What would mend it: rows that are saved with the checkpoint. This file goes then, with its call in `graphs/server`;
`tests/e2e/test_after_a_crash.py` shows what it is for.
"""

import importlib
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from graphs.process.data_folder import CHECKPOINTS
from graphs.process.identity import OWNER_KEY, SAVED_BY, as_server
from graphs.server.threads import may_have_row, rows_of
from graphs.settings import Settings
from memory.door import tolerated
from memory.turn import MODE_KEY, MODES

logger = logging.getLogger(__name__)

_PAGE = 100

# The key is read alone, without a row, and in the order of writing: a clock may have gone back.
_BEGUN = "SELECT thread_id FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id ORDER BY MIN(rowid) DESC"
_SAID = "SELECT metadata FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns = '' ORDER BY checkpoint_id"


async def give_back(settings: Settings) -> None:
    """Make or complete the rows of threads that were begun just before a crash, with their values.

    Raises:
        Exception: Whatever the file of checkpoints and the server raise.
    """
    from graphs.persistence.sqlite_saver import checkpoints_in  # which a server with a database does not need

    read, client, given = checkpoints_in(settings.data_dir / CHECKPOINTS).read, get_client(), 0
    begun = [thread_id for (thread_id,) in await read(_BEGUN, {}) if may_have_row(thread_id)]
    # The server writes all of its rows at once: no thread begun before one whose row it has was lost.
    for at in range(0, len(begun), _PAGE):
        page, is_any_lost = begun[at : at + _PAGE], False
        rows = await rows_of(client, page)
        for thread_id in (each for each in page if not rows.get(each, {}).get("graph_id")):
            there = rows.get(thread_id)
            with tolerated(logger, "the row of thread %s is not given back", thread_id):
                said = [json.loads(metadata) for (metadata,) in await read(_SAID, {"thread": thread_id})]
                row = row_of(said, settings.single_user)
                # A row that is there stays its owner's, where there are owners.
                if row and (there is None or row.get(OWNER_KEY) in (None, there.get(OWNER_KEY))):
                    is_any_lost = True
                    await as_server(_make_or_complete(client, thread_id, row, is_there=there is not None))
                    given += 1
        if not is_any_lost:
            break
    if given:
        logger.info("%d threads that were begun just before a crash have their rows again", given)


async def _make_or_complete(client: LangGraphClient, thread_id: str, row: dict[str, Any], is_there: bool) -> None:
    if is_there:
        await client.threads.update(thread_id, metadata=row)
    else:
        await client.threads.create(thread_id=thread_id, metadata=row, if_exists="raise")
    # The server gives a row its values as a run ends. A copy of the newest checkpoint would do so, and lose what its
    # tasks wrote: what they ask a person, and what calls beside these have done.
    ops = importlib.import_module("langgraph_runtime_inmem.ops")
    async with importlib.import_module("langgraph_runtime_inmem.database").connect() as connection:
        state = await client.threads.get_state(thread_id)
        await ops.Threads.set_status(connection, UUID(thread_id), state, None)


def row_of(said: Sequence[Mapping[str, Any]], single_user: bool) -> dict[str, Any] | None:
    """Return the metadata of a thread's row; `None` for a thread that is nobody's to see, or maybe another user's.

    Args:
        said: What the server wrote into each of its checkpoints, the oldest first.
        single_user: Whether nobody logs in: then a thread has no owner.
    """
    first, newest = (said[0], said[-1]) if said else ({}, {})
    # Without a user: what the server itself copied.
    users = {str(each.get(SAVED_BY) or "") for each in said} - {""}
    owner = first.get(SAVED_BY)
    if not first.get("graph_id") or users != (set() if single_user else {owner}):
        return None
    row = {key: first[key] for key in ("graph_id", "assistant_id") if first.get(key)}
    if (mode := newest.get(MODE_KEY)) in MODES:
        row[MODE_KEY] = mode
    return row if single_user else {**row, OWNER_KEY: owner}
