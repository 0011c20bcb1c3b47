"""Who the user is: what the server says first, what a client says only in single-user development."""

import asyncio
import contextvars
from collections.abc import Coroutine, Mapping
from typing import TypeVar
from uuid import UUID

from langgraph_sdk.errors import APIError, InternalServerError

from memory.namespaces import Owner

T = TypeVar("T")

LOCAL_USER = "local"
OWNER_KEY = "owner"
"""In the metadata of what a user made on a server: who may do anything with it."""
SAVED_BY = "langgraph_auth_user_id"
"""In a run's configurable, and in the metadata of its checkpoints: whose it is, as the server says."""
_USER = "langgraph_auth_user"
STUDIO_USER = "langgraph-studio-user"
"""What the development server calls everyone who comes through Studio: no person, so nobody's memory."""


def owner_of_run(configurable: Mapping[str, object], agent_name: str, *, single_user: bool) -> Owner | None:
    """Return whose memory a run may use, or `None` without an identity: then the turn goes on without memory.

    The server's own word comes first (see `vouched_in`). Without one, `single_user` lets `configurable.user_id` name
    the user, `local` by default.

    Args:
        configurable: The run's `config["configurable"]`.
        agent_name: Agents of one name share what they know about a user.
        single_user: The explicit development switch (`PALIMPSEST_SINGLE_USER`).
    """
    user_id = vouched_in(configurable)
    if user_id is None and single_user:
        # Any client may name anyone here: that is what single-user mode means.
        user_id = authenticated_user(configurable.get("user_id")) or LOCAL_USER
    return None if user_id is None else Owner.of(user_id, agent_name)


def vouched_in(configurable: Mapping[str, object]) -> str | None:
    """Return the identity that the server vouches for in a run's configuration, or `None` without one."""
    user = configurable.get(_USER)
    return authenticated_user(configurable.get(SAVED_BY)) if user is None else vouched(user)


def known_as(configurable: Mapping[str, object]) -> str:
    """Return the name under which the server shows a user; empty if it says none."""
    return str(_said_of(configurable.get(_USER), "display_name") or "")


def vouched(user: object) -> str | None:
    """Return the identity of a user as a server has it, or `None` if it is nobody in particular, or did not log in."""
    is_nobody = user is None or _said_of(user, "is_authenticated") is False
    return None if is_nobody else authenticated_user(_said_of(user, "identity"))


def _said_of(user: object, name: str) -> object:
    return user.get(name) if isinstance(user, Mapping) else getattr(user, name, None)


def authenticated_user(identity: object) -> str | None:
    """Return the identity that the server vouches for, a number as text, or `None` if it names nobody in particular.

    A server without authentication says the empty string, and no server numbers its users from 0.
    """
    is_said = identity and isinstance(identity, str | int | UUID) and not isinstance(identity, bool)
    said = str(identity) if is_said else ""
    return said if said.strip() and said != STUDIO_USER else None


async def as_server(call: Coroutine[object, object, T]) -> T:
    """Await a call to the server's own API (`get_client()` without a URL) on the server's authority.

    Within a run or a request such a call carries that one's user, whose permissions hold. Here it runs in an empty
    context, without a user or permissions: a client must never choose what it touches.

    Raises:
        APIError: If the server refused.
        ConnectionError: If it failed, as where its own database is away.
    """
    try:
        return await asyncio.create_task(call, context=contextvars.Context())
    except Exception as error:  # within a process the call raises whatever the server failed with
        if isinstance(error, APIError) and not isinstance(error, InternalServerError):
            raise
        raise ConnectionError("the server's own API failed") from error
