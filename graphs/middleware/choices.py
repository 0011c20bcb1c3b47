"""Whose memory a run of an agent uses, and what was chosen for it: by the agent's author, and by whoever runs it."""

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from langchain.tools import ToolRuntime
from langgraph.runtime import Runtime

from graphs.identity import owner_of_run
from graphs.turn.context import Context
from memory.effects import tolerated
from memory.namespaces import Owner
from memory.turn import effective_mode

User = str | Callable[[Any], str | None] | None
"""Whose memory it is: an id, what returns one for a runtime (a tool's too), or `None`: whom the server vouches for."""

logger = logging.getLogger(__name__)


class Choices:
    """What the author of an agent chose.

    Args:
        user: Whose memory it is.
        context: The other choices.

    Raises:
        ValueError: If the user is blank, a number, or a coroutine function.
    """

    def __init__(self, user: User, context: Context) -> None:
        if isinstance(user, str) and not user.strip():
            raise ValueError("user must not be blank: name the user, or None for whom the server vouches for")
        if not (user is None or isinstance(user, str) or callable(user)):  # as ids of a database's rows are
            raise ValueError(f"user must be text, a function or None, not {type(user).__name__}: pass str({user!r})")
        if inspect.iscoroutinefunction(user):
            raise ValueError("user must be a plain function: it is also called where there is no event loop")
        self._user, self._context = user, context

    def of_run(self, given: object) -> Context:
        """Return the choices for a run: those of its own context, where it has any, come first.

        Raises:
            ValueError: If the run's context has a value that cannot be meant; the message names it.
        """

        # An agent may have a context of its own, a mapping or an object, with fields of these names or without.
        def said(name: str) -> Any:
            return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)

        chosen = {name: value for name in ("memory_tokens", "time_zone") if (value := said(name)) is not None}
        mode = effective_mode(self._context.memory_mode, said("memory_mode"))
        return replace(self._context, memory_mode=mode, **chosen)

    def owner(
        self, runtime: Runtime[Any] | ToolRuntime[Any, Any], configurable: Mapping[str, Any], *, single_user: bool
    ) -> Owner | None:
        """Return whose memory a run uses; `None` without an identity."""
        agent_name = self._context.agent_name
        if self._user is not None:
            # One who cannot be named has no memory: another's would be worse, and a run must not fail for it.
            user: str | None = None
            with tolerated(logger, "nobody can say whose memory a run uses: it goes on without"):
                user = self._user if isinstance(self._user, str) else self._user(runtime)
            return Owner.of(user, agent_name) if isinstance(user, str) and user.strip() else None
        return owner_of_run(configurable, agent_name, single_user=single_user)
