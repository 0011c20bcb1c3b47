"""`langgraph dev` deletes the wrong thread's row: here, one deletion after another.

Seen in langgraph-runtime-inmem 0.36.7, `Threads.delete` in `ops.py`, with langgraph-api 0.16.7. It looks for the thread
in the list of all threads and keeps its index, awaits the `adelete_thread` of a custom checkpointer, and then removes
whatever stands at that index. A checkpointer that really waits, for a database or a lock, lets another deletion shorten
the list in between: a row that belongs to somebody else goes, or none (`IndexError: pop index out of range`). The
server's own checkpointer never waits, so that it does not show there.

Threads that nobody deleted answer 404 then, rows of temporary threads stay, and a run whose thread's row is gone hangs
for ever, also after a restart. Each run without a thread deletes a temporary one as it ends, so that a few of them at
once are enough. A stock graph and a stock `AsyncSqliteSaver` show it: of 12 threads that were made beside 40 runs
without a thread, 3 were lost, and 18 that were deleted were left.

Where there is no thread at all, and users log in, the same function fails with `UnboundLocalError`, an answer of 500,
though the thread is only gone already: it checks the owner of a row that it did not find.

What would mend it: `thread_list[:] = [t for t in thread_list if t["thread_id"] != thread_id]`, after the last `await`,
and 404 before the owner is checked. This file goes then, with its call in `graphs/persistence`;
`tests/unit/test_workarounds.py` fails when it is mended.
"""

import functools
import sys
from typing import Any

from memory.door import turns_of

_SECONDS = 600.0


def delete_one_at_a_time() -> None:
    """Have `langgraph dev`, where this process is one, delete one thread after another."""
    ops: Any = sys.modules.get("langgraph_runtime_inmem.ops")
    if ops is None or hasattr(ops.Threads.delete, "__wrapped__"):
        return
    delete = ops.Threads.delete

    @functools.wraps(delete)
    async def in_turn(*args: Any, **options: Any) -> Any:
        async with turns_of(["langgraph_runtime_inmem"], _SECONDS):
            try:
                return await delete(*args, **options)
            except UnboundLocalError as error:
                raise ops.HTTPException(404) from error

    ops.Threads.delete = staticmethod(in_turn)
