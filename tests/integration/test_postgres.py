"""Memory on a real Postgres: paging, writers that wait for each other, processes, and a whole update."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from memory.effects import StoreEffects, put, run, scan
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.outbox.outbox import due_owners, owners_with, read_entries
from tests.forgetting import erase_user
from tests.memory_bench import ADA, MemoryBench
from tests.postgres import INDEX, Postgres, open_sync
from tests.stores import FaultyStore

HERE = Path(__file__).parents[2]
FACTS = Owner.of("ada").namespace("facts")
WRITER = """
import sys
from memory.config import MemoryConfig
from memory.facts.store import FactStore
from tests.postgres import open_sync

with open_sync(sys.argv[1]) as store:
    facts = FactStore(store, "ada", config=MemoryConfig(max_facts=int(sys.argv[3])))
    for n in range(10):
        facts.create(f"shared {n}", "context", 0.5)
        facts.create(f"own {sys.argv[2]}-{n}", "context", 0.9)
"""


def write(*keys: str, by: str = "the store") -> StoreEffects[None]:
    yield [put(FACTS, key, {"by": by}) for key in keys]


def write_from_processes(database: str, processes: int, max_facts: int) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, database, str(n), str(max_facts)], cwd=HERE)
        for n in range(processes)
    ]
    assert [process.wait(240) for process in running] == [0] * processes


def test_rows_of_one_transaction_have_no_order_and_are_all_read(postgres: Postgres) -> None:
    keys = [f"{number:04}" for number in range(3000)]
    with postgres.store() as store:
        run(store, write(*keys))
        assert [item.key for item in run(store, scan(FACTS, page=10))] == keys


def test_a_writer_that_a_deadlock_ended_writes_again(postgres: Postgres) -> None:
    database = postgres.database()
    claim = "UPDATE store SET updated_at = now() WHERE key = %s"
    blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    # Who waits looks once for a deadlock, so long after it began to: the store must be the last who begins.
    with (
        open_sync(f"{database}&options=-cdeadlock_timeout%3D100ms") as store,
        postgres.connect(f"{database}&options=-cdeadlock_timeout%3D10min") as other,
        postgres.connect(database) as between,
        ThreadPoolExecutor(2) as pool,
    ):

        def until_blocked(writers: int) -> None:
            while between.execute(blocked).fetchone()[0] < writers:
                assert not writing.done()

        run(store, write("a", "b", "c"))
        other.execute(claim, ["c"])
        between.execute(claim, ["b"])
        writing = pool.submit(run, store, write("a", "b", "c", by="the store, again"))
        until_blocked(1)
        claiming = pool.submit(other.execute, claim, ["a"])
        until_blocked(2)
        between.commit()
        claiming.result(60)
        other.commit()
        writing.result(60)
        assert [item.value for item in run(store, scan(FACTS))] == [{"by": "the store, again"}] * 3


def test_two_processes_writing_the_same_and_different_facts_lose_and_double_none(postgres: Postgres) -> None:
    database = postgres.database()
    with open_sync(database) as store:
        write_from_processes(database, 2, max_facts=500)
        facts = FactStore(store, "ada").list()
    expected = {f"shared {n}" for n in range(10)} | {f"own {process}-{n}" for process in range(2) for n in range(10)}
    assert sorted(fact.content for fact in facts) == sorted(expected)
    assert len({fact.id for fact in facts}) == len(facts)


def test_F8_two_processes_never_pass_the_limit_for_good(postgres: Postgres) -> None:
    database = postgres.database()
    with open_sync(database) as store:
        write_from_processes(database, 2, max_facts=8)
        assert len(FactStore(store, "ada").list()) <= 8


def test_turns_become_facts_once_and_an_erase_leaves_nothing(postgres: Postgres) -> None:
    with postgres.store(INDEX) as inner:
        bench = MemoryBench(store=FaultyStore(inner))
        bench.say("I like figs")
        bench.say("I like tea", begin=2, thread="T2")
        assert run(inner, due_owners(None)) == run(inner, owners_with("outbox")) == [ADA]

        bench.drain_all()
        bench.say("I like figs", begin=3)
        bench.drain_all()

        assert sorted(fact.content for fact in FactStore.of_owner(inner, ADA).list()) == ["Likes figs", "Likes tea"]
        assert run(inner, read_entries(ADA)) == []
        assert run(inner, due_owners(None)) == []
        erase_user(inner, "ada")
        assert FactStore.of_owner(inner, ADA).list() == []
        assert "figs" not in repr([item.value for item in inner.search(("palimpsest",), limit=1000)])
