"""Stores and servers that integration tests share."""

import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from graphs.process.service import MemoryService
from tests.memory_app import MemoryApp
from tests.patience import be_patient
from tests.postgres import INDEX, Postgres, running_postgres


@pytest.fixture(autouse=True)
def services_are_patient_and_end_with_their_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the turns of every service that a test made wait for memory, and close it when the test ends.

    A queue that goes on would call its model in the middle of another test.
    """
    made: list[MemoryService] = []
    begin = MemoryService.__init__

    @functools.wraps(begin)
    def noted(service: MemoryService, *args: Any, **options: Any) -> None:
        begin(service, *args, **options)
        be_patient(service)
        made.append(service)

    monkeypatch.setattr(MemoryService, "__init__", noted)
    yield
    for service in made:
        service.close(0.0)


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    with running_postgres(required=bool(request.config.getoption("--postgres"))) as server:
        yield server


@pytest.fixture
def database(postgres: Postgres) -> str:
    """Where nothing is yet."""
    return postgres.database()


@pytest.fixture(params=["memory", "index", "sqlite", "postgres", "postgres index", "async postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    """Every store that facts must work in; a module may have a narrower one."""
    with ExitStack() as stack:
        yield stack.enter_context(store_named(request.param, request, tmp_path))


def store_named(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> AbstractContextManager[BaseStore]:
    if name == "memory":
        return nullcontext(InMemoryStore())
    if name == "index":
        return nullcontext(InMemoryStore(index=INDEX))
    if name == "sqlite":
        return sqlite_store(tmp_path / "store.sqlite")
    postgres: Postgres = request.getfixturevalue("postgres")
    if name == "async postgres":
        return postgres.store_of_a_loop(INDEX)
    return postgres.store(INDEX if name == "postgres index" else None)


@contextmanager
def sqlite_store(path: Path) -> Iterator[BaseStore]:
    with SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
        yield store


@pytest.fixture
def app() -> MemoryApp:
    """The memory API in process."""
    return MemoryApp()


@pytest.fixture
def ada(app: MemoryApp) -> httpx.AsyncClient:
    """A user of it."""
    return app.user("ada")
