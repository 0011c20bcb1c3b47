"""What of the laws a run asks for: whole tables, and a Postgres for the matrix."""

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import Postgres, running_postgres


def values(case: pytest.Function) -> set[tuple[int, str]]:
    """Return what it has of each list of parameters: the list's number, and the value's name."""
    # Only these ids tell lists apart: `params` has a value for each name, and `indices` count the cases.
    return set(enumerate(case.callspec._idlist)) if hasattr(case, "callspec") else set()


def half(cases: list[pytest.Function]) -> set[pytest.Function]:
    """Return half of a law's cases, as different from each other as can be: each value of each parameter is in one."""
    chosen, seen = set[pytest.Function](), Counter[tuple[int, str]]()
    wanted = set().union(*map(values, cases))
    while wanted - seen.keys() or 2 * len(chosen) < len(cases):

        def new_and_rare(case: pytest.Function) -> tuple[int, int]:
            return len(values(case) - seen.keys()), -sum(map(seen.__getitem__, values(case)))

        case = max((case for case in cases if case not in chosen), key=new_and_rare)
        chosen.add(case)
        seen.update(values(case))
    return chosen


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, unless `--whole` asks for it, half of the cases of a law in which parameters are crossed."""
    if config.getoption("--whole"):
        return
    laws = defaultdict[str, list[pytest.Function]](list)
    for item in items:
        is_law = item.path.parent == Path(__file__).parent and item.path.name != "test_matrix.py"  # that chooses itself
        if is_law and isinstance(item, pytest.Function) and len(values(item)) > 1:
            laws[item.nodeid.partition("[")[0]].append(item)
    left_out = {case for cases in laws.values() for case in set(cases) - half(cases)}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session", autouse=True)
def worlds_end_with_the_run() -> Iterator[None]:
    yield
    from tests.laws.worlds import root  # the process that only hands tests out need not import what they import

    if root.cache_info().currsize:
        shutil.rmtree(root())


@pytest.fixture
def is_whole(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--whole"))


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    if not request.config.getoption("--postgres"):
        pytest.skip("--postgres runs it")
    with running_postgres(required=True) as server:
        yield server


@pytest.fixture(scope="session")
def database(postgres: Postgres) -> str:
    """Where one cell after another has the place for itself."""
    return postgres.database()
