"""What the server lets a caller touch: one function, which denies everything that it does not name.

- Threads, runs and crons belong to who made them.
- Assistants are read by all when an operator published them, and written by their owner.
- Of the store, a user sees the own part.

It guards the HTTP API. What a graph does with the store is guarded by `graphs.process.identity`.
"""

import importlib
import logging
from typing import Any
from uuid import UUID, uuid5

from langchain_core.runnables import RunnableConfig
from langgraph_sdk import Auth, get_client

from graphs.process.deployment import service_of_process
from graphs.process.identity import OWNER_KEY, SAVED_BY
from graphs.server.authenticate import Authenticator
from graphs.server.threads import rows_of
from graphs.turn.stores import tolerated_store
from memory.door import arun, tolerated
from memory.namespaces import Owner, user_root
from memory.turn import MODE_KEY, MODES
from memory.updates.outbox import read_owners

logger = logging.getLogger(__name__)

OPERATOR = "palimpsest:operator"
"""The permission to publish assistants: everyone may use them, only operators may change them."""

EDITABLE_KINDS = frozenset({"facts", "profile"})

# The server gives each graph one assistant whose id is derived from the graph's name in this namespace.
_GRAPH_NAMESPACE = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")


def assistant_of_graph(name: str) -> str:
    """Return the id of the assistant that the server gives a graph."""
    return str(uuid5(_GRAPH_NAMESPACE, name))


def make_auth(authenticator: Authenticator) -> Auth:
    """Return the object that `langgraph.json` names under `auth.path`."""
    auth = Auth()
    # Not a coroutine: the server calls it in a worker thread, where waiting for keys stops nobody else. It passes the
    # header by the name of its parameter (`authenticate.with_checked_identity`).
    auth.authenticate(authenticator)  # type: ignore[type-var]  # the annotation knows coroutines only
    auth.on(authorize)
    return auth


async def authorize(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> dict[str, Any] | bool:
    """Say what of a resource a caller may touch: what a filter finds, all that was asked for, or nothing (`False`).

    A filter and no refusal: the server answers 404 for what it leaves out, so that ids stay unknown. What is made gets
    the caller as its owner, whoever the caller named.
    """
    own = {OWNER_KEY: ctx.user.identity}
    if ctx.resource == "store":
        return _in_own_store(ctx, value)
    if ctx.resource not in ("threads", "crons", "assistants"):
        logger.info("denied: no rule for %s of %s, %d fields", ctx.action, ctx.resource, len(value))
        return False
    if ctx.resource == "assistants" and ctx.action in ("read", "search"):
        return {"$or": [own, {"created_by": "system"}, {"published": "true"}]}
    if ctx.action in ("create", "create_run", "update"):  # a run may make the thread that it names
        if (metadata := value.get("metadata")) is None:  # in its place: the server goes on with what it handed in
            metadata = value["metadata"] = {}
        if metadata.get(MODE_KEY) not in (None, *MODES):
            raise Auth.exceptions.HTTPException(422, f"metadata.{MODE_KEY} must be one of {', '.join(MODES)}")
        metadata |= own
        if ctx.resource == "assistants":
            metadata.pop("created_by", None)  # "system" would publish it to everyone
            if OPERATOR not in ctx.permissions:
                metadata.pop("published", None)
        makes = "create" in (ctx.action, value.get("if_not_exists")) and ctx.resource == "threads"
        if makes and value.get("thread_id") and await _was_anothers(str(value["thread_id"]), ctx.user.identity):
            logger.info("denied: a thread of somebody else, whose row is lost")
            return False
    return own


async def _was_anothers(thread_id: str, user_id: str) -> bool:
    """Say whether somebody else had a thread of this id: what is left of it, without its row, is not the caller's."""
    with tolerated(logger, "whether a thread has its row is not known"):
        if thread_id in await rows_of(get_client(), [thread_id]):
            return False  # the row says it; a run would else read a whole checkpoint
    service, at = service_of_process(), RunnableConfig(configurable={"thread_id": thread_id})
    with tolerated_store(logger, "whose thread it was is not known"):
        saver, before = service.saver_of_server(), None
        # Checkpoints first: the server says whose they are. An export that somebody takes in may name any thread.
        while saver and (saved := [each async for each in saver.alist(at, before=before, limit=1)]):
            if user := saved[0].metadata.get(SAVED_BY):
                return user != user_id
            before = saved[0].config  # a state that a client wrote names nobody
        store = await importlib.import_module("langgraph_api.store").get_store()
        fed = await service.stores.ask(store, "read", lambda: arun(store, read_owners(thread_id)))
        return any(owner.segment != Owner.of(user_id).segment for owner in fed)
    return False


def _in_own_store(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> bool:
    """Let a caller read the own part of the store, and write facts and profile sections in it.

    Searching or listing from the root means from the own part. Everything but facts and profile sections is written
    by the server only.
    """
    own = user_root(ctx.user.identity)
    namespace = tuple(value.get("namespace") or ())
    if not namespace and ctx.action in ("search", "list_namespaces"):
        value["namespace"] = namespace = own
    if namespace[:2] != own:
        why = "store namespaces must begin with your own: " + ", ".join(own)
    elif ctx.action in ("put", "delete") and not (len(namespace) == 4 and namespace[3] in EDITABLE_KINDS):
        why = f"only these kinds of items may be written: {', '.join(sorted(EDITABLE_KINDS))}"
    else:
        return True
    logger.info("denied: %s of %s", ctx.action, ctx.resource)
    raise Auth.exceptions.HTTPException(403, why)
