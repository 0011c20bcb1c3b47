"""What a turn may wait for memory: one time for all of its nodes, and another one for what it writes down."""

import asyncio

import pytest
from langgraph.store.memory import InMemoryStore

from graphs.turn.deadlines import Access, StoreWatch, TurnDeadlines


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def deadlines(clock: Clock) -> TurnDeadlines:
    return TurnDeadlines(StoreWatch(), read=60.0, write=60.0, clock=clock)


async def wait(turns: TurnDeadlines, turn: str, access: Access = "read") -> None:
    async with turns.within(turn, access):
        await asyncio.sleep(0.01)


async def test_what_one_node_waited_the_next_cannot_wait() -> None:
    clock = Clock()
    turns = deadlines(clock)
    turns.begin("turn")
    for _ in range(2):
        async with turns.within("turn", "read"):
            clock.now += 30.0
    with pytest.raises(TimeoutError):
        await wait(turns, "turn")
    await wait(turns, "turn", "write")
    await wait(turns, "another")
    turns.begin("turn")  # asked again
    await wait(turns, "turn")


async def test_what_fails_has_been_waited_for_too() -> None:
    clock = Clock()
    turns = deadlines(clock)

    async def fail() -> None:
        async with turns.within("turn", "write"):
            clock.now += 60.0
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await fail()
    with pytest.raises(TimeoutError):
        await wait(turns, "turn", "write")


async def test_turns_that_are_over_do_not_pile_up() -> None:
    turns = deadlines(Clock())
    for number in range(5000):
        turns.begin(number)
    assert len(turns._left) <= 1024


async def test_a_store_that_works_is_never_in_doubt_for_long() -> None:
    watch, store = StoreWatch(), InMemoryStore()
    watch.doubt(store, "read")
    watch.doubt(store, "write")
    await watch.settled()
    assert not watch.any_away()
    assert store.search(()) == []
