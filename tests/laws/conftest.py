"""A Postgres for the matrix, where the run asks for one."""

import shutil
from collections.abc import Iterator

import pytest

from tests.laws.worlds import root
from tests.postgres import Postgres, running_postgres


@pytest.fixture(scope="session", autouse=True)
def worlds_end_with_the_run() -> Iterator[None]:
    yield
    if root.cache_info().currsize:
        shutil.rmtree(root())


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
