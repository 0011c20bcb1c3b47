"""Options of the test run, and how it ends."""

import signal

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=1, help="how often the server tests crash the server (default: 1)")


def pytest_configure() -> None:
    # A terminated run ends like an interrupted one: fixtures stop the servers under test.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """How often a test that crashes the server should do so."""
    return int(request.config.getoption("--kills"))
