"""Servers and models that the outer ring shares: one of each per test module, started on first use."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.e2e.browsing import chromium, opened
from tests.e2e.dev_server import DevServer
from tests.e2e.langhost.cluster import Cluster, running_cluster
from tests.e2e.langhost.skipped import SKIPPED
from tests.postgres import Postgres, running_postgres
from tests.stories.serving import PROJECT
from tests.stub_model import StubModel, echo

_SECONDS, _SECONDS_PER_KILL = 900, 120
"""How long a test of several servers may take: beside other work, each of them starts for minutes."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items if config.getoption("--servers") else ():
        kills = int(config.getoption("--kills")) if "kills" in getattr(item, "fixturenames", ()) else 0
        item.add_marker(pytest.mark.timeout(_SECONDS + kills * _SECONDS_PER_KILL), append=False)
        file, test = item.path.name, getattr(item, "originalname", item.name)
        reason = SKIPPED.get(file) or SKIPPED.get(f"{file}::{test}")
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def kind_of_server(request: pytest.FixtureRequest) -> Iterator[None]:
    """`langgraph dev`, or with `--servers` so many processes over a Postgres and a Redis."""
    processes = int(request.config.getoption("--servers"))
    if not processes:
        yield
        return
    with running_cluster(processes) as DevServer.cluster:
        yield
    DevServer.cluster = None


@pytest.fixture(scope="module")
def stub() -> Iterator[StubModel]:
    """A model server; each test that changes `respond` changes it for itself only (see `model`)."""
    with StubModel() as stub:
        yield stub


@pytest.fixture
def model(stub: StubModel) -> Iterator[StubModel]:
    """The module's model server, echoing and with nothing recorded."""
    stub.respond = echo
    stub.clear()
    yield stub
    stub.raise_failures()


@pytest.fixture(scope="module")
def postgres(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    """A Postgres that no other module uses: its tests may stop it."""
    with running_postgres(required=bool(request.config.getoption("--postgres"))) as server:
        yield server


class Serve(Protocol):
    """Starts a server whose model is the stub."""

    def __call__(self, config: str = "langgraph.json", **environment: str) -> DevServer:
        """Return the server of a configuration of the project, running, with these variables."""


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory, stub: StubModel) -> Iterator[Serve]:
    """Starts servers of the module; they are stopped after its last test."""
    with ExitStack() as running:

        def start(config: str = "langgraph.json", **environment: str) -> DevServer:
            folder = tmp_path_factory.mktemp(Path(config).stem)
            variables = {"OPENAI_BASE_URL": stub.url, "OPENAI_API_KEY": "stub", **environment}
            return running.enter_context(DevServer(folder, config=PROJECT / config, environment=variables))

        yield start


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """What several servers share, for tests of several servers."""
    if not DevServer.cluster:
        pytest.skip("needs servers over Postgres and Redis, which `make e2e-postgres` installs and starts")
    return DevServer.cluster


@pytest.fixture
async def client(server: DevServer) -> AsyncIterator[LangGraphClient]:
    """A client of the module's own `server`."""
    async with get_client(url=server.url) as client:
        yield client


@pytest.fixture
async def thread_id(client: LangGraphClient) -> str:
    """A new thread."""
    return (await client.threads.create())["thread_id"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser, for tests that are marked `NEEDED`."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Any, server: DevServer) -> Iterator[Any]:
    """The page of the module's own `server`, in a window of its own."""
    with opened(browser, server.url) as page:
        yield page
