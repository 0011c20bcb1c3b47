"""One process at a time updates a user: locks of a real Postgres, and workers that would both ask the model."""

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

from memory.outbox.entry import Worker
from memory.worker.locks import Locks, aheld
from memory.worker.rollup import PROGRESS_KEY
from memory.worker.updater import MemoryUpdater
from tests.e2e.waiting import eventually
from tests.fakes import RecordingModel, accounts, learns
from tests.memory_bench import ADA, MemoryBench
from tests.postgres import Postgres
from tests.stores import FaultyStore

pytest.importorskip("psycopg")
SECONDS = 60.0
SESSIONS = """
    SELECT pid, state, backend_xmin, backend_xid FROM pg_stat_activity
    WHERE application_name = 'palimpsest locks' AND pid <> pg_backend_pid()"""
Process = Any


@pytest.fixture
def processes(database: str) -> Iterator[tuple[Process, Process]]:
    """What two processes have."""
    from graphs.postgres_locks import PostgresLocks

    with closing(PostgresLocks(database)) as one, closing(PostgresLocks(database)) as other:
        yield one, other


def sessions(postgres: Postgres, database: str) -> list[tuple[Any, ...]]:
    with postgres.connect(database) as connection:
        return list(connection.execute(SESSIONS).fetchall())


def test_one_process_at_a_time_has_a_user(processes: tuple[Process, Process]) -> None:
    one, other = processes
    assert one.take("ada")
    assert not other.take("ada")
    assert other.take("bob")
    one.give_back("ada")
    assert other.take("ada")
    assert not one.take("ada")


def test_a_process_has_a_user_until_it_gave_it_back_as_often_as_it_took_it(processes: tuple[Process, Process]) -> None:
    one, other = processes
    assert one.take("ada")
    assert one.take("ada")
    one.give_back("ada")
    assert not other.take("ada")
    one.give_back("ada")
    assert other.take("ada")


def test_users_of_another_database_are_others(processes: tuple[Process, Process], postgres: Postgres) -> None:
    from graphs.postgres_locks import PostgresLocks

    one, _ = processes
    assert one.take("ada")
    with closing(PostgresLocks(postgres.database())) as elsewhere:
        assert elsewhere.take("ada")


def test_a_session_that_ends_blocks_nobody(
    processes: tuple[Process, Process], postgres: Postgres, database: str
) -> None:
    one, other = processes
    assert one.take("ada")
    postgres.execute(*(f"SELECT pg_terminate_backend({pid}, 10000)" for pid, *_ in sessions(postgres, database)))
    assert other.take("ada")
    one.give_back("ada")  # it went already
    other.give_back("ada")
    assert one.take("ada")


def test_locks_are_one_open_transaction_of_one_session_which_holds_up_no_vacuum(
    processes: tuple[Process, Process], postgres: Postgres, database: str
) -> None:
    one, _ = processes
    eventually(lambda: not sessions(postgres, database))  # a session ends a little after its connection
    assert one.take("ada")
    assert one.take("bob")
    assert [found[1:] for found in sessions(postgres, database)] == [("idle in transaction", None, None)]
    one.give_back("ada")
    one.give_back("bob")
    eventually(lambda: not sessions(postgres, database))


def test_a_database_that_ends_idle_transactions_leaves_this_one_alone(postgres: Postgres) -> None:
    from graphs.postgres_locks import PostgresLocks

    limited = (
        f"{postgres.database()}&options=-cidle_in_transaction_session_timeout%3D1ms%20-ctransaction_timeout%3D250ms"
    )
    with closing(PostgresLocks(limited)) as one, closing(PostgresLocks(limited)) as other:
        assert one.take("ada")
        postgres.execute("SELECT pg_sleep(0.5)")
        assert not other.take("ada")


