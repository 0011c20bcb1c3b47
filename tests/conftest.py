"""Options of the test run."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=1, help="how often the server tests crash the server (default: 1)")


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """How often a test that crashes the server should do so."""
    return int(request.config.getoption("--kills"))
