"""What of the laws a run asks for: whole tables, and a Postgres for the matrix."""

import shutil
from collections.abc import Iterator

import pytest

from tests.laws.talk import SkipsIf
from tests.laws.worlds import root
from tests.postgres import Postgres, running_postgres


@pytest.fixture(scope="session", autouse=True)
def worlds_end_with_the_run() -> Iterator[None]:
    yield
    if root.cache_info().currsize:
        shutil.rmtree(root())


@pytest.fixture
def is_whole(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--whole"))


@pytest.fixture
def unless_whole(is_whole: bool) -> SkipsIf:
    """Return what skips a case of many in the short run."""

    def skip(is_one_of_many: bool) -> None:
        if is_one_of_many and not is_whole:
            pytest.skip("--whole runs it")

    return skip


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
