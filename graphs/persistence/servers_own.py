"""A server that keeps checkpoints and memory itself: ours step aside, though the configuration names them.

`langgraph dev` keeps them in its memory, so that ours are wanted there. Every other server (LangGraph's platform, or
one that takes its place) has a database of its own, with tables of the same names.
"""

import importlib
import logging
from types import ModuleType
from typing import Any, Final

logger = logging.getLogger(__name__)

_CHECKPOINTER: Final = ("langgraph_api._checkpointer._adapter", "CUSTOM_CHECKPOINTER", "get_checkpointer")
_STORE: Final = ("langgraph_api.store", "CUSTOM_STORE", "get_store")


async def checkpointer_of_server() -> Any:
    """Return the checkpointer that the server would have used if none had been named, and have it used from now on."""
    return await _own(*_CHECKPOINTER)


async def running_checkpointer() -> Any:
    """Return the checkpointer that the server uses."""
    module_name, _, get = _CHECKPOINTER
    return await getattr(importlib.import_module(module_name), get)()


async def store_of_server() -> Any:
    """Return the store that the server would have used if none had been named, and have it used from now on."""
    return await _own(*_STORE)


async def _own(module_name: str, named: str, get: str) -> Any:
    module: ModuleType = importlib.import_module(module_name)
    if not hasattr(module, named):  # another version of the server: say so, rather than write beside its own tables
        raise RuntimeError(
            f"this server keeps its own checkpoints and memory, and its {module_name} has no {named} that ours could "
            "step aside by: take `checkpointer` and `store` out of its configuration"
        )
    # The server asks for what was named once, and then wraps what it was given: without it, it takes its own as it is.
    setattr(module, named, None)
    logger.info("the server keeps its own: %s is not used", named)
    return await getattr(module, get)()
