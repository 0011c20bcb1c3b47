"""Servers and models that the outer ring shares: one of each per test module, started on first use."""

from collections.abc import Iterator

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.e2e.dev_server import PROJECT, DevServer
from tests.stub_model import StubModel, echo


@pytest.fixture(scope="module")
def stub() -> Iterator[StubModel]:
    """A model server; each test that changes `respond` changes it for itself only (see `model`)."""
    with StubModel() as stub:
        yield stub


@pytest.fixture
def model(stub: StubModel) -> StubModel:
    """The module's model server, echoing and with nothing recorded."""
    stub.respond = echo
    stub.clear()
    return stub


@pytest.fixture(scope="module")
def bare_server(tmp_path_factory: pytest.TempPathFactory, stub: StubModel) -> Iterator[DevServer]:
    """A server with the project's persistence and the smallest graph, without memory."""
    with DevServer(
        tmp_path_factory.mktemp("bare"),
        config=PROJECT / "tests/e2e/support/langgraph.json",
        environment={"OPENAI_BASE_URL": stub.url, "OPENAI_API_KEY": "stub"},
    ) as server:
        yield server


@pytest.fixture
def bare(bare_server: DevServer, model: StubModel) -> Iterator[SyncLangGraphClient]:
    """A client of the bare server, whose model echoes."""
    with get_sync_client(url=bare_server.url) as client:
        yield client
