"""The `langgraph` command as a child of `palimpsest dev`: it ends when its parent does, or its server cannot start."""

import sys

from langgraph_cli.cli import cli

from graphs.cli.processes import end_with_worker, tether

if __name__ == "__main__":  # the server's reloader imports this module a second time
    end_with_worker(tether(sys.stdin.fileno()))
    cli(prog_name="langgraph")
