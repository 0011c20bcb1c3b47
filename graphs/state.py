"""What callers may send, and what the nodes share."""

from collections.abc import Mapping
from typing import Annotated, cast

from langchain_core.messages import AnyMessage, HumanMessage
from typing_extensions import TypedDict

from graphs.below_another_graph import SummaryLost
from graphs.message_channel import messages_channel
from graphs.summary_channel import SummaryChannel
from graphs.without_memory import WithoutMemory
from memory.context.summarization import RunningSummary


class InputState(TypedDict):
    """All that a caller sends."""

    messages: Annotated[list[AnyMessage], messages_channel()]
    """The thread's new messages."""


class Delta(TypedDict):
    """What was recalled for one user message, by reference: the texts are rendered from the store."""

    message_id: str
    facts: list[list[str | int]]
    """`[fact id, revision]` each."""


class Receipt(TypedDict, total=False):
    """What memory did in a turn."""

    asked: str
    """Id of the user message that the turn answers."""
    facts: list[str]
    """Ids of the facts in the prompt."""
    tokens: dict[str, int]
    """Tokens of each part of the prompt, as in `graphs.events.TokenParts`."""
    messages_budget: int
    """Tokens that messages and their summary may have."""
    updates: list[dict[str, object]]
    """What updates did since the turn before: facts created, confirmed, superseded, refused; source messages."""
    without_memory: WithoutMemory
    """Why memory was not used or learned nothing for good; absent where it works as it was chosen to."""
    summary_lost: SummaryLost
    """Why the next turn will not have this turn's summary; absent where it will."""
    queued: str | None
    """Key of the pending update that this turn was written down as."""


class MemoryState(TypedDict, total=False):
    """What memory put before the model, as ids and counts; never a text, so that an erased fact is gone at once."""

    basis: list[list[str | int]]
    """`[fact id, revision]` of each fact in the memory block, in its order."""
    deltas: list[Delta]
    """What was recalled since the basis was chosen."""
    since: float
    """When the basis was chosen, seconds since the epoch."""
    at: float
    """When the prompt was last built, seconds since the epoch."""
    epoch: str
    """The user's epoch when the turn began."""
    thread_epoch: str
    """The thread's epoch when the turn began."""
    learn_from: str
    """The first message of the thread that no erase came after; empty if there was none."""
    edit: str
    """The mark of the user's newest edit by hand when the turn began; what is said after it may change what it says."""
    receipt: Receipt
    """What memory did in the latest turn."""


class State(InputState):
    """What the nodes share; `graphs.chat` says who writes what."""

    summarized_messages: Annotated[list[AnyMessage], messages_channel()]
    """What the model sees of the conversation: the summary, then the messages after it."""
    context: Annotated[dict[str, RunningSummary | str | dict[str, object]], SummaryChannel]
    """The `RunningSummary`, under `running_summary`; what `SummarizationNode` says of a failure."""
    memory: MemoryState
    """What memory put before the model."""


def asked_in(state: State) -> str:
    """Return the id of the newest user message; empty if there is none."""
    return next((str(one.id) for one in reversed(state["messages"]) if isinstance(one, HumanMessage)), "")


def memory_of(state: State) -> MemoryState:
    """Return what memory put before the model; empty in a first turn, or where a client wrote something else."""
    memory: object = state.get("memory")
    return cast("MemoryState", memory) if isinstance(memory, Mapping) else MemoryState()


def receipt_of(state: State) -> Receipt:
    """Return what memory did in the latest turn; empty where `memory_of` is."""
    receipt: object = memory_of(state).get("receipt")
    return cast("Receipt", receipt) if isinstance(receipt, Mapping) else Receipt()
