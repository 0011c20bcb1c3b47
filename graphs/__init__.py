"""Palimpsest's graphs: the chat graph, its events and its streams."""

from graphs.deployment import Deployment
from graphs.events import aemit, emit
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.streaming import stream_events

# isort: split
# Last: it builds the graph, with the tools of a deployment whose module imports the names above.
from graphs.chat import build_graph

__all__ = ["Deployment", "MemoryService", "Settings", "aemit", "build_graph", "emit", "stream_events"]
