"""Erasing while an update is in flight: both work on one store, step by step, in hundreds of different orders."""

import random
import threading
from collections.abc import Callable, Iterable
from functools import partial

import pytest
from langgraph.store.base import BaseStore, Op, Result

from memory.erase import erase_fact, erase_thread, erase_user
from memory.facts.store import FactStore
from memory.worker.updater import MemoryUpdater
from tests.memory_bench import ADA, MemoryBench
from tests.stores import FaultyStore

ORDERS = 120


class TakingTurns(BaseStore):
    """One store for two threads: whose batch is next is a draw from a seed, until one of them has finished."""

    def __init__(self, inner: FaultyStore, seed: int, names: tuple[str, str]) -> None:
        self._inner, self._random = inner, random.Random(seed)
        self._changed = threading.Condition()
        self._running = set(names)
        self._next = self._draw()
        self.order: list[str] = []

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        # An update asks its store on a thread of the call's own.
        me = "erase" if threading.current_thread().name == "erase" else "drain"
        with self._changed:
            assert self._changed.wait_for(lambda: self._next == me or self._running == {me}, timeout=240)
            self.order.append(me)
            results = self._inner.batch(ops)
            self._next = self._draw()
            self._changed.notify_all()
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        raise NotImplementedError

    def finish(self) -> None:
        """Say that the calling thread has nothing more to do."""
        with self._changed:
            self._running.discard(threading.current_thread().name)
            self._changed.notify_all()

    def _draw(self) -> str:
        return self._random.choice(sorted(self._running))


def side_by_side(bench: MemoryBench, seed: int, erase: Callable[[BaseStore], object]) -> list[str]:
    """Drain and erase at once, in an order that the seed decides; return the order."""
    store = TakingTurns(bench.store, seed, ("drain", "erase"))
    failures: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)
        finally:
            store.finish()

    updater = MemoryUpdater(store, bench.load, config=bench.config, clock=bench.clock)
    works: dict[str, Callable[[], object]] = {"drain": lambda: updater.drain(ADA), "erase": lambda: erase(store)}
    threads = [threading.Thread(target=run, args=(work,), name=name) for name, work in works.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    bench.drain_all()
    return store.order


def pending(*, known: bool = False) -> MemoryBench:
    """A conversation about figs whose update is written down; if `known`, what it says was learned before."""
    bench = MemoryBench()
    if known:
        bench.say("I like figs")
        bench.drain()
    bench.record(bench.messages("I like figs", "I like plums"), kind="cut")
    bench.clock.advance(1)
    return bench


def test_erasing_everything_wins_in_any_order() -> None:
    orders = set()
    for seed in range(ORDERS):
        bench = pending()
        orders.add(tuple(side_by_side(bench, seed, partial(erase_user, user_id="ada"))))
        assert bench.facts() == [], seed
        assert "figs" not in bench.everything_stored(), seed
        assert "plums" not in bench.everything_stored(), seed
    assert len(orders) > ORDERS / 2  # the two really met in many ways


def test_erasing_a_thread_wins_in_any_order() -> None:
    orders = set()
    for seed in range(ORDERS):
        bench = pending()
        erase = partial(erase_thread, thread_id="T", clock=bench.clock)
        orders.add(tuple(side_by_side(bench, seed, erase)))
        assert bench.facts() == [], seed
        assert "figs" not in bench.everything_stored(), seed
    assert len(orders) > ORDERS / 2  # the two really met in many ways


def test_erasing_a_fact_wins_in_any_order() -> None:
    orders = set()
    for seed in range(ORDERS):
        bench = pending(known=True)
        (fact,) = FactStore.of_owner(bench.store, ADA).list()
        erase = partial(erase_fact, owner=ADA, fact_id=fact.id, clock=bench.clock)
        orders.add(tuple(side_by_side(bench, seed, erase)))
        assert bench.facts() == ["Likes plums"], seed
        assert "figs" not in bench.everything_stored(), seed
    assert len(orders) > ORDERS / 2  # the two really met in many ways


@pytest.mark.parametrize("known", [False, True])
def test_without_an_erase_the_same_conversation_is_remembered(known: bool) -> None:
    bench = pending(known=known)
    side_by_side(bench, 1, lambda _: None)
    assert bench.facts() == ["Likes figs", "Likes plums"]
    assert "I like figs" in bench.everything_stored()
