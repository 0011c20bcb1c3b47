"""Each operation, interrupted at each place, on each store: judged by the laws of `judge.py`."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.laws.doors import House
from tests.laws.faults import FAULTS
from tests.laws.interruptions import BESIDE as OTHERS
from tests.laws.interruptions import HOWS, How, Tap
from tests.laws.judge import View, end, judge, look, settle, words_in
from tests.laws.operations import OPERATIONS, Operation, beside, furnish
from tests.laws.worlds import ATOMIC, KINDS, NATIVE, POSTGRES, Snapshot, World, on_files
from tests.stores import Killed

_PLACES = 400
_PATIENCE = 3_605.0  # of the loop, whose clock a hanging store puts an hour ahead


_snapshots: dict[tuple[str, str], Snapshot] = {}


async def prepared(operation: Operation, kind: str) -> Snapshot:
    """Return what a world of this kind holds before the operation."""
    kind = kind if kind in NATIVE else "memory"
    if (kind, "") not in _snapshots:
        async with KINDS[kind](Snapshot()) as world:
            await furnish(world.house())
            _snapshots[kind, ""] = await world.snapshot()
    key = (kind, operation.name)
    if key not in _snapshots:
        async with KINDS[kind](_snapshots[kind, ""]) as world:
            await operation.prepare(world.house())
            _snapshots[key] = await world.snapshot()
    return _snapshots[key]


async def finish(world: World, operation: Operation, at_once: frozenset[str], erases: bool) -> View:
    await operation.then(world.house())
    house = await settle(world)
    return await look(world, house, at_once, undoes=erases)


def right_ends(operation: Operation, how: How, answer: str) -> list[View]:
    """Return the ends of which an interrupted operation has to reach one: those of what happens, in either order.

    Where none of both is written down, who comes beside it changes nothing.
    """
    name = operation.name
    names = [name, f"{name}, not done"] if operation.sort == "hand" and answer != "200" else [name]
    if how in OTHERS:
        other = {"erase": "erase everything", "edit": "another edit" if name == "edit" else "edit"}.get(how, how)
        names = [f"{name}, then {other}", f"{other}, then {name}"]
    return [end(each, "nothing" if how == "erase" else name) for each in names]


async def attempt(act: Callable[[House], Awaitable[int]], house: House) -> str:
    try:
        return str(await act(house))
    except Killed:
        return "killed"
    except Exception as error:
        return type(error).__name__


async def run(operation: Operation, how: How, at: int, kind: str) -> tuple[View, str] | None:
    """Return what one cell leads to and what was answered; `None` if the operation ended before it came to that."""
    is_of_threads = operation.is_of_threads or how == "erase"
    async with KINDS[kind](await prepared(operation, kind), with_threads=is_of_threads) as world, world.ending():

        async def disturb(other: Tap) -> str:
            if how == "clock":
                world.clock.advance(-3_600)
                return ""
            return await attempt(beside(operation, how), world.house(other))

        tap = Tap(how, at, is_atomic=world.is_atomic, beside=disturb)
        loop: Any = asyncio.get_running_loop()
        loop_time = loop.time
        acting = asyncio.ensure_future(attempt(operation.act, world.house(tap)))
        _, late = await asyncio.wait({acting}, timeout=_PATIENCE)
        loop.time = loop_time
        tap.is_back.set()
        if late:
            acting.cancel()
            raise AssertionError("the caller never returned")
        answer = await acting
        if how != "none" and not tap.was_reached:
            return None
        if tap.task:  # it may have had to wait, and be answered last
            await tap.task
        erases = operation.sort == "erase"
        at_once = words_in(repr(await world.items())) if erases else frozenset[str]()
        await asyncio.sleep(0)
        world.clock.advance(1)
        if how == "kill":
            await world.restart()
        if operation.sort == "erase" and answer != "200" and how not in OTHERS:
            answer = await attempt(operation.act, world.house())
            at_once = words_in(repr(await world.items()))
        return await finish(world, operation, at_once, erases or how == "erase"), answer


async def sentence(operation: Operation, how: How, kind: str, every: int) -> dict[str, list[int]]:
    """Return what is wrong in the cells of one row and column, and at which places."""
    found = defaultdict[str, list[int]](list)
    for at in range(1 + HOWS.index(how) % every, _PLACES, every):
        try:
            if (cell := await run(operation, how, at, kind)) is None:
                break
            view, answer = cell
            broken = judge(view, right_ends(operation, how, answer))
        except Exception as error:
            broken = [f"{type(error).__name__}: {error}"]
        for each in broken:
            found[each].append(at)
        if how == "none":
            break
    return found


def judged(name: str, how: How, kind: str, broken: dict[str, list[int]], *, is_whole: bool) -> list[str]:
    """Return what is not excused, and which excuses are needed no more."""
    is_atomic = kind in ATOMIC
    known = [fault for fault in FAULTS if fault.is_of(name, how, is_atomic=is_atomic)]
    excused = {
        (each, at): [fault for fault in known if fault.excuses(each, how, at, is_atomic=is_atomic)]
        for each, places in broken.items()
        for at in places
    }
    left = [
        f"{name} / {how} at {elsewhere} / {kind} / {each}"
        for each, places in broken.items()
        if (elsewhere := [at for at in places if not excused[each, at]])
    ]
    needed = [fault for faults in excused.values() for fault in faults]
    mended = [fault.why for fault in known if is_whole and fault not in needed]
    return [*left, *(f"{name} / {how} / {kind}: mended, strike it in faults.py: {why}" for why in mended)]


EVERY = {"memory": 6, "sqlite": 16, "stock sqlite": 30, "postgres": 10}
"""Each so many-th place is looked at, unless the run asks for the whole; another one under each interruption."""


async def hold(name: str, how: How, kind: str, is_whole: bool) -> None:
    every = 1 if is_whole else EVERY[kind]
    broken = await sentence(OPERATIONS[name], how, kind, every)
    if found := judged(name, how, kind, broken, is_whole=is_whole):
        pytest.fail("\n".join(found), pytrace=False)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", OPERATIONS)
async def test_laws_hold_at_every_place(name: str, how: How, kind: str, is_whole: bool) -> None:
    await hold(name, how, kind, is_whole)


async def test_erased_words_are_in_no_byte_of_a_file() -> None:
    operation, kept = OPERATIONS["erase thread"], set[str]()
    for _ in range(6):  # where rows lie in a file depends on ids, which are random
        _snapshots.clear()
        async with on_files(await prepared(operation, "sqlite")) as world:
            assert await operation.act(world.house(folder=world.folder)) == 200
            kept |= words_in(await world.bytes()) & {"axolotls"}
    assert kept == set()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", OPERATIONS)
async def test_laws_hold_on_a_stock_store(name: str, how: How, is_whole: bool) -> None:
    if how != "kill" and not is_whole:  # what leaves half of a batch is what a stock store may do, and ours not
        pytest.skip("--whole runs it")
    await hold(name, how, "stock sqlite", is_whole)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", OPERATIONS)
async def test_laws_hold_on_postgres(name: str, how: How, is_whole: bool, database: str) -> None:
    POSTGRES.set(database)
    await hold(name, how, "postgres", is_whole)
