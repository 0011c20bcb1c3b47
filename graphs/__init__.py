"""Palimpsest's graphs: the chat graph, its events and its streams."""

from graphs.chat import build_graph
from graphs.events import aemit, emit
from graphs.streaming import stream_events

__all__ = ["aemit", "build_graph", "emit", "stream_events"]
