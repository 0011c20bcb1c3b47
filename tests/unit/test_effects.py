import threading
from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import Item, Op, Result, SearchOp
from langgraph.store.memory import InMemoryStore

from memory.control import INITIAL_EPOCH, belongs, read_epoch, read_learning, write_epoch, write_learning
from memory.effects import (
    StoreEffects,
    arun,
    arun_patiently,
    delete,
    put,
    read,
    read_many,
    retrying_batches,
    run,
    scan,
    side_by_side,
)
from memory.message import StoredMessage
from memory.namespaces import Owner
from tests.stores import FaultyStore, fail_at

OWNER = Owner.of("ada")
FACTS = OWNER.namespace("facts")


def _write(count: int) -> StoreEffects[None]:
    yield [put(FACTS, f"{at:04}", {"at": at}) for at in range(count)]


class _Shuffled(InMemoryStore):
    """A store that orders anew with every search, as a database does with rows of one transaction."""

    def batch(self, ops: Any) -> Any:
        operations = list(ops)
        results: list[Any] = super().batch(
            [op._replace(limit=10**6, offset=0) if isinstance(op, SearchOp) else op for op in operations]
        )
        return [
            self._page(op, found) if isinstance(op, SearchOp) else found
            for op, found in zip(operations, results, strict=True)
        ]

    def _page(self, search: SearchOp, found: list[Item]) -> list[Item]:
        Random(search.limit + search.offset).shuffle(found)
        return found[search.offset : search.offset + search.limit]


@pytest.mark.parametrize("kind", [InMemoryStore, _Shuffled])
def test_scan_reads_every_item_once_and_sorts_however_a_store_orders(kind: type[InMemoryStore]) -> None:
    store = kind()
    run(store, _write(57))
    items = run(store, scan(FACTS, page=10))
    assert [item.value["at"] for item in items] == list(range(57))


def test_scan_leaves_out_what_lies_below() -> None:
    store = InMemoryStore()
    run(store, _write(2))
    store.put((*FACTS, "deeper"), "x", {"at": -1})
    assert len(run(store, scan(FACTS))) == 2


async def test_sync_and_async_come_to_the_same() -> None:
    store = InMemoryStore()
    await arun(store, _write(3))
    assert [item.key for item in await arun(store, scan(FACTS))] == [item.key for item in run(store, scan(FACTS))]


def test_read_and_delete() -> None:
    store = InMemoryStore()
    run(store, _write(2))

    def effects() -> StoreEffects[list[Item | None]]:
        yield [delete(FACTS, "0000"), delete(FACTS, "absent")]
        return (yield from read_many(FACTS, ["0000", "0001"]))

    gone, there = run(store, effects())
    assert gone is None
    assert there is not None
    assert run(store, read_many(FACTS, [])) == []


class _Broken(InMemoryStore):
    def batch(self, ops: Any) -> Any:
        raise OSError("disk full")

    async def abatch(self, ops: Any) -> Any:
        raise OSError("disk full")


async def test_a_failed_batch_reaches_the_steps() -> None:
    def effects() -> StoreEffects[str]:
        try:
            yield from read(FACTS, "x")
        except OSError:
            return "went on"
        return "never"

    assert run(_Broken(), effects()) == "went on"
    assert await arun(_Broken(), effects()) == "went on"
    assert await arun(_Broken(), effects(), aside=True) == "went on"
    with pytest.raises(OSError, match="disk full"):
        run(_Broken(), read(FACTS, "x"))


async def test_what_effects_compute_aside_holds_up_no_loop_and_their_batches_are_asked_on_it() -> None:
    computed, asked = set[int](), set[int]()

    class Noting(InMemoryStore):
        async def abatch(self, ops: Iterable[Op]) -> list[Result]:
            asked.add(threading.get_ident())
            return await super().abatch(ops)

    def effects() -> StoreEffects[int]:
        for _ in range(3):
            computed.add(threading.get_ident())
            yield from read(FACTS, "x")
        computed.add(threading.get_ident())
        return 3

    assert await arun(Noting(), effects(), aside=True) == 3
    assert asked == {threading.get_ident()}
    assert not computed & asked
    with pytest.raises(OSError, match="disk full"):
        await arun(_Broken(), read(FACTS, "x"), aside=True)


