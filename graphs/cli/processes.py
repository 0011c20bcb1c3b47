"""Child processes that end: when they are told to, when their parent ends, and when their only worker does.

As a program of its own it is the `langgraph` command as a child of `palimpsest dev`.
"""

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Child = subprocess.Popen[bytes]

PYTHON = (sys.executable, "-P", "-m")
"""Runs a module of ours, also in a folder that has a `memory` or a `graphs` of its own."""

_POLL_SECONDS = 0.05


def start(command: Sequence[str], environ: Mapping[str, str]) -> Child:
    """Start a child in a session of its own, its standard input a pipe that only this process holds.

    In a session of its own it does not get the terminal's Ctrl-C: its parent decides who ends when. What it writes,
    only its owner reads.
    """
    return subprocess.Popen(command, env=dict(environ), stdin=subprocess.PIPE, start_new_session=True, umask=0o077)


def stop(child: Child, grace_seconds: float) -> int:
    """Ask a child to end (SIGTERM), end it and its own children after the grace period, and return its exit code."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(grace_seconds)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):  # asked a second time
            os.killpg(child.pid, signal.SIGKILL)
    if child.stdin:
        child.stdin.close()
    return child.wait()


def settle_child(child: Child) -> None:
    """Tell a tethered child that it has started: from now on it may outlive its worker."""
    if child.stdin:
        child.stdin.write(b"\n")
        child.stdin.flush()


def tether(pipe: int) -> threading.Event:
    """End this process (SIGTERM) once the other end of the pipe is closed, which the system does for a dead parent.

    Args:
        pipe: The descriptor of this process's standard input, which `start` made a pipe. It is read past Python's
            own buffer, whose lock would be held when the interpreter shuts down.

    Returns:
        What is set once the parent has called `settle_child`.
    """
    settled = threading.Event()

    def watch() -> None:
        while os.read(pipe, 1):
            settled.set()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="tether", daemon=True).start()
    return settled


def end_with_worker(settled: threading.Event) -> None:
    """End this process if its worker ends by itself before all is `settled`, or is killed, with a shell's exit code.

    A reloader (`langgraph dev`) outlives a worker that ends: it waits for an edit of the code, and whoever waits for
    the server to answer would wait in vain. After a start that edit may come, but nobody edits a worker that the system
    killed for its memory.
    """

    def watch() -> None:
        while True:
            for worker in multiprocessing.active_children():
                worker.join()
                code = worker.exitcode or 0
                # The reloader itself ends a worker with SIGTERM, to start the next one.
                if code != -signal.SIGTERM and (code < 0 or not settled.is_set()):
                    os._exit(128 - code if code < 0 else code or 1)
            # Seldom enough to cost nothing; a worker takes seconds to start, and one never seen alive is unknown.
            time.sleep(_POLL_SECONDS)

    threading.Thread(target=watch, name="worker", daemon=True).start()


def run_langgraph() -> None:
    """Run the `langgraph` command that the line says; it ends when its parent does, or its server cannot start."""
    import langgraph_api.cli  # only here: other children need no server
    from langgraph_cli.cli import cli

    from graphs.settings import read_env_file

    run = langgraph_api.cli.run_server

    def run_server(*given: Any, env: Any = None, **options: Any) -> None:
        run(*given, env=read_env_file(Path(env)) if isinstance(env, str) else env, **options)

    if "--tunnel" not in sys.argv:  # only the server's own banner tells the address of a tunnel
        logging.getLogger("langgraph_api.cli").addFilter(lambda record: "Welcome to" not in record.getMessage())
    # langgraph-api 0.16 looks for a free port on IPv4 alone, and reads no UTF-16; our parent has looked already.
    langgraph_api.cli._resolve_port = lambda _, port: port
    langgraph_api.cli.run_server = run_server
    end_with_worker(tether(sys.stdin.fileno()))
    cli(prog_name="langgraph")


if __name__ == "__main__":  # the server's reloader imports this module a second time
    run_langgraph()
