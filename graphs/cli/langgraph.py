"""The `langgraph` command as a child of `palimpsest dev`: it ends when its parent does, or its server cannot start."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

from langgraph_cli.cli import cli

from graphs.cli.processes import end_with_worker, tether
from graphs.settings import Settings


def in_memory_only(run_server: Callable[..., None]) -> Callable[..., None]:
    """Return the server's start, with its rows of threads kept in memory: nothing would encrypt them on the disk.

    `disable_persistence` is the server's own option. The command line reads it from `langgraph.json`, after its own
    check of that file has dropped it (langgraph-cli 0.4.40).
    """

    def start(*args: Any, **options: Any) -> None:
        run_server(*args, **{**options, "disable_persistence": True})

    return start


if __name__ == "__main__":  # the server's reloader imports this module a second time
    end_with_worker(tether(sys.stdin.fileno()))
    if Settings.from_environment().encryption_key:
        server: Any = importlib.import_module("langgraph_api.cli")
        server.run_server = in_memory_only(server.run_server)
    cli(prog_name="langgraph")