class _TakenBack(Exception):
    """What a database raises when it ends one of two writers that wait for each other."""

    sqlstate = "40P01"


@pytest.mark.parametrize(("error", "arrives"), [(_TakenBack, True), (OSError, False)])
async def test_a_batch_that_a_deadlock_took_back_is_asked_for_again(error: type[Exception], arrives: bool) -> None:
    for drive in (run, arun, partial(arun, aside=True)):
        store = FaultyStore()
        store.fault = fail_at(1, 2, error=error)
        with nullcontext() if arrives else pytest.raises(error):
            done = drive(store, _write(3))
            await done if done else None
        assert len(store.items(FACTS)) == (3 if arrives else 0)


def test_a_batch_that_is_taken_back_forever_fails_in_the_end() -> None:
    store = FaultyStore()
    store.fault = lambda _: _TakenBack()
    with pytest.raises(_TakenBack):
        run(store, _write(1))
    assert store.calls < 100


def test_epoch_is_initial_until_it_is_written_and_leaves_the_other_switches_alone() -> None:
    store = InMemoryStore()
    assert run(store, read_epoch(OWNER)) == INITIAL_EPOCH
    run(store, write_learning(OWNER, False))
    run(store, write_epoch(OWNER, "9f"))
    assert run(store, read_epoch(OWNER)) == "9f"
    assert run(store, read_learning(OWNER)) is False


def test_rows_of_another_epoch_do_not_count_but_hand_made_ones_do() -> None:
    assert belongs({"epoch": "a"}, "a")
    assert belongs({}, "a")
    assert not belongs({"epoch": "b"}, "a")


def test_a_stored_message_survives_json() -> None:
    message = StoredMessage("1", "user", "hi", "2026-01-01T00:00:00+00:00", seen=True)
    assert StoredMessage.from_json(message.to_json()) == message


@pytest.mark.parametrize(
    "value", [{}, {"id": "1", "role": "tool", "text": "", "time": ""}, {"id": "1", "role": "user"}]
)
def test_what_is_no_message_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="StoredMessage"):
        StoredMessage.from_json(value)


@pytest.mark.parametrize(("failures", "survives"), [(0, True), (2, True), (3, False)])
async def test_steps_that_may_be_repeated_are_tried_again(failures: int, survives: bool) -> None:
    store = FaultyStore()
    store.put(FACTS, "x", {"n": 1})
    store.fault = fail_at(*range(2, 2 + failures))
    if survives:
        item = await arun_patiently(store, lambda: read(FACTS, "x"))
        assert item is not None
    else:
        with pytest.raises(OSError, match="disk full"):
            await arun_patiently(store, lambda: read(FACTS, "x"))
    assert store.calls == 1 + min(failures + 1, 3)


@pytest.mark.parametrize("what", ["dictionary changed size", "dictionary keys changed"])
def test_a_scan_that_another_threads_write_disturbs_is_asked_again(what: str) -> None:
    effects = retrying_batches(scan(("a",)))
    asked = next(effects)
    assert effects.throw(RuntimeError(f"{what} during iteration")) == asked


@given(st.lists(st.lists(st.integers(1, 3), max_size=4), min_size=3, max_size=3))
def test_effects_side_by_side_come_to_what_they_come_to_alone_in_as_many_batches_as_the_longest(
    reads: list[list[int]],
) -> None:
    def counted(part: int, sizes: list[int]) -> StoreEffects[list[list[str]]]:
        found = []
        for size in sizes:
            keys = [f"{part * 10 + key:04}" for key in range(size)]
            found.append([item.key for item in (yield from read_many(FACTS, keys)) if item])
        return found

    store = FaultyStore()
    run(store, _write(40))
    alone = tuple(run(store, counted(part, sizes)) for part, sizes in enumerate(reads))
    before = store.calls
    one, two, three = (counted(part, sizes) for part, sizes in enumerate(reads))
    assert run(store, side_by_side(one, two, three)) == alone
    assert store.calls - before == max(map(len, reads))


def test_steps_side_by_side_fail_as_one() -> None:
    store = FaultyStore()
    store.fault = fail_at(1)
    with pytest.raises(OSError, match="disk full"):
        run(store, side_by_side(read(FACTS, "x"), scan(FACTS)))
