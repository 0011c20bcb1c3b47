"""Palimpsest's graphs: the chat graph, its events and its streams."""

from graphs.deployment import Deployment, configured_service, service_of_process
from graphs.events import aemit, emit, memory_event_schemas
from graphs.memory_tools import memory_tools
from graphs.middleware import MemoryContext, PalimpsestMemory, PalimpsestState, PalimpsestSummary
from graphs.models import load_chat_model
from graphs.persistence import open_checkpointer, open_store
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
from graphs.turn.context import Context

# isort: split
# Last: it builds the graph, with the tools of a deployment whose module imports the names above.
from graphs.chat import build_graph

__all__ = [
    "TOOLS",
    "Context",
    "Deployment",
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
    "memory_event_schemas",
    "memory_tools",
    "open_checkpointer",
    "open_store",
    "pair_run_events",
    "server_modes",
    "service_of_process",
    "stream_events",
    "stream_run_events",
    "stream_transformers",
]
