"""Effects that compute a while: their batches on the event loop, what lies between them on threads."""

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeVar

from langgraph.store.base import BaseStore

from memory.effects import (
    STORE_SECONDS,
    AsyncHandlers,
    StoreEffects,
    awithin,
    in_daemon_thread,
    retrying_batches,
)

T = TypeVar("T")


async def arun_aside(store: BaseStore, effects: StoreEffects[T], seconds: float = STORE_SECONDS) -> T:
    """Do what `arun` does, and leave the loop to others between batches: whoever reads a whole journal takes seconds.

    Args:
        store: As for `arun`.
        effects: What; no two of its steps run at a time.
        seconds: As for `arun`.
    """
    return await aperform_aside(effects, {list: awithin(seconds, store.abatch)})


async def aperform_aside(effects: Generator[Any, Any, T], handlers: AsyncHandlers) -> T:
    """Do what `aperform` does, and leave the loop to others between effects."""
    steps = retrying_batches(effects)

    def taken(step: Callable[[], Any]) -> Any:
        try:
            return step()
        except StopIteration as stop:  # which no future can carry
            return stop

    step: Callable[[], Any] = partial(next, steps)
    while True:
        asked = await asyncio.wrap_future(in_daemon_thread(partial(taken, step), "palimpsest-effects"))
        if isinstance(asked, StopIteration):
            return asked.value  # type: ignore[no-any-return]  # typeshed has no type for it
        try:
            step = partial(steps.send, await handlers[type(asked)](asked))
        except Exception as error:  # whatever it is, the effects decide
            step = partial(steps.throw, error)
