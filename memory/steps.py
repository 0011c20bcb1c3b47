"""Decisions written once for sync and async: a generator yields what it wants done, and one of two drivers does it."""

from collections.abc import Awaitable, Callable, Generator
from typing import TypeVar

Wish = TypeVar("Wish")
Done = TypeVar("Done")
T = TypeVar("T")


def drive(steps: Generator[Wish, Done, T], do: Callable[[Wish], Done]) -> T:
    """Carry the steps out in this thread and return their value.

    Args:
        steps: Yields wishes; is sent what comes of each, or thrown its failure, and decides what that means.
        do: Does what is wished for.

    Raises:
        Exception: What the steps raise, or let pass.
    """
    try:
        wish = next(steps)
        while True:
            try:
                done = do(wish)
            except Exception as error:  # whatever it is, the steps decide what it means
                wish = steps.throw(error)
            else:
                wish = steps.send(done)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # typeshed has no type for it


async def adrive(steps: Generator[Wish, Done, T], do: Callable[[Wish], Awaitable[Done]]) -> T:
    """Carry the steps out on the event loop and return their value; all else is as in `drive`."""
    try:
        wish = next(steps)
        while True:
            try:
                done = await do(wish)
            except Exception as error:  # whatever it is, the steps decide what it means
                wish = steps.throw(error)
            else:
                wish = steps.send(done)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # typeshed has no type for it
