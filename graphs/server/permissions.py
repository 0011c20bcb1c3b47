"""What the server lets a caller touch: everything is denied that no rule here allows.

- Threads, runs and crons belong to who made them.
- Assistants are read by all when an operator published them, and written by their owner.
- Of the store, a user sees the own part.

These rules guard the HTTP API. What a graph does with the store is guarded by `graphs.identity`.
"""

import logging
from typing import Any
from uuid import UUID, uuid5

from langgraph_sdk import Auth

from graphs.identity import OWNER_KEY
from graphs.server.authenticate import Authenticator, User
from memory.namespaces import user_root
from memory.turn import MODE_KEY, MODES

logger = logging.getLogger(__name__)

OPERATOR = "palimpsest:operator"
"""The permission to publish assistants: everyone may use them, only operators may change them."""

EDITABLE_KINDS = frozenset({"facts", "profile"})

# The server gives each graph one assistant whose id is derived from the graph's name in this namespace.
_GRAPH_NAMESPACE = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")


def assistant_of_graph(name: str) -> str:
    """Return the id of the assistant that the server gives a graph."""
    return str(uuid5(_GRAPH_NAMESPACE, name))


Context = Auth.types.AuthContext
Value = dict[str, Any]
Filter = dict[str, Any]


def make_auth(authenticator: Authenticator) -> Auth:
    """Return the object that `langgraph.json` names under `auth.path`."""
    auth = Auth()

    # Not a coroutine: the server calls it in a worker thread, where waiting for keys stops nobody else.
    def authenticate(authorization: str | None) -> User:
        return authenticator(authorization)

    auth.authenticate(authenticate)  # type: ignore[type-var]  # the annotation knows coroutines only
    auth.on(deny)
    auth.on(resources="threads")(own_thread)
    auth.on(resources="assistants")(assistant)
    auth.on(resources="crons")(own_cron)
    auth.on(resources="store")(own_store)
    return auth


async def deny(ctx: Context, value: Value) -> bool:
    """Refuse what no other rule knows."""
    logger.info("denied: no rule for %s of %s, %d fields", ctx.action, ctx.resource, len(value))
    return False


async def own_thread(ctx: Context, value: Value) -> Filter:
    """Let a caller use the own threads and runs."""
    # Written by us, so that no client can make a thread another user's; `create_run` may make the thread it names.
    if ctx.action in ("create", "create_run", "update"):
        _stamp_owner(ctx, value)
    # A filter and no refusal: the server answers 404 for what it leaves out, so that ids stay unknown.
    return {OWNER_KEY: ctx.user.identity}


async def own_cron(ctx: Context, value: Value) -> Filter:
    """Let a caller use the own crons."""
    if ctx.action in ("create", "update"):
        _stamp_owner(ctx, value)
    return {OWNER_KEY: ctx.user.identity}


async def assistant(ctx: Context, value: Value) -> Filter:
    """Let a caller read the server's, the published and the own assistants, and write the own ones."""
    own = {OWNER_KEY: ctx.user.identity}
    if ctx.action in ("read", "search"):
        return {"$or": [own, {"created_by": "system"}, {"published": "true"}]}
    if ctx.action in ("create", "update"):
        _stamp_owner(ctx, value)
        metadata = value["metadata"]
        metadata.pop("created_by", None)  # "system" would publish it to everyone
        if OPERATOR not in ctx.permissions:
            metadata.pop("published", None)
    return own


async def own_store(ctx: Context, value: Value) -> None:
    """Let a caller read the own part of the store, and write facts and profile sections in it.

    Searching or listing from the root means from the own part. Everything but facts and profile sections is written
    by the server only.
    """
    own = user_root(ctx.user.identity)
    namespace = tuple(value.get("namespace") or ())
    # The server goes on with the value that it handed in, so writing into it decides what is asked.
    if not namespace and ctx.action in ("search", "list_namespaces"):
        value["namespace"] = own
    elif namespace[:2] != own:
        raise _refusal(ctx, "store namespaces must begin with your own: " + ", ".join(own))
    elif ctx.action in ("put", "delete") and not (len(namespace) == 4 and namespace[3] in EDITABLE_KINDS):
        raise _refusal(ctx, f"only these kinds of items may be written: {', '.join(sorted(EDITABLE_KINDS))}")


def _stamp_owner(ctx: Context, value: Value) -> None:
    """Write the caller as owner, whoever the caller named."""
    metadata = value.get("metadata")
    if metadata is None:
        metadata = value["metadata"] = {}
    if metadata.get(MODE_KEY) not in (None, *MODES):
        raise Auth.exceptions.HTTPException(422, f"metadata.{MODE_KEY} must be one of {', '.join(MODES)}")
    metadata[OWNER_KEY] = ctx.user.identity


def _refusal(ctx: Context, detail: str) -> Exception:
    logger.info("denied: %s of %s", ctx.action, ctx.resource)
    return Auth.exceptions.HTTPException(status_code=403, detail=detail)
