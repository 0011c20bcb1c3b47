"""Work behind turns: one thread an owner, which goes on with what was asked for meanwhile, also after a failure."""

import threading

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from graphs.process.behind import WorkBehind
from memory.namespaces import Owner

ADA, BOB = Owner.of("ada"), Owner.of("bob")


class Work:
    """Work that begins when it is let, and fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.gate, self.begun = threading.Event(), threading.Event()
        self.done: list[str] = []
        self.failures = failures
        self.behind = WorkBehind(self.work, "work", "nothing is done for %s")
        self.store = InMemoryStore()

    def work(self, _: BaseStore, owner: Owner) -> None:
        self.begun.set()
        assert self.gate.wait(60)
        self.done.append(owner.segment)
        if self.failures:
            self.failures -= 1
            raise ConnectionError


def test_who_asks_while_it_is_under_way_is_served_by_the_same_thread_once_more() -> None:
    work = Work()
    first = work.behind.ask(work.store, ADA)
    assert work.begun.wait(60)
    others = [work.behind.ask(work.store, ADA) for _ in range(5)]
    assert all(other is first for other in others)
    work.gate.set()
    first.result(60)
    assert work.done == [ADA.segment] * 2


def test_each_owner_and_each_store_has_its_own() -> None:
    work = Work()
    work.gate.set()
    ends = [work.behind.ask(store, owner) for store in (work.store, InMemoryStore()) for owner in (ADA, BOB)]
    for end in ends:
        end.result(60)
    assert sorted(work.done) == sorted([ADA.segment, BOB.segment] * 2)


def test_a_failure_is_logged_without_its_text_and_the_next_who_asks_is_served(caplog: pytest.LogCaptureFixture) -> None:
    work = Work(failures=1)
    work.gate.set()
    work.behind.ask(work.store, ADA).result(60)
    work.behind.ask(work.store, ADA).result(60)
    assert len(work.done) == 2
    assert [record.getMessage() for record in caplog.records] == [f"nothing is done for {ADA.due_key}: ConnectionError"]


def test_who_waits_goes_on_once_it_is_done_or_the_time_is_over() -> None:
    work = Work()
    work.behind.ask(work.store, ADA)
    work.behind.wait(0.0)
    assert work.done == []
    work.gate.set()
    work.behind.wait(60.0)
    assert work.done == [ADA.segment]
