"""The same memory for agents that LangChain's `create_agent` or deepagents build: one turn, another door."""

from graphs.middleware.flushing import FlushingSummarization
from graphs.middleware.memory import PalimpsestMemory
from graphs.middleware.state import MemoryContext, PalimpsestState
from graphs.middleware.summary import PalimpsestSummary

__all__ = ["FlushingSummarization", "MemoryContext", "PalimpsestMemory", "PalimpsestState", "PalimpsestSummary"]
