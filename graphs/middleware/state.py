"""What the middleware keeps in an agent's state, and what a run of the agent may choose."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired, Required, cast

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AnyMessage
from langgraph.types import Overwrite
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from graphs.turn.run import Thread
from graphs.turn.state import MEMORY_KEY, MemoryState, MessagesChannel, State, SummaryChannel
from memory.context.running_summary import state_of
from memory.message import as_messages, without_made
from memory.turn import MemoryMode
from memory.updates.unwritten import HAS_UNWRITTEN

SUMMARY_KEY = "palimpsest_summary"
ASKED_KEY = "palimpsest_asked"


class AgentMemory(MemoryState, total=False):
    """What one `PalimpsestMemory` keeps of a thread: ids and counts, never a text."""

    mode: MemoryMode | None
    """What memory may do in the turn: a later middleware may remove the message that says so. `None` if unreadable."""


def _newest(_: str, asked: str) -> str:
    """Return what one of several instances writes at once: they agree."""
    return asked


class MemoryKeys(AgentState[Any]):
    """What `PalimpsestMemory` adds to a state."""

    palimpsest_memory: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    """What each instance keeps, an `AgentMemory` by its name; and whether one of them has unwritten turns."""
    palimpsest_asked: NotRequired[Annotated[str, PrivateStateAttr, _newest]]
    """Id of the newest question that the model has answered, were it with calls of tools."""


class SummaryKeys(AgentState[Any]):
    """What `PalimpsestSummary` adds to a state."""

    palimpsest_summary: NotRequired[Annotated[dict[str, Any], SummaryChannel, PrivateStateAttr]]
    """The `RunningSummary`, under `running_summary`; what is known of a summary that failed."""


class PalimpsestState(AgentState[Any]):
    """An agent's state whose messages are checkpointed as what each step added, not whole in every checkpoint.

    Pass it as `state_schema`: the channel of `messages` is the caller's, no middleware can set it.
    """

    messages: Required[Annotated[list[AnyMessage], MessagesChannel()]]


@dataclass(kw_only=True, frozen=True, config=ConfigDict(extra="ignore"))
class MemoryContext:
    """What one run, or an assistant, may choose of its memory; what it does not name is the middleware's choice."""

    memory_mode: Annotated[
        MemoryMode | None,
        Field(
            description="normal: memory is used and learns. read_only: used, nothing is learned. incognito: neither. "
            "It can only be stricter than the agent's own."
        ),
    ] = None
    memory_tokens: Annotated[
        int | None, Field(ge=0, description="Tokens of the memory block at most. 0: inject nothing.")
    ] = None
    time_zone: Annotated[
        str | None, Field(max_length=64, description="Time zone of a user who has set none, for example Europe/Oslo.")
    ] = None


def thread_in(
    state: Mapping[str, Any], memory: MemoryState | None = None, *, messages: Sequence[AnyMessage] | None = None
) -> Thread:
    """Return the thread of an agent's state.

    Args:
        state: The agent's state.
        memory: What the instance that asks keeps of it, which is not given what programs wrote in somebody's place.
            `None` for who keeps nothing, and is given all messages.
        messages: Other messages than those of the state.
    """
    said: list[Any] = [*(state.get("messages") or ())] if messages is None else [*messages]
    if memory is not None:
        said = without_made(as_messages(said))
    context = state_of(state.get(SUMMARY_KEY))
    return Thread(State(messages=said, summarized_messages=[], context=context, memory=memory or {}))


def with_ids(state: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the state with an id for each message, and the update that writes them down; that is empty if all had one.

    The channel of deepagents keeps messages as they come, a tuple or a text without an id.
    """
    messages = as_messages(state["messages"])
    had_ids = messages == state["messages"]
    return {**state, "messages": messages}, {} if had_ids else {"messages": Overwrite(messages)}


def kept_by(name: str, state: Mapping[str, Any]) -> AgentMemory:
    """Return what the instance of this name keeps; empty in a first turn, or where somebody wrote something else."""
    kept = state_of(state_of(state.get(MEMORY_KEY)).get(name))
    return cast("AgentMemory", kept)


def with_kept(name: str, state: Mapping[str, Any], kept: AgentMemory) -> dict[str, object]:
    """Return the update that keeps this for the instance of this name, and what others keep."""
    instances = {**state_of(state.get(MEMORY_KEY)), name: kept}
    has_unwritten = any(state_of(one).get(HAS_UNWRITTEN) for one in instances.values())
    # Beside the instances, as a server's search of threads has to know the whole way to it, and not their names.
    marked = {key: value for key, value in instances.items() if key != HAS_UNWRITTEN}
    return {MEMORY_KEY: {**marked, HAS_UNWRITTEN: True} if has_unwritten else marked}
