"""The run that a node was called in: whose it is, what was chosen for it, and what memory may do in it."""

import asyncio
import logging
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph_sdk import get_client

from graphs.identity import as_server, known_as, owner_of_run, vouched_in
from graphs.models import fit_to_profile, profile, resolve
from graphs.settings import Settings
from graphs.synchronous import ThreadedStore
from graphs.turn.context import Context, context_of
from graphs.turn.deadlines import Access, TurnDeadlines
from memory.effects import tolerated
from memory.namespaces import Owner
from memory.text import check_encodable
from memory.turn import MODE_KEY, MemoryMode, effective_mode

logger = logging.getLogger(__name__)

_TOOL_NODE = "tools"
STATELESS = "stateless"
"""The thread of runs that have none: without a checkpointer there is no thread id."""


@dataclass(frozen=True, slots=True)
class Run:
    """What the nodes need to know of the run they work in.

    Attributes:
        context: What was chosen for it, within what its model can bear.
        model: The name of its chat model: the deployment's, where the context names none.
        owner: Whose memory it may use; `None` without an identity, then the turn goes on without memory.
        store: Where memory is kept, if there is one.
        thread_id: The thread.
        user_id: Who the server says the user is; `None` where nobody logs in.
        on_server: Whether a server carries it out, and so has the last word on its mode.
        calls_tools: Whether the model may be told of tools.
        portion_tokens: Tokens of messages that one summary call reads; `None`: all that is new, and the summary.
        asked: Id of the user message that the turn answers.
        known_as: What the server calls the user; empty where it does not.
        is_below: Whether another graph runs it: then an agent may speak in a person's place, under its name.
    """

    context: Context
    model: str
    owner: Owner | None
    store: BaseStore | None
    thread_id: str
    user_id: str | None = None
    on_server: bool = False
    calls_tools: bool = True
    portion_tokens: int | None = None
    asked: str = ""
    known_as: str = ""
    is_below: bool = False

    @property
    def thread(self) -> Hashable:
        """What names the thread among all of this process."""
        return thread_key(self.store, self.user_id, self.owner, self.thread_id)

    @property
    def turn(self) -> Hashable:
        """What names the turn among all of this process."""
        return self.thread, self.asked

    @classmethod
    def of(
        cls,
        config: RunnableConfig,
        runtime: Runtime[Context] | ToolRuntime[Any, Any],
        settings: Settings,
        asked: str = "",
    ) -> Self:
        """Return the run that a node was called in.

        Raises:
            ValueError: If its thread's id cannot be stored.
        """
        context = context_of(runtime.context)
        limits = profile(context.model, settings)
        configurable = config.get("configurable", {})
        thread_id = str(configurable.get("thread_id") or STATELESS)
        # Here, as every store and saver would refuse it later, each in its own words.
        check_encodable("thread_id", thread_id)
        return cls(
            model=resolve(context.model, settings),
            context=fit_to_profile(context, limits),
            owner=owner_of_run(configurable, context.agent_name, single_user=settings.single_user),
            store=runtime.store,
            thread_id=thread_id,
            user_id=(user_id := vouched_in(configurable)),
            on_server=runtime.server_info is not None,
            calls_tools=limits is None or limits.calls_tools,
            portion_tokens=limits.summary_portion_tokens if limits else None,
            asked=asked,
            known_as=known_as(configurable) or user_id or "",
            is_below="|" in str(configurable.get("checkpoint_ns")),
        )


def thread_key(store: BaseStore | None, user_id: str | None, owner: Owner | None, thread_id: str) -> Hashable:
    """Return what names a thread among all of this process."""
    return id(store.inner if isinstance(store, ThreadedStore) else store), user_id, owner, thread_id


async def mode_of_run(config: RunnableConfig, chosen: MemoryMode, *, on_server: bool) -> MemoryMode:
    """Return the mode of the run in progress; that the user has paused learning is seen where memory is read.

    Below another agent's tool it learns nothing: what stands there in a person's place was written by a model.

    Args:
        config: The run's configuration.
        chosen: What the run's context says: the assistant's choice, or the run's own.
        on_server: Whether a server runs the graph (`runtime.server_info` is set); then its rows of the assistant
            and the thread are read. If they cannot be read, the mode is `incognito`: the turn goes on without memory.
    """
    configurable = config.get("configurable") or {}
    below = "read_only" if _is_below_tools(configurable) else None
    said = (chosen, (config.get("metadata") or {}).get(MODE_KEY), below)
    if not on_server:
        return effective_mode(*said)
    with tolerated(logger, "the modes of assistant and thread cannot be read, incognito"):
        return effective_mode(*said, *await as_server(_declared_on_server(configurable)))
    return "incognito"


def _is_below_tools(configurable: Mapping[str, object]) -> bool:
    """Say whether another agent's tool called this one, as deepagents calls its subagents."""
    above, _, _ = str(configurable.get("checkpoint_ns") or "").rpartition("|")
    # Compiled with `checkpointer=True`, a graph below it has the names of the nodes alone.
    is_called = any(part.partition(":")[0] == _TOOL_NODE for part in above.split("|"))
    return is_called or configurable.get("ls_agent_type") == "subagent"


async def mode_in_time(run: Run, deadlines: TurnDeadlines, access: Access) -> MemoryMode:
    """Return the mode of a run; `TimeoutError` if that takes longer than its turn may wait."""
    async with deadlines.within(run.turn, access):
        return await mode_of_run(get_config(), run.context.memory_mode, on_server=run.on_server)


async def _declared_on_server(configurable: Mapping[str, object]) -> Iterable[object]:
    """Read what the assistant's and the thread's rows declare."""
    client = get_client()
    assistant, threads = await asyncio.gather(
        client.assistants.get(str(configurable["assistant_id"])),
        client.threads.search(ids=[str(configurable["thread_id"])], select=["thread_id", "metadata"], limit=1),
    )
    chosen = assistant.get("context") or assistant["config"].get("configurable") or {}
    declared = [chosen.get(MODE_KEY), (assistant.get("metadata") or {}).get(MODE_KEY)]
    return declared + [(thread.get("metadata") or {}).get(MODE_KEY) for thread in threads]