class Overtaken(InMemoryStore):
    """Where a worker that is about to put its lease on an entry is overtaken by another."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.overtaken = threading.Event(), threading.Event()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        if "slow" in map(_claimant, given) and not self.reached.is_set():
            self.reached.set()
            assert self.overtaken.wait(SECONDS)
        return super().batch(given)


def _claimant(op: Op) -> str | None:
    lease = (op.value or {}).get("lease") if isinstance(op, PutOp) else None
    return lease["owner"]["process"] if lease else None


def race(locks: tuple[Locks | None, Locks | None]) -> int:
    """Let two processes drain one update, the second while the first claims it; return how often the model is asked."""
    store = Overtaken()
    bench = MemoryBench(store=FaultyStore(store))
    bench.say("I like figs")

    both_ask = threading.Event()

    def answer(messages: list[BaseMessage]) -> str:
        if store.overtaken.is_set():
            both_ask.set()
        else:  # the quick one, while the slow one has not claimed yet: it must not be done before that asks, too
            store.overtaken.set()
            assert both_ask.wait(SECONDS)
        return learns(messages)

    model = RecordingModel(respond=answer)
    slow, quick = (
        MemoryUpdater(
            store, lambda _: model, clock=bench.clock, config=bench.config, is_alive=lambda _: True, locks=each,
            worker=Worker("here", number, process, ""),
        )
        for number, (process, each) in enumerate(zip(("slow", "quick"), locks, strict=True))
    )  # fmt: skip
    with ThreadPoolExecutor(1) as pool:
        draining = pool.submit(slow.drain, ADA)
        assert store.reached.wait(SECONDS)
        left = quick.drain(ADA)
        store.overtaken.set()
        draining.result(SECONDS)
    assert bench.facts() == ["Likes figs"]
    assert bench.entries() == []
    assert locks[1] is None or left.due is not None  # who is told to wait looks again
    return len(model.prompts)


def test_two_processes_that_drain_a_user_at_the_same_time_ask_the_model_once(
    processes: tuple[Process, Process],
) -> None:
    assert race(processes) == 1


def test_leases_alone_apply_once_what_two_processes_asked_for() -> None:
    assert race((None, None)) == 2


async def test_a_run_waits_for_the_process_that_works_on_its_user(processes: tuple[Process, Process]) -> None:
    one, other = processes
    assert one.take(ADA.segment)
    async with aheld(other, ADA) as is_ours:
        assert not is_ours
    timer = threading.Timer(0.1, one.give_back, [ADA.segment])
    timer.start()
    async with aheld(other, ADA, patience=SECONDS) as is_ours:
        assert is_ours
    timer.join()


async def test_a_roll_up_is_left_to_the_process_that_works_on_its_user(processes: tuple[Process, Process]) -> None:
    one, other = processes
    bench = MemoryBench(model=RecordingModel(respond=accounts))
    updater = MemoryUpdater(bench.store, bench.load, clock=bench.clock, locks=other)
    assert one.take(ADA.segment)
    assert await updater.aroll_up([ADA]) == [False]
    assert bench.store.get(ADA.namespace("journal"), PROGRESS_KEY) is None
    one.give_back(ADA.segment)
    await updater.aroll_up([ADA])
    assert bench.store.get(ADA.namespace("journal"), PROGRESS_KEY) is not None


class NoDatabase:
    """Locks that nobody answers for."""

    def take(self, name: str) -> bool:
        raise ConnectionError(name)

    def give_back(self, name: str) -> None:
        raise AssertionError(name)

    def close(self) -> None:
        """Nothing was taken."""


async def test_where_no_lock_can_be_asked_for_leases_do_what_they_can() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    updater = MemoryUpdater(bench.store, bench.load, clock=bench.clock, locks=NoDatabase())
    updater.drain(ADA)
    assert bench.facts() == ["Likes figs"]
    bench.say("I like tea", begin=2)
    await updater.adrain(ADA)
    assert bench.facts() == ["Likes figs", "Likes tea"]
