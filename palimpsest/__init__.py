"""Palimpsest's public door: every name that a program may import, from one place.

Its rooms are the packages `memory` and `graphs`, installed beside this one. A name is looked up when it is first asked
for: who wants a `FactStore` does not wait for the graphs, and the module of a `Deployment`, which is imported while
the chat graph is being built, finds what it needs.
"""

import importlib
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphs import (
        TOOLS,
        Context,
        Deployment,
        Embedder,
        MemoryContext,
        MemoryService,
        PalimpsestMemory,
        PalimpsestState,
        PalimpsestSummary,
        RunFailed,
        Settings,
        StreamEvent,
        aemit,
        build_graph,
        configured_service,
        emit,
        load_chat_model,
        memory_api,
        memory_event_schemas,
        memory_tools,
        open_checkpointer,
        open_postgres_checkpointer,
        open_postgres_store,
        open_store,
        pair_run_events,
        server_modes,
        service_of_process,
        stream_events,
        stream_run_events,
        stream_transformers,
    )
    from memory import (
        CATEGORIES,
        Category,
        ConversationContext,
        Extraction,
        ExtractionError,
        Fact,
        FactNotFound,
        FactStore,
        MemoryConfig,
        MemoryData,
        MemoryFull,
        MemoryUpdateQueue,
        MemoryUpdater,
        RunningSummary,
        SummarizationNode,
        SummarizationResult,
        acount_tokens,
        aerase_thread,
        aextract_facts,
        asummarize_messages,
        count_tokens,
        erase_thread,
        extract_facts,
        format_memory_for_injection,
        prompts,
        summarize_messages,
        summarized_ids,
    )

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
        # `memory` first: it never imports `graphs`. Not by `room.__all__`: while a deployment's module is imported,
        # `graphs` has come as far as the names that such a module needs.
        for room in map(importlib.import_module, _ROOMS):
            if hasattr(room, name):
                return getattr(room, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, for editors and the shell."""
    return sorted(__all__)
