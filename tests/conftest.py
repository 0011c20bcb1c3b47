"""Options of the test run, and how it ends."""

import importlib.util
import signal
import sysconfig
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None)  # a busy machine is no failure
settings.load_profile("house")

_SECONDS_PER_TEST = 300
_SECONDS_PER_KILL = 60


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=1, help="how often the server tests crash the server (default: 1)")
    parser.addoption(
        "--mixed-seconds", type=float, default=5.0, help="how long two processes share a folder (default: 5)"
    )
    parser.addoption("--pictures", action="store_true", help="keep the pictures of the page in docs/")
    parser.addoption(
        "--postgres", action="store_true", help="fail where Postgres is not installed, instead of skipping"
    )
    parser.addoption(
        "--installed", action="store_true", help="fail unless the packages under test are installed ones, not sources"
    )


def tested() -> list[Path]:
    """Return the files of the packages that an import finds now."""
    specs = map(importlib.util.find_spec, ("graphs", "memory", "palimpsest"))
    return [Path(spec.origin) for spec in specs if spec and spec.origin]


def pytest_configure(config: pytest.Config) -> None:
    site = Path(sysconfig.get_paths()["purelib"])
    sources = [str(file) for file in tested() if not file.is_relative_to(site)]
    if sources and config.getoption("--installed"):
        raise pytest.UsageError(f"--installed: the tests would run against {', '.join(sources)}")
    # A terminated run ends like an interrupted one: fixtures stop the servers under test.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_report_header() -> str:
    return f"tests of: {', '.join(map(str, tested()))}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kills = int(config.getoption("--kills"))
    for item in items:
        if "kills" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(_SECONDS_PER_TEST + kills * _SECONDS_PER_KILL))


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """How often a test that crashes the server should do so."""
    return int(request.config.getoption("--kills"))


@pytest.fixture
def mixed_seconds(request: pytest.FixtureRequest) -> float:
    """How long two processes do mixed work on one folder."""
    return float(request.config.getoption("--mixed-seconds"))
