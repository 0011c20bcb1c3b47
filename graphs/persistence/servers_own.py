"""A server that keeps checkpoints itself: ours step aside, though the configuration names them.

`langgraph dev` keeps them in its memory, so that ours are wanted there. Every other server (LangGraph's platform, or
one that takes its place) has a database of its own, with tables of the same names. It deletes a thread's row before its
checkpoints, and may be killed in between.
"""

import importlib
import logging
from collections.abc import Collection
from importlib.util import find_spec
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


async def threads_at_server(uri: str, user_ids: Collection[str]) -> list[str]:
    """Return the ids of the threads in which nobody but these users has saved; no user is the empty id.

    What the checkpoints hold is read through the server, which may encrypt them. Whose they are, where no row says it,
    no server can be asked for. Where its database cannot be read, or its tables are others than LangGraph's, there are
    none, and the log says what is not found for it.

    Args:
        uri: The server's Postgres; empty where it has none that is known here.
        user_ids: The users.
    """
    if not uri or not all(map(find_spec, ("psycopg", "langgraph.checkpoint.postgres"))):
        why = "it takes DATABASE_URI, and palimpsest-memory[postgres] beside the server"
    else:
        from psycopg import Error

        from graphs.persistence.postgres_saver import checkpoints_at

        try:
            return await checkpoints_at(uri).threads_of(user_ids)
        except Error as error:
            why = f"the server's database cannot be read ({type(error).__name__})"
    logger.warning("checkpoints whose thread has no row any more are not looked for, nor erased: %s", why)
    return []
