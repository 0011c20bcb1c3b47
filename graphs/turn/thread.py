"""A thread as a node finds it in the state: each part is read once, whatever a client has put there."""

import math
from functools import cached_property
from typing import Any, cast

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import CONFIG_KEY_CHECKPOINTER

from graphs.turn.state import MemoryState, Receipt, State
from memory.context.running_summary import (
    LEFT_OUT,
    REMEMBERED_IDS,
    DividedMessages,
    LeftOut,
    RunningSummary,
    divide,
    rehydrate,
    state_of,
)
from memory.injection.injected import Injected
from memory.turn import TurnEpochs, view_of_thread
from memory.unwritten import Unwritten, unwritten_of
from memory.updates.transcript import ThreadView


class Thread:
    """What a state says of its thread.

    Args:
        state: What a node was called with.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.messages: list[AnyMessage] = state["messages"]

    @cached_property
    def asked(self) -> str:
        """Id of the newest user message; empty if there is none."""
        return next((str(one.id) for one in reversed(self.messages) if isinstance(one, HumanMessage)), "")

    @cached_property
    def memory(self) -> MemoryState:
        """What memory put before the model; empty in a first turn, or where a client wrote something else."""
        return cast("MemoryState", state_of(self.state.get("memory")))

    @cached_property
    def receipt(self) -> Receipt:
        """What memory did in the latest turn; empty where `memory` is."""
        return cast("Receipt", state_of(self.memory.get("receipt")))

    @property
    def began(self) -> float:
        """When the latest turn began, seconds since the epoch; infinite where nobody knows."""
        began: object = self.memory.get("began")
        return began if isinstance(began, int | float) else math.inf

    @cached_property
    def injected(self) -> Injected | None:
        """Which memory the prompt shows; `None` in a first turn."""
        return Injected.from_state(self.memory)

    @cached_property
    def epochs(self) -> TurnEpochs:
        """The epochs under which the turn began."""
        return TurnEpochs.from_state(self.memory)

    @cached_property
    def unwritten(self) -> tuple[Unwritten, ...]:
        """The turns that ended before they were written down, oldest first."""
        return unwritten_of(self.memory.get("unwritten"))

    @cached_property
    def context(self) -> dict[str, Any]:
        """What the context tier keeps: the running summary, and what it is to know of it."""
        return state_of(self.state.get("context"))

    @cached_property
    def running(self) -> RunningSummary | None:
        """The running summary, in whatever form the state holds it."""
        return rehydrate(self.context.get("running_summary"))

    @cached_property
    def divided(self) -> DividedMessages:
        """The messages, parted by what the summary says of them: `live` are those that it does not stand for."""
        return divide(self.messages, self.running)

    @property
    def begins_turn(self) -> bool:
        """Whether a turn begins; after its tools it goes on, with the choices that the state has of it."""
        return not (isinstance(self.messages[-1], ToolMessage) and self.receipt.get("asked") == self.asked)

    @cached_property
    def left_out(self) -> LeftOut:
        """The messages that the model is not shown though no summary stands for them, as `summarize` left it."""
        return LeftOut.from_state(self.context.get(LEFT_OUT))

    @cached_property
    def shown(self) -> tuple[BaseMessage, ...]:
        """The live messages without those that are left out; never without the question, whatever a client removed."""
        left_out = self.left_out.among(self.divided.live) - {self.asked}
        return tuple(message for message in self.divided.live if message.id not in left_out)

    def visible(self) -> tuple[BaseMessage, ...]:
        """Return what the model sees of the conversation, without the summary itself: as `summarize` left it."""
        # Copies, in which a message that is too long is shortened; an edit of the thread writes them anew.
        left = {message.id: message for message in self.state.get("summarized_messages") or ()}
        return tuple(left.get(message.id, message) for message in self.shown)

    def view(self, config: RunnableConfig) -> ThreadView | None:
        """Return the ids that the thread holds, as far as its summary remembers those that it stands for.

        Args:
            config: The node's own.

        Returns:
            `None` where the state is not the thread: without a checkpointer it holds what this one call was given, and
            below another graph, its own part of a thread that several share.
        """
        configurable = config.get("configurable", {})
        if not configurable.get(CONFIG_KEY_CHECKPOINTER) or "|" in str(configurable.get("checkpoint_ns", "")):
            return None
        # A summary remembers only its newest ids: of older messages nobody knows whether they were edited away.
        if self.running is None:
            return view_of_thread(self.messages)
        summarized = self.running.summarized_message_ids
        return view_of_thread(self.messages, summarized, is_complete=len(summarized) < REMEMBERED_IDS)
