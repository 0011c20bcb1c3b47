"""Three tiers of memory for LangGraph: a thread's budget, a dated journal, and facts about the user.

A name is looked up when it is first asked for: who wants a setting does not wait for LangGraph.
"""

import importlib
from typing import TYPE_CHECKING

from memory import prompts

if TYPE_CHECKING:
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
    "Category",
    "ConversationContext",
    "Extraction",
    "ExtractionError",
    "Fact",
    "FactNotFound",
    "FactStore",
    "MemoryConfig",
    "MemoryData",
    "MemoryFull",
    "MemoryUpdateQueue",
    "MemoryUpdater",
    "RunningSummary",
    "SummarizationNode",
    "SummarizationResult",
    "acount_tokens",
    "aerase_thread",
    "aextract_facts",
    "asummarize_messages",
    "count_tokens",
    "erase_thread",
    "extract_facts",
    "format_memory_for_injection",
    "prompts",
    "summarize_messages",
    "summarized_ids",
]

_HOMES = {
    "CATEGORIES": "memory.config",
    "Category": "memory.config",
    "ConversationContext": "memory.updates.queue",
    "Extraction": "memory.facts.changes",
    "ExtractionError": "memory.extraction.answer",
    "Fact": "memory.facts.fact",
    "FactNotFound": "memory.facts.fact",
    "FactStore": "memory.facts.store",
    "MemoryConfig": "memory.config",
    "MemoryData": "memory.injection.block",
    "MemoryFull": "memory.facts.fact",
    "MemoryUpdateQueue": "memory.updates.queue",
    "MemoryUpdater": "memory.updates.updater",
    "RunningSummary": "memory.context.running_summary",
    "SummarizationNode": "memory.context.summarization",
    "SummarizationResult": "memory.context.summarizer",
    "acount_tokens": "memory.context.tokens",
    "aerase_thread": "memory.forget.erase",
    "aextract_facts": "memory.extraction.extraction",
    "asummarize_messages": "memory.context.summarization",
    "count_tokens": "memory.context.tokens",
    "erase_thread": "memory.forget.erase",
    "extract_facts": "memory.extraction.extraction",
    "format_memory_for_injection": "memory.injection.block",
    "summarize_messages": "memory.context.summarization",
    "summarized_ids": "memory.context.running_summary",
}


def __getattr__(name: str) -> object:
    """Return a public name, importing the module that holds it."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
