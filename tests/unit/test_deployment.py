"""What a deployment brings along is found by its name, and a wrong name says which variable to mend."""

import contextlib
import subprocess
import sys
import threading

import pytest

from graphs.process.deployment import Deployment, configured_service, load_deployment
from graphs.process.service import MemoryService
from graphs.settings import Settings
from graphs.tools import TOOLS
from tests.stories.serving import PROJECT

SAID_LATE = """
import os
import graphs.chat
os.environ["LANGSMITH_LANGGRAPH_API_VARIANT"] = "local_dev"
from graphs.process.deployment import service_of_process
print(service_of_process().settings.single_user)
"""


def test_what_a_server_says_after_the_graphs_were_imported_counts() -> None:
    command = [sys.executable, "-c", SAID_LATE]
    done = subprocess.run(command, cwd=PROJECT, env={}, capture_output=True, text=True, timeout=240, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_no_name_means_the_models_of_the_environment_and_the_shipped_tools() -> None:
    deployment = load_deployment("")
    assert deployment == Deployment()
    assert deployment.tools == TOOLS
    settings = Settings(data_dir=Settings().data_dir / "here")
    assert deployment.make_service(settings).settings is settings


@pytest.mark.parametrize("first", ["graphs.chat", "palimpsest"])
def test_its_module_may_import_from_the_public_door_whoever_is_imported_first(first: str) -> None:
    program = f"import {first}, palimpsest; print(sorted(palimpsest.build_graph().compile().get_graph().nodes))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT, env={"PALIMPSEST_DEPLOYMENT": "examples.own_model:deployment"},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert "'tools'" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "name", ["nothing", ":", "no.such.module:x", "graphs.process.deployment:nothing", "graphs:emit"]
)
def test_a_name_of_nothing_names_the_variable(name: str) -> None:
    with pytest.raises(ValueError, match="PALIMPSEST_DEPLOYMENT"):
        load_deployment(name)


MADE = list[object]()
ANOTHER = threading.Barrier(2)


def slowly(settings: Settings) -> MemoryService:
    with contextlib.suppress(threading.BrokenBarrierError):
        ANOTHER.wait(0.2)  # where nobody waits for whoever makes it, the other thread comes here too
    MADE.append(settings)
    return configured_service(settings)


slow = Deployment(make_service=slowly)
THREADS = """
from concurrent.futures import ThreadPoolExecutor
from graphs.process.deployment import service_of_process
from tests.unit.test_deployment import MADE
with ThreadPoolExecutor(2) as pool:
    one, two = pool.map(lambda _: service_of_process(), range(2))
print(one is two is service_of_process(), len(MADE))
"""


def test_threads_that_ask_at_the_same_time_get_the_one_that_is_made() -> None:
    command, environ = [sys.executable, "-c", THREADS], {"PALIMPSEST_DEPLOYMENT": "tests.unit.test_deployment:slow"}
    done = subprocess.run(command, cwd=PROJECT, env=environ, capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout == "True 1\n", done.stderr
