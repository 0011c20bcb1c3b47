"""Palimpsest's graphs: the chat graph, its events and its streams.

A name is looked up when it is first asked for, so that a command of the command line imports only what it needs.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphs.chat import build_graph
    from graphs.deployment import Deployment, configured_service, service_of_process
    from graphs.embedders import Embedder
    from graphs.events import aemit, emit, memory_event_schemas
    from graphs.middleware import MemoryContext, PalimpsestMemory, PalimpsestState, PalimpsestSummary
    from graphs.models import load_chat_model
    from graphs.persistence.postgres_saver import open_postgres_checkpointer
    from graphs.persistence.postgres_store import open_postgres_store
    from graphs.persistence.sqlite_saver import open_checkpointer
    from graphs.persistence.sqlite_store import open_store
    from graphs.server.api import memory_api
    from graphs.service import MemoryService
    from graphs.settings import Settings
    from graphs.streaming import (
        RunFailed,
        StreamEvent,
        pair_run_events,
        server_modes,
        stream_events,
        stream_run_events,
        stream_transformers,
    )
    from graphs.tools import TOOLS
    from graphs.tools_of_memory import memory_tools
    from graphs.turn.context import Context

__all__ = [
    "TOOLS",
    "Context",
    "Deployment",
    "Embedder",
    "MemoryContext",
    "MemoryService",
    "PalimpsestMemory",
    "PalimpsestState",
    "PalimpsestSummary",
    "RunFailed",
    "Settings",
    "StreamEvent",
    "aemit",
    "build_graph",
    "configured_service",
    "emit",
    "load_chat_model",
    "memory_api",
    "memory_event_schemas",
    "memory_tools",
    "open_checkpointer",
    "open_postgres_checkpointer",
    "open_postgres_store",
    "open_store",
    "pair_run_events",
    "server_modes",
    "service_of_process",
    "stream_events",
    "stream_run_events",
    "stream_transformers",
]

_HOMES = {
    "Context": "graphs.turn.context",
    "Deployment": "graphs.deployment",
    "Embedder": "graphs.embedders",
    "MemoryContext": "graphs.middleware",
    "MemoryService": "graphs.service",
    "PalimpsestMemory": "graphs.middleware",
    "PalimpsestState": "graphs.middleware",
    "PalimpsestSummary": "graphs.middleware",
    "RunFailed": "graphs.streaming",
    "Settings": "graphs.settings",
    "StreamEvent": "graphs.streaming",
    "TOOLS": "graphs.tools",
    "aemit": "graphs.events",
    "build_graph": "graphs.chat",
    "configured_service": "graphs.deployment",
    "emit": "graphs.events",
    "load_chat_model": "graphs.models",
    "memory_api": "graphs.server.api",
    "memory_event_schemas": "graphs.events",
    "memory_tools": "graphs.tools_of_memory",
    "open_checkpointer": "graphs.persistence.sqlite_saver",
    "open_postgres_checkpointer": "graphs.persistence.postgres_saver",
    "open_postgres_store": "graphs.persistence.postgres_store",
    "open_store": "graphs.persistence.sqlite_store",
    "pair_run_events": "graphs.streaming",
    "server_modes": "graphs.streaming",
    "service_of_process": "graphs.deployment",
    "stream_events": "graphs.streaming",
    "stream_run_events": "graphs.streaming",
    "stream_transformers": "graphs.streaming",
}


def __getattr__(name: str) -> object:
    """Return a public name, importing the module that holds it."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
