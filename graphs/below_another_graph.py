"""Whether the chat graph keeps its summary from turn to turn where it runs below another graph."""

import functools
import logging
from typing import Literal

from langchain_core.runnables import RunnableConfig
from langgraph.constants import CONFIG_KEY_CHECKPOINTER

logger = logging.getLogger(__name__)

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
def warn() -> None:
    """Say what to change, once in a process."""
    logger.warning(
        "the chat graph runs below another graph and begins each turn anew: its summary is lost, so that nearly every "
        "turn of a long thread summarizes again; compile it with build_graph().compile(checkpointer=True)"
    )
