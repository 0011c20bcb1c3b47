"""Memory on a real Postgres: paging, writers that wait for each other, processes, and a whole update."""

from concurrent.futures import ThreadPoolExecutor

from memory.effects import StoreEffects, put, run, scan
from memory.namespaces import Owner
from tests.postgres import Postgres, open_sync

FACTS = Owner.of("ada").namespace("facts")


def write(*keys: str, by: str = "the store") -> StoreEffects[None]:
    yield [put(FACTS, key, {"by": by}) for key in keys]


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
