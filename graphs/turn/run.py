"""The run that a node was called in: whose it is, what was chosen for it, and where its state is kept."""

import asyncio
import functools
import logging
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

from langchain_core.runnables import RunnableConfig
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph_sdk import get_client

from graphs.process.identity import as_server, known_as, owner_of_run, vouched_in
from graphs.process.models import ModelProfile, fit_to_profile, profile
from graphs.process.synchronous import ThreadedStore
from graphs.settings import Settings
from graphs.turn.context import Context, context_of
from memory.door import tolerated
from memory.namespaces import Owner
from memory.text import check_encodable
from memory.turn import MODE_KEY, MemoryMode, effective_mode

logger = logging.getLogger(__name__)

_TOOL_NODE = "tools"
STATELESS = "stateless"
"""The thread of runs that have none: without a checkpointer there is no thread id."""

SummaryLost = Literal["below_another_graph"]


@dataclass(frozen=True)
class Run:
    """What nodes and middleware need to know of the run they work in.

    Attributes:
        config: The node's own, in which LangGraph names thread and checkpointer, and where below other graphs it is.
        context: What was chosen for it, within what its model can bear.
        owner: Whose memory it may use; `None` without an identity, then the turn goes on without memory.
        store: Where memory is kept, if there is one.
        limits: What its model can bear, where that is less than usual.
        on_server: Whether a server carries it out, and so has the last word on its mode.

    Raises:
        ValueError: If its thread's id cannot be stored.
    """

    config: RunnableConfig
    context: Context
    owner: Owner | None
    store: BaseStore | None
    limits: ModelProfile | None = None
    on_server: bool = False

    def __post_init__(self) -> None:
        # Here, as every store and saver would refuse it later, each in its own words.
        check_encodable("thread_id", self.thread_id)

    @classmethod
    def of(cls, config: RunnableConfig, runtime: Runtime[Any] | ToolRuntime[Any, Any], settings: Settings) -> Self:
        """Return the run that a node of the chat graph, or one of its tools, was called in."""
        context = context_of(runtime.context)
        limits = profile(context.model, settings)
        configurable = config.get("configurable", {})
        return cls(
            config=config,
            context=fit_to_profile(context, limits),
            owner=owner_of_run(configurable, context.agent_name, single_user=settings.single_user),
            store=runtime.store,
            limits=limits,
            on_server=runtime.server_info is not None,
        )

    @cached_property
    def _configurable(self) -> Mapping[str, Any]:
        return self.config.get("configurable", {})

    @cached_property
    def place(self) -> tuple[BaseStore, Owner] | None:
        """Where memory is, and whose; `None` for a run that has none."""
        return (self.store, self.owner) if self.store is not None and self.owner is not None else None

    @cached_property
    def thread_id(self) -> str:
        """The thread."""
        return str(self._configurable.get("thread_id") or STATELESS)

    @property
    def thread(self) -> Hashable:
        """What names the thread among all of this process."""
        store = self.store.inner if isinstance(self.store, ThreadedStore) else self.store
        return id(store), vouched_in(self._configurable), self.owner, self.thread_id

    @property
    def is_below(self) -> bool:
        """Whether another graph runs it: then an agent may speak in a person's place, under its name."""
        return "|" in str(self._configurable.get("checkpoint_ns"))

    @property
    def known_as(self) -> str:
        """What the server calls the user; empty where it does not."""
        return known_as(self._configurable) or vouched_in(self._configurable) or ""

    async def mode(self) -> MemoryMode:
        """Return what memory may do: the strictest that is declared, by whomever.

        Below another agent's tool nothing is learned: what stands there in a person's place was written by a model. On
        a server its rows of the assistant and the thread are read. If they cannot be, the turn goes on without memory.
        That the user has paused learning is seen where memory is read.
        """
        declared = [self.context.memory_mode, (self.config.get("metadata") or {}).get(MODE_KEY)]
        if _is_below_tools(self._configurable):
            declared.append("read_only")
        if not self.on_server:
            return effective_mode(*declared)
        with tolerated(logger, "the modes of assistant and thread cannot be read, incognito"):
            return effective_mode(*declared, *await as_server(_declared_on_server(self._configurable)))
        return "incognito"


def is_kept(config: RunnableConfig) -> bool:
    """Say whether the state that a node leaves is there in the thread's next turn."""
    return bool(config.get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER)) and not summary_lost(config)


def summary_lost(config: RunnableConfig) -> SummaryLost | None:
    """Return why the next turn of a thread will not have this turn's summary; `None` where it will, or has no thread.

    LangGraph keeps the state of a graph below another one under the ids of the tasks above, which are new each turn;
    compiled with `checkpointer=True`, under the names of the nodes alone.
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


def _is_below_tools(configurable: Mapping[str, object]) -> bool:
    """Say whether another agent's tool called this one, as deepagents calls its subagents."""
    above, _, _ = str(configurable.get("checkpoint_ns") or "").rpartition("|")
    # Compiled with `checkpointer=True`, a graph below it has the names of the nodes alone.
    is_called = any(part.partition(":")[0] == _TOOL_NODE for part in above.split("|"))
    return is_called or configurable.get("ls_agent_type") == "subagent"


async def _declared_on_server(configurable: Mapping[str, Any]) -> Iterable[object]:
    """Read what the assistant's and the thread's rows declare."""
    client = get_client()
    assistant, threads = await asyncio.gather(
        client.assistants.get(str(configurable["assistant_id"])),
        client.threads.search(ids=[str(configurable["thread_id"])], select=["thread_id", "metadata"], limit=1),
    )
    chosen = assistant.get("context") or assistant["config"].get("configurable") or {}
    said = [chosen, *(each.get("metadata") or {} for each in (assistant, *threads))]
    return [each.get(MODE_KEY) for each in said]
