"""What callers may send, what the nodes share, and what a turn says when it goes without memory or summary."""

import functools
import logging
from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import Topic
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.types import Command
from typing_extensions import TypedDict

from graphs.turn.channels import MessagesChannel, SummaryChannel
from memory.context.summarization import RunningSummary

logger = logging.getLogger(__name__)

WithoutMemory = Literal["no_identity", "no_store", "switched_off", "incognito", "not_used", "unreadable", "store_away"]

MEMORY_KEY = "palimpsest_memory"
"""Where the state of an agent keeps what middleware put before its model."""

SENTENCES: dict[WithoutMemory, str] = {
    "no_identity": "the server names no user: nobody logs in, and PALIMPSEST_SINGLE_USER is not true",
    "no_store": "there is no store: compile the graph with one, or name one in the server's configuration",
    "switched_off": "PALIMPSEST_MEMORY is false: nothing is learned",
    "incognito": "the assistant, the thread or the run is incognito",
    "not_used": "the user has switched off that memory is used",
    "unreadable": "the store does not answer; the log says how it failed",
    "store_away": "the store failed or hung just before and is not asked until it answers again",
}

NotWritten = Literal["too_late", "store_away", "failed", "mode_unknown"]
"""Why a turn ended before it was written down: the store took too long, was not asked as it had failed or hung just
before, or failed. The thread's next turn, or the next look at checkpoints, writes it down. With `mode_unknown`, nobody
knows whether it may be learned, so it is not."""


def why_without(
    *,
    has_owner: bool,
    has_store: bool,
    enabled: bool,
    mode: str | None,
    is_read: bool,
    is_away: bool = False,
    is_used: bool = True,
) -> WithoutMemory | None:
    """Return why a turn has no memory or learns nothing for good; `None` where memory works as it was chosen to.

    Args:
        has_owner: Whether the run has a user.
        has_store: Whether it has a store.
        enabled: Whether the deployment learns.
        mode: What memory may do in the turn; `None` if that could not be read.
        is_read: Whether memory was read, or did not have to be.
        is_away: Whether the store is not asked at the moment.
        is_used: Whether the user lets models be shown memory.
    """
    # What a deployment lacks comes before what somebody chose: it is there to be mended.
    if not has_store:
        return "no_store"
    if not has_owner:
        return "no_identity"
    if mode == "incognito":
        return "incognito"
    if mode is None or not is_read:
        return "store_away" if is_away else "unreadable"
    if not is_used:
        return "not_used"
    return None if enabled else "switched_off"


class Warnings:
    """Says each reason once, however many turns have it."""

    def __init__(self) -> None:
        self._said: set[WithoutMemory] = set()

    def say(self, reason: WithoutMemory) -> None:
        """Log the reason the first time."""
        if reason not in self._said:
            self._said.add(reason)
            logger.warning("turns go on without memory (%s): %s", reason, SENTENCES[reason])


SummaryLost = Literal["below_another_graph"]


def summary_lost(config: RunnableConfig) -> SummaryLost | None:
    """Return why the next turn of a thread will not have this turn's summary; `None` where it will, or has no thread.

    LangGraph keeps the state of a graph below another one under the ids of the tasks above, which are new each turn;
    compiled with `checkpointer=True`, under the names of the nodes alone.

    Args:
        config: A node's own, in which LangGraph names the checkpointer, and where below other graphs the node is.
    """
    configurable = config.get("configurable", {})
    above, _, _ = str(configurable.get("checkpoint_ns", "")).rpartition("|")
    return "below_another_graph" if configurable.get(CONFIG_KEY_CHECKPOINTER) and ":" in above else None


@functools.cache
def warn_summary_lost() -> None:
    """Say what to change, once in a process."""
    logger.warning(
        "the chat graph runs below another graph and begins each turn anew: its summary is lost, so that nearly every "
        "turn of a long thread summarizes again; compile it with build_graph().compile(checkpointer=True)"
    )


class InputState(TypedDict):
    """All that a caller sends."""

    messages: Annotated[list[AnyMessage], MessagesChannel()]
    """The thread's new messages."""


class RecalledFacts(TypedDict):
    """What was recalled for one user message, by reference: the texts are rendered from the store."""

    message_id: str
    facts: list[list[str | int]]
    """`[fact id, revision]` each."""


class LeftOutMessages(TypedDict):
    """Messages that were not shown to a model."""

    messages: int
    """How many."""
    ids: list[str]
    """Ids of the newest 32 of them, oldest first."""


class Receipt(TypedDict, total=False):
    """What memory did in a turn."""

    asked: str
    """Id of the user message that the turn answers."""
    facts: list[str]
    """Ids of the facts in the prompt."""
    recalled: list[str]
    """Keys of the journal entries of which the prompt shows lines; absent where there are none."""
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
    left_out: LeftOutMessages
    """What the turn's last model call was not shown for want of room, though no summary stands for it yet."""
    queued: str | None
    """Key of the pending update that this turn was written down as."""
    not_written: NotWritten
    """Why the turn ended before it was written down; absent where it was, or was not to be."""


class MemoryState(TypedDict, total=False):
    """What memory put before the model, as ids and counts; never a text, so that an erased fact is gone at once."""

    # The names are those of stored checkpoints: a new one would lose what a thread's prompt shows.
    basis: list[list[str | int]]
    """`[fact id, revision]` of each fact in the memory block, in its order."""
    deltas: list[RecalledFacts]
    """What was recalled since the block was chosen."""
    since: float
    """When the block was chosen, seconds since the epoch."""
    at: float
    """When the prompt was last built, seconds since the epoch."""
    lines_edit: str
    """The user's newest edit by hand when past turns were chosen; absent where none are shown."""
    epoch: str
    """The user's epoch when the turn began."""
    thread_epoch: str
    """The thread's epoch when the turn began."""
    learn_from: str
    """The first message of the thread that no erase came after; empty if there was none."""
    edit: str
    """The user's newest edit by hand when the turn began; what is said after it may change what it says."""
    speaker: str
    """The name that the user's messages carry; absent where only those without one are theirs."""
    unwritten: list[dict[str, Any]]
    """The thread's turns that are not written down yet (`memory.unwritten.Unwritten`); absent if there are none."""
    has_unwritten: bool
    """Whether there are any, for a server's search of threads; absent if not."""
    receipt: Receipt
    """What memory did in the latest turn."""


class State(InputState):
    """What the nodes share; `graphs.chat` says who writes what."""

    summarized_messages: Annotated[list[AnyMessage], MessagesChannel()]
    """What the model sees of the conversation: the summary, then the messages after it."""
    context: Annotated[dict[str, RunningSummary | str | dict[str, object]], SummaryChannel]
    """The `RunningSummary`, under `running_summary`; what `SummarizationNode` says of a failure."""
    memory: MemoryState
    """What memory put before the model."""


class AfterTools(State):
    """What `summarize` reads beside the state; no client sees it."""

    handoffs: Annotated[list[Command[Any]], Topic(Command)]
    """The hand-offs to a graph above of the calls that ended in the superstep before."""
