"""Who the user is: what the server says first, what a client says only in single-user development."""

import asyncio
import contextvars
import logging
from collections.abc import Coroutine, Mapping
from typing import TypeVar

from memory.namespaces import Owner

logger = logging.getLogger(__name__)

T = TypeVar("T")

LOCAL_USER = "local"
STUDIO_USER = "langgraph-studio-user"
"""What the development server calls everyone who comes through Studio: no person, so nobody's memory."""


def identify(configurable: Mapping[str, object], *, single_user: bool) -> str | None:
    """Return the identity whose memory a run may use, or `None`: then the turn goes on without memory.

    The server's own word (`langgraph_auth_user_id`, which the server overwrites when a client sends it) comes
    first. Without one, `single_user` lets `configurable.user_id` name the user, `local` by default.

    Args:
        configurable: The run's `config["configurable"]`.
        single_user: The explicit development switch (`PALIMPSEST_SINGLE_USER`).
    """
    authenticated = authenticated_user(configurable.get("langgraph_auth_user_id"))
    if authenticated is not None or not single_user:
        return authenticated
    # Any client may name anyone here: that is what single-user mode means.
    claimed = configurable.get("user_id")
    if isinstance(claimed, str) and claimed and claimed != STUDIO_USER:
        logger.info("single-user mode: memory of the user that the client names")
        return claimed
    return LOCAL_USER


def authenticated_user(identity: object) -> str | None:
    """Return the identity that the server vouches for, or `None` if it names nobody in particular.

    A server without authentication says the empty string.
    """
    return identity if isinstance(identity, str) and identity and identity != STUDIO_USER else None


def owner_of_run(configurable: Mapping[str, object], agent_name: str, *, single_user: bool) -> Owner | None:
    """Return whose memory a run may use, or `None` without an identity."""
    user_id = identify(configurable, single_user=single_user)
    return None if user_id is None else Owner.of(user_id, agent_name)


async def as_server(call: Coroutine[object, object, T]) -> T:
    """Await a call to the server's own API (`get_client()` without a URL) on the server's authority.

    Within a run or a request such a call carries its user, and the rules for that user hold. In a context of its
    own it carries nobody, and no rule holds: what it touches must never be chosen by a client.
    """
    return await asyncio.create_task(call, context=contextvars.Context())
