"""Options of the test run, and how it ends."""

import gc
import importlib.util
import signal
import sysconfig
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.templates import REFUSED

# A busy machine is no failure; with --whole there are as many examples as Hypothesis has by itself.
settings.register_profile("short", deadline=None, max_examples=50)
settings.register_profile("whole", deadline=None)

_SECONDS_PER_TEST = 600
_SECONDS_PER_KILL = 60
_SECONDS_TO_END = 60.0
# One for all agents of a process that are called without `await`.
_STAYS = "palimpsest-agents"
# It takes two minutes of CPU, and a file stays with one worker: begun late, it would be left to one core in the end.
_BEGUN_FIRST = "test_linear_time.py"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=1, help="how often the server tests crash the server (default: 1)")
    parser.addoption("--page", action="store_true", help="run all tests of the page in a browser, not a few")
    parser.addoption("--pictures", action="store_true", help="keep the pictures of the page in docs/")
    parser.addoption(
        "--postgres", action="store_true", help="fail where Postgres is not installed, instead of skipping"
    )
    parser.addoption(
        "--whole",
        action="store_true",
        help="run each law with all that it is told of, and interrupt other stores at every place too",
    )
    parser.addoption(
        "--servers",
        type=int,
        default=0,
        help="test so many servers over one Postgres, instead of `langgraph dev`",
    )
    parser.addoption(
        "--installed", action="store_true", help="fail unless the packages under test are installed ones, not sources"
    )


def tested() -> list[Path]:
    """Return the files of the packages that an import finds now."""
    specs = map(importlib.util.find_spec, ("graphs", "memory", "palimpsest"))
    return [Path(spec.origin) for spec in specs if spec and spec.origin]


def pytest_configure(config: pytest.Config) -> None:
    # Nobody is reached over TLS: to read the machine's certificates takes each client of a model 40 ms of CPU.
    environment = pytest.MonkeyPatch()
    environment.delenv("SSL_CERT_FILE", raising=False)
    environment.setenv("SSL_CERT_DIR", str(Path(__file__).parent))
    settings.load_profile("whole" if config.getoption("--whole") else "short")
    site = Path(sysconfig.get_paths()["purelib"])
    sources = [str(file) for file in tested() if not file.is_relative_to(site)]
    if sources and config.getoption("--installed"):
        raise pytest.UsageError(f"--installed: the tests would run against {', '.join(sources)}")
    config.addinivalue_line("markers", "whole_page: a test in a browser that `make e2e-page` runs, and no other target")
    # A terminated run ends like an interrupted one: fixtures stop the servers under test.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


# What is imported and collected stays until the end of the run: looking through it for garbage, again and again, took a
# quarter of the CPU of a collection and a tenth of that of the tests.
gc.disable()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


class Together(LoadScopeScheduling):
    """Has one worker take what shares something that is dear to make, in the order in which tests are collected.

    A file of stories shares its browser and servers, an operation of the matrix its worlds. Marks cannot say so: those
    of xdist change the id of a test, which pytest 9.2 does not let happen, and says nothing.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        if file.endswith("/test_matrix.py"):
            return test.partition("[")[2].partition("-")[0]
        return file if "/stories/" in file or file.endswith("/test_costs.py") else nodeid

    def _assign_work_unit(self, node: Any) -> None:
        # Stories wait for servers and browsers, so one worker uses the cores meanwhile, and takes stories last.
        stories = [scope for scope in self.workqueue if "/stories/" in scope] if node is self.nodes[0] else []
        for scope in stories:
            self.workqueue.move_to_end(scope)
        super()._assign_work_unit(node)
        for scope in reversed(stories):
            if scope in self.workqueue:
                self.workqueue.move_to_end(scope, last=False)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together | None:
    return Together(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_report_header() -> str:
    return f"tests of: {', '.join(map(str, tested()))}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != _BEGUN_FIRST)  # the others stay in their order
    kills = int(config.getoption("--kills"))
    for item in items:
        if item.get_closest_marker("whole_page") and not config.getoption("--page"):
            item.add_marker(pytest.mark.skip(reason="make e2e-page runs it"))
        if "kills" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(_SECONDS_PER_TEST + kills * _SECONDS_PER_KILL))


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """How often a test that crashes the server should do so."""
    return int(request.config.getoption("--kills"))


def _threads_of_memory() -> list[threading.Thread]:
    named = [thread for thread in threading.enumerate() if thread.name.startswith("palimpsest-")]
    return [thread for thread in named if thread.name != _STAYS and thread.is_alive()]


@pytest.fixture(autouse=True)
def nothing_of_memory_runs_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """See that a unit test stops what it started: what waits would be tried again in the middle of another test."""
    before = _threads_of_memory()
    yield
    # A test of another ring in the same process may have left a queue that goes on, and starts threads now and then.
    if request.path.parent.name != "unit" or before:
        return
    ours = _threads_of_memory()
    for thread in ours:
        thread.join(_SECONDS_TO_END)  # what was told to stop is given time to
    assert not [thread.name for thread in ours if thread.is_alive()], "left running; close the service or the queue"


@pytest.fixture(autouse=True)
def no_prompt_was_refused() -> Iterator[None]:
    """See that every prompt was one that strict chat templates take: what memory sends may fail without a word."""
    REFUSED.clear()
    yield
    assert not REFUSED
