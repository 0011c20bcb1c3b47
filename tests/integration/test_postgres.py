"""Memory on a real Postgres: paging, writers that wait for each other, processes, and a whole update."""

from memory.door import StoreEffects, put, run, scan
from memory.namespaces import Owner
from tests.postgres import Postgres

FACTS = Owner.of("ada").namespace("facts")


def write(*keys: str, by: str = "the store") -> StoreEffects[None]:
    yield [put(FACTS, key, {"by": by}) for key in keys]


def test_rows_of_one_transaction_have_no_order_and_are_all_read(postgres: Postgres) -> None:
    keys = [f"{number:04}" for number in range(3000)]
    with postgres.store() as store:
        run(store, write(*keys))
        assert [item.key for item in run(store, scan(FACTS, page=10))] == keys
