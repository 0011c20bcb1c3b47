"""Every event of a run with the checkpoint it belongs to: in process and through the SDK."""

from graphs.streaming.envelopes import Checkpoint, StreamEvent, StreamMode
from graphs.streaming.process import stream_events

__all__ = ["Checkpoint", "StreamEvent", "StreamMode", "stream_events"]
