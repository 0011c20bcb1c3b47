"""The channel of a thread's summary: whatever a checkpointer hands back, the state holds a `RunningSummary`."""

from collections.abc import Mapping
from typing import Any, Self

from langgraph.channels import LastValue

from memory.context.running_summary import rehydrate

_KEY = "running_summary"


class SummaryChannel(LastValue[Any]):
    """The last value of `context`; its summary is rebuilt when a checkpoint is read.

    In strict mode LangGraph's own serializer hands back a mapping, and so does a server that reads a thread for a
    client: with the ids as they are stored, deflated, which nobody could read.
    """

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return the channel with what a checkpoint holds."""
        if isinstance(checkpoint, Mapping) and isinstance(checkpoint.get(_KEY), Mapping):
            checkpoint = {**checkpoint, _KEY: rehydrate(checkpoint[_KEY]) or checkpoint[_KEY]}
        return super().from_checkpoint(checkpoint)
