"""The `langgraph` command as a child of `palimpsest dev`: it ends when its parent does, or its server cannot start."""

import logging
import sys

from langgraph_cli.cli import cli

from graphs.cli.processes import end_with_worker, tether

if __name__ == "__main__":  # the server's reloader imports this module a second time
    if "--tunnel" not in sys.argv:  # only the server's own banner tells the address of a tunnel
        logging.getLogger("langgraph_api.cli").addFilter(lambda record: "Welcome to" not in record.getMessage())
    end_with_worker(tether(sys.stdin.fileno()))
    cli(prog_name="langgraph")
