"""Palimpsest's public door: every name that a program may import, from one place.

Its rooms are the packages `memory` and `graphs`, installed beside this one. A name is looked up when it is first asked
for: who wants a `FactStore` does not wait for the graphs, and the module of a `Deployment`, which is imported while
the chat graph is being built, finds what it needs.
"""

import importlib
import importlib.util
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphs.chat import build_graph
    from graphs.middleware import (
        FlushingSummarization,
        MemoryContext,
        PalimpsestMemory,
        PalimpsestState,
        PalimpsestSummary,
    )
    from graphs.persistence.postgres_saver import open_postgres_checkpointer
    from graphs.persistence.postgres_store import open_postgres_store
    from graphs.persistence.sqlite_saver import open_checkpointer
    from graphs.persistence.sqlite_store import open_store
    from graphs.process.deployment import Deployment, configured_service, service_of_process
    from graphs.process.embedders import Embedder
    from graphs.process.events import aemit, emit, memory_event_schemas
    from graphs.process.models import load_chat_model
    from graphs.process.service import MemoryService
    from graphs.server.api import memory_api
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
    from memory import prompts
    from memory.config import CATEGORIES, Category, MemoryConfig
    from memory.context.running_summary import RunningSummary, summarized_ids
    from memory.context.summarization import SummarizationNode, asummarize_messages, summarize_messages
    from memory.context.summarizer import SummarizationResult
    from memory.context.tokens import acount_tokens, count_tokens
    from memory.extraction.answer import ExtractionError
    from memory.extraction.extraction import aextract_facts, extract_facts
    from memory.facts.changes import Extraction
    from memory.facts.fact import Fact, FactNotFound, MemoryFull
    from memory.facts.store import FactStore
    from memory.forget.erase import aerase_thread, erase_thread
    from memory.injection.block import MemoryData, format_memory_for_injection
    from memory.updates.queue import ConversationContext, MemoryUpdateQueue
    from memory.updates.updater import MemoryUpdater

__all__ = [
    "CATEGORIES",
    "TOOLS",
    "Category",
    "Context",
    "ConversationContext",
    "Deployment",
    "Embedder",
    "Extraction",
    "ExtractionError",
    "Fact",
    "FactNotFound",
    "FactStore",
    "FlushingSummarization",
    "MemoryConfig",
    "MemoryContext",
    "MemoryData",
    "MemoryFull",
    "MemoryService",
    "MemoryUpdateQueue",
    "MemoryUpdater",
    "PalimpsestMemory",
    "PalimpsestState",
    "PalimpsestSummary",
    "RunFailed",
    "RunningSummary",
    "Settings",
    "StreamEvent",
    "SummarizationNode",
    "SummarizationResult",
    "acount_tokens",
    "aemit",
    "aerase_thread",
    "aextract_facts",
    "asummarize_messages",
    "build_graph",
    "configured_service",
    "count_tokens",
    "emit",
    "erase_thread",
    "extract_facts",
    "format_memory_for_injection",
    "load_chat_model",
    "memory_api",
    "memory_event_schemas",
    "memory_tools",
    "open_checkpointer",
    "open_postgres_checkpointer",
    "open_postgres_store",
    "open_store",
    "pair_run_events",
    "prompts",
    "server_modes",
    "service_of_process",
    "stream_events",
    "stream_run_events",
    "stream_transformers",
    "summarize_messages",
    "summarized_ids",
]

_ROOMS = ("memory", "graphs")
_HOMES: Mapping[str, Sequence[str]] = {
    "graphs.chat": ("build_graph",),
    "graphs.process.deployment": ("Deployment", "configured_service", "service_of_process"),
    "graphs.process.embedders": ("Embedder",),
    "graphs.process.events": ("aemit", "emit", "memory_event_schemas"),
    "graphs.middleware": (
        "FlushingSummarization",
        "MemoryContext",
        "PalimpsestMemory",
        "PalimpsestState",
        "PalimpsestSummary",
    ),
    "graphs.process.models": ("load_chat_model",),
    "graphs.persistence.postgres_saver": ("open_postgres_checkpointer",),
    "graphs.persistence.postgres_store": ("open_postgres_store",),
    "graphs.persistence.sqlite_saver": ("open_checkpointer",),
    "graphs.persistence.sqlite_store": ("open_store",),
    "graphs.server.api": ("memory_api",),
    "graphs.process.service": ("MemoryService",),
    "graphs.settings": ("Settings",),
    "graphs.streaming": (
        "RunFailed",
        "StreamEvent",
        "pair_run_events",
        "server_modes",
        "stream_events",
        "stream_run_events",
        "stream_transformers",
    ),
    "graphs.tools": ("TOOLS",),
    "graphs.tools_of_memory": ("memory_tools",),
    "graphs.turn.context": ("Context",),
    "memory": ("prompts",),
    "memory.config": ("CATEGORIES", "Category", "MemoryConfig"),
    "memory.context.running_summary": ("RunningSummary", "summarized_ids"),
    "memory.context.summarization": ("SummarizationNode", "asummarize_messages", "summarize_messages"),
    "memory.context.summarizer": ("SummarizationResult",),
    "memory.context.tokens": ("acount_tokens", "count_tokens"),
    "memory.extraction.answer": ("ExtractionError",),
    "memory.extraction.extraction": ("aextract_facts", "extract_facts"),
    "memory.facts.changes": ("Extraction",),
    "memory.facts.fact": ("Fact", "FactNotFound", "MemoryFull"),
    "memory.facts.store": ("FactStore",),
    "memory.forget.erase": ("aerase_thread", "erase_thread"),
    "memory.injection.block": ("MemoryData", "format_memory_for_injection"),
    "memory.updates.queue": ("ConversationContext", "MemoryUpdateQueue"),
    "memory.updates.updater": ("MemoryUpdater",),
}


def check_rooms() -> None:
    """Raise `ImportError` if Python finds another `memory` or `graphs` than ours, as in a project that has one."""
    for room in _ROOMS:
        spec = importlib.util.find_spec(room)
        found = spec.origin if spec and spec.origin else ""
        ours = Path(__file__).parents[1] / room / "__init__.py"
        if found and os.path.realpath(found) != os.path.realpath(ours):
            other = found.removesuffix(f"{os.sep}__init__.py")
            raise ImportError(
                f"palimpsest needs its own package {room!r} in {ours.parent}, but Python finds {other} first: rename "
                f"that one, or move it into a package of your own (yourapp/{room})"
            )


def __getattr__(name: str) -> object:
    """Return a public name, importing the room that holds it."""
    if name in __all__:
        check_rooms()
        home = next(module for module, names in _HOMES.items() if name in names)
        return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, for editors and the shell."""
    return sorted(__all__)
