"""What may come between the single operations of a store: its end, a failure, no answer, or somebody else."""

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from langgraph.store.base import BaseStore, Op, PutOp, Result

from tests.stores import Killed

How = Literal["none", "kill", "fail once", "fail on", "hang", "erase", "edit", "worker", "clock"]
BESIDE: tuple[How, ...] = ("erase", "edit", "worker")
HOWS: tuple[How, ...] = ("none", "kill", "fail once", "fail on", "hang", *BESIDE, "clock")

Do = Callable[[Sequence[Op]], Awaitable[list[Result]]]
_BESIDE_SECONDS = 0.02
_HOUR = 3_600.0
_WITHIN = 3


class Tap:
    """Counts the places between single operations of one process, and interrupts it at the n-th.

    Args:
        how: What happens there.
        at: Which place, from 1.
        is_atomic: Whether a batch holds or fails as a whole; elsewhere there are places within it, after each write.
        beside: What somebody else does there, as a task that is given the chance to end before this process goes on;
            it is given a tap for its store, by which it is seen to go on.
    """

    def __init__(self, how: How, at: int, *, is_atomic: bool, beside: Callable[["Tap"], Awaitable[Any]]) -> None:
        self._how, self._at, self._is_atomic, self._beside = how, at, is_atomic, beside
        self._seen, self._is_over, self.moves = 0, False, 0
        self.task: asyncio.Task[Any] | None = None
        self.is_back = asyncio.Event()

    @property
    def was_reached(self) -> bool:
        """Whether it came to the interruption."""
        return self._seen >= self._at

    async def carry_out(self, ops: Sequence[Op], do: Do) -> list[Result]:
        self.moves += 1
        try:
            return await self._carry_out(ops, do)
        finally:
            self.moves += 1

    async def _carry_out(self, ops: Sequence[Op], do: Do) -> list[Result]:
        if self._is_over:
            raise self._error()
        for done in self._places(ops):
            self._seen += 1
            if self._seen == self._at:
                if done:
                    results = await do(ops[:done])
                if not await self._interrupt():
                    self._is_over = self._how in ("kill", "fail on")
                    raise self._error()
                if done == len(ops):
                    return results
        return await do(ops)

    def _places(self, ops: Sequence[Op]) -> list[int]:
        """Return after how many of its operations a batch may be interrupted; 0 is before it."""
        writes = [place for place, op in enumerate(ops, 1) if isinstance(op, PutOp)]
        if self._how in ("none", *BESIDE):
            return [0]
        if self._how in ("fail on", "clock") and not writes:
            return []
        if self._how == "clock":
            return [0]
        within = writes[:-1] if not self._is_atomic and self._how != "hang" else []
        within = within[:: max(1, len(within) // _WITHIN)]  # what deletes a hundred items has no hundred ends
        # A process that dies before a batch leaves what it leaves after the one before.
        return [*(() if self._how == "kill" else (0,)), *within, *((len(ops),) if writes else ())]

    async def _interrupt(self) -> bool:
        """Do what happens at the place, and say whether the process goes on after it."""
        if self._how in BESIDE:
            other, moves = Tap("none", 0, is_atomic=self._is_atomic, beside=self._beside), -1
            self.task = asyncio.ensure_future(self._beside(other))
            while other.moves != moves and not self.task.done():  # else it waits for this process
                moves = other.moves
                await asyncio.wait({self.task}, timeout=_BESIDE_SECONDS)
        elif self._how == "clock":
            await self._beside(self)
        elif self._how == "hang":
            loop: Any = asyncio.get_running_loop()
            now = loop.time
            loop.time = lambda: now() + _HOUR  # every deadline on this loop is over
            await self.is_back.wait()
        return self._how not in ("kill", "fail once", "fail on")

    def _error(self) -> BaseException:
        return Killed() if self._how == "kill" else OSError("disk full")


class _Tapped:
    """Has a store's batches go through a tap; a store of its own class still."""

    __slots__ = ()
    tap: Tap

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        store: Any = super()
        return await self.tap.carry_out(list(ops), store.abatch)


class _Transactional(_Tapped):
    """The same of a store that has transactions: there are places within one, and one after its end."""

    __slots__ = ()

    @asynccontextmanager
    async def writing(self, *names: str) -> AsyncIterator[Do]:
        store: Any = super()
        async with store.writing(*names) as carry_out:
            yield (lambda ops: self.tap.carry_out(list(ops), carry_out)) if names else carry_out
        if names:
            await self.tap.carry_out([PutOp(("end",), names[0], None)], _nothing)


async def _nothing(_: Sequence[Op]) -> list[Result]:
    return []


def tapped(store: BaseStore, tap: Tap) -> BaseStore:
    """Return another handle to the same data, which goes through the tap."""
    handle = copy.copy(store)
    base = _Transactional if hasattr(store, "writing") else _Tapped
    handle.__class__ = type("Tapped", (base, type(store)), {"__slots__": (), "tap": tap})
    return handle
