"""The `langgraph` command as a child of `palimpsest dev`: it ends when its parent does, or its server cannot start."""

import logging
import sys
from pathlib import Path
from typing import Any

import langgraph_api.cli
from langgraph_cli.cli import cli

from graphs.cli.processes import end_with_worker, tether
from graphs.settings import read_env_file

_run = langgraph_api.cli.run_server


def _run_server(*given: Any, env: Any = None, **options: Any) -> None:
    _run(*given, env=read_env_file(Path(env)) if isinstance(env, str) else env, **options)


if __name__ == "__main__":  # the server's reloader imports this module a second time
    if "--tunnel" not in sys.argv:  # only the server's own banner tells the address of a tunnel
        logging.getLogger("langgraph_api.cli").addFilter(lambda record: "Welcome to" not in record.getMessage())
    # langgraph-api 0.16 looks for a free port on IPv4 alone, and reads no UTF-16; our parent has looked already.
    langgraph_api.cli._resolve_port = lambda _, port: port
    langgraph_api.cli.run_server = _run_server
    end_with_worker(tether(sys.stdin.fileno()))
    cli(prog_name="langgraph")
