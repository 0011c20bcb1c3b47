"""Who the user is: what the server says first, what a client says only in single-user development."""

import logging
from collections.abc import Mapping
from typing import Any

from memory.namespaces import Owner

logger = logging.getLogger(__name__)

LOCAL_USER = "local"


def identify(configurable: Mapping[str, Any], *, single_user: bool) -> str | None:
    """Return the identity whose memory a run may use, or `None`: then the turn goes on without memory.

    The server's own word (`langgraph_auth_user_id`, which the server overwrites when a client sends it) comes
    first. Without one, `single_user` lets `configurable.user_id` name the user, `local` by default.

    Args:
        configurable: The run's `config["configurable"]`.
        single_user: The explicit development switch (`PALIMPSEST_SINGLE_USER`).
    """
    authenticated = configurable.get("langgraph_auth_user_id")
    if isinstance(authenticated, str) and authenticated:
        return authenticated
    if not single_user:
        return None
    claimed = configurable.get("user_id")
    if isinstance(claimed, str) and claimed:
        logger.info("single-user mode: memory of the user that the client names")
        return claimed
    return LOCAL_USER


def owner_of_run(configurable: Mapping[str, Any], agent_name: str, *, single_user: bool) -> Owner | None:
    """Return whose memory a run may use, or `None` without an identity."""
    user_id = identify(configurable, single_user=single_user)
    return None if user_id is None else Owner.of(user_id, agent_name)
