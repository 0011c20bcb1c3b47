"""One run of the chat graph: what was chosen for it, whose memory it may use, and where that is."""

from dataclasses import dataclass
from typing import Self

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from graphs.context import Context
from graphs.identity import authenticated_user, owner_of_run
from graphs.models import fit_to_profile, profile
from graphs.settings import Settings
from memory.namespaces import Owner
from memory.text import check_encodable

STATELESS = "stateless"
"""The thread of runs that have none: without a checkpointer there is no thread id."""


@dataclass(frozen=True, slots=True)
class Run:
    """What the nodes need to know of the run they work in.

    Attributes:
        context: What was chosen for it, within what its model can bear.
        owner: Whose memory it may use; `None` without an identity, then the turn goes on without memory.
        store: Where memory is kept, if there is one.
        thread_id: The thread.
        user_id: Who the server says the user is; `None` where nobody logs in.
        on_server: Whether a server carries it out, and so has the last word on its mode.
    """

    context: Context
    owner: Owner | None
    store: BaseStore | None
    thread_id: str
    user_id: str | None = None
    on_server: bool = False

    @classmethod
    def of(cls, config: RunnableConfig, runtime: Runtime[Context], settings: Settings) -> Self:
        """Return the run that a node was called in.

        Raises:
            ValueError: If its thread's id cannot be stored.
        """
        # In process there is no context unless the caller passes one; a server always makes it.
        context = runtime.context or Context()
        configurable = config.get("configurable", {})
        thread_id = str(configurable.get("thread_id") or STATELESS)
        check_encodable("thread_id", thread_id)
        return cls(
            context=fit_to_profile(context, profile(context.model, settings)),
            owner=owner_of_run(configurable, context.agent_name, single_user=settings.single_user),
            store=runtime.store,
            thread_id=thread_id,
            user_id=authenticated_user(configurable.get("langgraph_auth_user_id")),
            on_server=runtime.server_info is not None,
        )
