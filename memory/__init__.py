"""Three tiers of memory for LangGraph: a thread's budget, a dated journal, and facts about the user."""

from memory import prompts
from memory.config import CATEGORIES, Category, MemoryConfig
from memory.context.running_summary import summarized_ids
from memory.context.summarization import (
    RunningSummary,
    SummarizationNode,
    SummarizationResult,
    asummarize_messages,
    summarize_messages,
)
from memory.context.tokens import acount_tokens, count_tokens
from memory.erase import aerase_thread, erase_thread
from memory.extraction.answer import ExtractionError
from memory.extraction.extraction import aextract_facts, extract_facts
from memory.facts.changes import Extraction
from memory.facts.fact import Fact, FactNotFound, MemoryFull
from memory.facts.store import FactStore
from memory.injection.block import MemoryData, format_memory_for_injection
from memory.queue.update_queue import ConversationContext, MemoryUpdateQueue
from memory.worker.updater import MemoryUpdater

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
