"""What a deployment brings along is found by its name, and a wrong name says which variable to mend."""

import contextlib
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from graphs.process.deployment import Deployment, load_deployment, once_in_process
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


def test_the_example_is_found() -> None:
    deployment = load_deployment("examples.own_model:deployment")
    assert [getattr(tool, "name", "") for tool in deployment.tools] == ["weather"]


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


def test_threads_that_ask_at_the_same_time_get_the_one_that_is_made() -> None:
    made, another = list[object](), threading.Barrier(2)

    @once_in_process
    def service() -> object:
        with contextlib.suppress(threading.BrokenBarrierError):
            another.wait(0.2)  # where nobody waits for whoever makes it, the other thread comes here too
        made.append(object())
        return made[-1]

    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda _: service(), range(2))
    assert one is two is service()
    assert len(made) == 1
