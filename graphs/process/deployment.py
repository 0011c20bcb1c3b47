"""What a deployment brings along: its own model, tools and update service, for everything in a process.

`PALIMPSEST_DEPLOYMENT=module:name` names a `Deployment`. The chat graph, the HTTP app and the
SQLite persistence all use it, and `langgraph.json` stays as it is; see `examples/own_model.py`.
"""

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.tools import BaseTool

from graphs.process.models import load_chat_model
from graphs.process.service import MemoryService
from graphs.settings import Settings, imported
from graphs.tools import TOOLS


def configured_service(settings: Settings) -> MemoryService:
    """Return a service whose models are those that the settings, and the assistants, name."""
    return MemoryService(settings, lambda name, purpose: load_chat_model(name, settings, purpose=purpose))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What a deployment brings along; what it does not name stays as it is.

    Attributes:
        tools: What the chat model may call, instead of `graphs.tools.TOOLS`.
        make_service: Returns the process's one service for the settings of the environment; its `load_model` decides
            which model chats, summarizes and extracts. Called once, when the first run or request needs it.
    """

    tools: Sequence[BaseTool | Callable[..., object]] = TOOLS
    make_service: Callable[[Settings], MemoryService] = configured_service


def load_deployment(name: str) -> Deployment:
    """Return the deployment that `module:name` names, or the default one where the name is empty.

    Raises:
        ValueError: If there is none of that name; the message names the variable.
    """
    if not name:
        return Deployment()
    found = imported("PALIMPSEST_DEPLOYMENT", name)
    if not isinstance(found, Deployment):
        raise ValueError(f"PALIMPSEST_DEPLOYMENT: {name} must be a palimpsest.Deployment, not {type(found).__name__}")
    return found


def _made_once(make: Callable[[], MemoryService]) -> Callable[[], MemoryService]:
    """Decorate what makes the one service of a process; a thread that asks meanwhile waits for it."""
    # Reentrant: a `make_service` that asks for the service gets an error, instead of a deadlock.
    making, made = threading.RLock(), functools.cache(make)

    @functools.wraps(make)
    def once() -> MemoryService:
        with making:  # `functools.cache` alone would let two threads that ask at the same time make two
            return made()

    return once


@_made_once
def service_of_process() -> MemoryService:
    """Return the one service that the graphs, the app and the persistence of this process share.

    It is made when it is first needed, not when a module is imported: a server may start in a process that has the
    graph imported already, and only then sets its variant and the variables of its configuration.
    """
    return make_service()


def make_service() -> MemoryService:
    """Return a service by the variables of this process.

    Raises:
        ValueError: If they are wrong; the message names the variable.
    """
    settings = Settings.from_environment()
    service = load_deployment(settings.deployment).make_service(settings)
    if not isinstance(service, MemoryService):
        raise ValueError(
            f"PALIMPSEST_DEPLOYMENT: make_service of {settings.deployment} must return a palimpsest.MemoryService, "
            f"not {type(service).__name__}"
        )
    return service
