"""What the newest streaming protocol gets from a graph besides `values`, `messages` and `lifecycle`.

A server looks for a function named `stream_transformers` in the module that it loads a graph from; in process,
pass its result as `transformers` to `astream_events(version="v3")`.
"""

from collections.abc import Callable
from typing import Any

from langgraph.stream import (
    CustomTransformer,
    ProtocolEvent,
    StreamChannel,
    StreamTransformer,
    TasksTransformer,
    UpdatesTransformer,
)

from graphs.streaming.envelopes import Checkpoint, envelope

TransformerFactory = Callable[[tuple[str, ...]], StreamTransformer]


def stream_transformers() -> list[TransformerFactory]:
    """Return what adds `updates`, `custom`, `tasks` and `checkpoints` to the protocol's channels."""
    return [UpdatesTransformer, CustomTransformer, TaskChannel, CheckpointEnvelopes]


class TaskChannel(TasksTransformer):
    """Sends the graph's tasks, which LangGraph's own transformer keeps in the process.

    A transformer's channel is always the root's, so a subgraph's tasks are not sent.
    """

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self._log = StreamChannel(None if scope else "tasks")


class CheckpointEnvelopes(StreamTransformer):
    """Sends the light envelope of each checkpoint, and the graph's `values` behind it, as the JavaScript core does.

    LangGraph announces a checkpoint whole, and right after the values that it equals. A transformer may keep,
    change or drop an event and push to channels of its own, which are always the root's; so envelope and values
    change places for the graph itself, while in a subgraph the envelope follows its values.
    """

    # Without it the channel's name in the protocol would begin with `custom:`.
    _native = True
    required_stream_modes = ("checkpoints", "tasks")

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        named = not scope  # the muxes of subgraphs see the same events: only the root's may change them
        self._envelopes: StreamChannel[Checkpoint] = StreamChannel("checkpoints" if named else None)
        self._late_values: StreamChannel[object] = StreamChannel("values" if named else None)
        self._held: Any = None

    def init(self) -> dict[str, object]:
        """Return the channels; in process `run.checkpoints` yields the envelopes."""
        return {"checkpoints": self._envelopes, "late_values": self._late_values}

    def process(self, event: ProtocolEvent) -> bool:
        """Take the next event; a subgraph's passes, with its checkpoint made light."""
        method, params = event["method"], event["params"]
        if self.scope or params["namespace"]:
            if method == "checkpoints" and not self.scope:
                params["data"] = envelope(params["data"])
            return True
        if method == "checkpoints":
            self._envelopes.push(envelope(params["data"]))
            held, self._held = self._held, None
            if held is not None:
                event["method"], event["params"] = "values", held
            return held is not None
        # Tasks follow the checkpoint of their step; where tasks come first, there is none.
        if method in ("tasks", "values"):
            self.finalize()
        # An interrupt repeats the values that its step runs from; no checkpoint follows.
        if method == "values" and not params.get("interrupts"):
            self._held = params
            return False
        return True

    def finalize(self) -> None:
        """Let go of held values that no checkpoint follows: those of an interrupted step, or of a failed run."""
        if self._held is not None:
            self._late_values.push(self._held["data"])
            self._held = None

    def fail(self, err: BaseException) -> None:  # noqa: ARG002 - the base class names it
        """Let go of values whose checkpoint was never announced."""
        self.finalize()
