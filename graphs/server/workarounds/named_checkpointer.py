"""A server that keeps checkpoints itself takes those that its configuration names: here, ours step aside.

Seen in langgraph-api 0.16.7, `_checkpointer/_adapter.py`. One configuration is to do for `langgraph dev`, which keeps
checkpoints in its memory, so that ours are wanted there, and for every other server (LangGraph's platform, or one that
takes its place), which has a database of its own, with tables of the same names. It deletes a thread's row before its
checkpoints, and may be killed in between: `delete_at_server` does the rest.

What would mend it: a `checkpointer` in the configuration that may say `None`. This file goes then, with its calls in
`graphs/persistence` and `graphs/server`; `tests/unit/test_servers_own.py` fails when the server has another shape.
"""

import importlib
import logging
from types import ModuleType
from typing import Any, Final

from langgraph.checkpoint.base import BaseCheckpointSaver

logger = logging.getLogger(__name__)

_CHECKPOINTER: Final = ("langgraph_api._checkpointer._adapter", "CUSTOM_CHECKPOINTER", "get_checkpointer")


async def checkpointer_of_server() -> Any:
    """Return the checkpointer that the server would have used if none had been named, and have it used from now on."""
    module_name, named, get = _CHECKPOINTER
    module: ModuleType = importlib.import_module(module_name)
    if not hasattr(module, named):  # another version of the server: say so, rather than write beside its own tables
        raise RuntimeError(
            f"this server keeps its own checkpoints, and its {module_name} has no {named} that ours could step aside "
            "by: take `checkpointer` out of its configuration"
        )
    # The server asks for what was named once, and then wraps what it was given: without it, it takes its own as it is.
    setattr(module, named, None)
    logger.info("the server keeps its own: %s is not used", named)
    return await getattr(module, get)()


async def delete_at_server(thread_id: str) -> None:
    """Delete all checkpoints of a thread that the server keeps itself."""
    module_name, _, get = _CHECKPOINTER
    saver: BaseCheckpointSaver[Any] = await getattr(importlib.import_module(module_name), get)()
    await saver.adelete_thread(thread_id)
