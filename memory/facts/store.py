"""FactStore: one user's facts in any BaseStore, with a synchronous and an asynchronous door to each operation."""

import inspect
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, get_args

from langgraph.store.base import BaseStore

from memory.config import MemoryConfig
from memory.door import StoreEffects, arun, run
from memory.facts.effects import FactEffects
from memory.namespaces import Owner

P = ParamSpec("P")
T = TypeVar("T")
Operation = Callable[Concatenate[FactEffects, P], StoreEffects[T]]
Door = Callable[Concatenate["FactStore", P], T]
AsyncDoor = Callable[Concatenate["FactStore", P], Coroutine[Any, Any, T]]


def _doors(operation: Operation[P, T]) -> tuple[Door[P, T], AsyncDoor[P, T]]:
    """Return the method that carries out an operation of `FactEffects` and returns its value, and its async twin."""

    @wraps(operation)
    def door(self: "FactStore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(self._store, operation(self._facts, *args, **kwargs))

    @wraps(operation)
    async def adoor(self: "FactStore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await arun(self._store, operation(self._facts, *args, **kwargs))

    # Or `help` would show the effects in the place of their value.
    signature = inspect.signature(operation)
    *_, value = get_args(signature.return_annotation)
    for each in (door, adoor):
        vars(each)["__signature__"] = signature.replace(return_annotation=value)
    return door, adoor


class FactStore:
    """What is known about one user, for one agent.

    Every method has an async twin (`acreate`, `aget`, …). On an event loop use the twins: a store's synchronous
    interface blocks it.

    Args:
        store: Any BaseStore; with or without a vector index.
        user_id: The authenticated identity; it is hashed, so it may hold any character. Or the owner that is made of
            it and of the agent's name, where only that is known.
        agent_name: Assistants of one name share what they know.
        config: Limits and protected categories.
        clock: Seconds since 1970.

    Raises:
        ValueError: If `user_id` or `agent_name` cannot name a namespace.
    """

    def __init__(
        self,
        store: BaseStore,
        user_id: str | Owner,
        agent_name: str = "default",
        *,
        config: MemoryConfig | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        owner = user_id if isinstance(user_id, Owner) else Owner.of(user_id, agent_name)
        self._store, self._facts = store, FactEffects(owner, config or MemoryConfig(), clock)

    @property
    def config(self) -> MemoryConfig:
        """Their limits and protected categories."""
        return self._facts.config

    @property
    def owner(self) -> Owner:
        """Whose facts these are."""
        return self._facts.owner

    create, acreate = _doors(FactEffects.create)
    get, aget = _doors(FactEffects.get)
    list, alist = _doors(FactEffects.list)
    search, asearch = _doors(FactEffects.search)
    history, ahistory = _doors(FactEffects.history)
    update, aupdate = _doors(FactEffects.update)
    retire, aretire = _doors(FactEffects.retire)
    delete, adelete = _doors(FactEffects.delete)
    undo, aundo = _doors(FactEffects.undo)
    restore, arestore = _doors(FactEffects.restore)
    release, arelease = _doors(FactEffects.release)
    approve, aapprove = _doors(FactEffects.approve)
    confirmations, aconfirmations = _doors(FactEffects.confirmations)
    snapshot, asnapshot = _doors(FactEffects.snapshot)
    apply, aapply = _doors(FactEffects.apply)
