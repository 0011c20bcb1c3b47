"""Every event of a run with the checkpoint it belongs to: in process, through the SDK, and in the newest protocol."""

from graphs.streaming.envelopes import Checkpoint, StreamEvent, StreamMode
from graphs.streaming.protocol import stream_transformers
from graphs.streaming.runs import (
    RunFailed,
    pair_run_events,
    server_modes,
    stream_events,
    stream_run_events,
)

__all__ = [
    "Checkpoint",
    "RunFailed",
    "StreamEvent",
    "StreamMode",
    "pair_run_events",
    "server_modes",
    "stream_events",
    "stream_run_events",
    "stream_transformers",
]
