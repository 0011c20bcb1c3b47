"""Child processes that end: when they are told to, and when their parent ends, however it ends."""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence

Child = subprocess.Popen[bytes]


def start(command: Sequence[str], environ: Mapping[str, str]) -> Child:
    """Start a child in a session of its own, its standard input a pipe that only this process holds.

    In a session of its own it does not get the terminal's Ctrl-C: its parent decides who ends when.
    """
    return subprocess.Popen(command, env=dict(environ), stdin=subprocess.PIPE, start_new_session=True)


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


def tether(pipe: int) -> None:
    """End this process (SIGTERM) once the other end of the pipe is closed, which the system does for a dead parent.

    Args:
        pipe: The descriptor of this process's standard input, which `start` made a pipe. It is read past Python's
            own buffer, whose lock would be held when the interpreter shuts down.
    """
    threading.Thread(target=_watch, args=(pipe,), name="tether", daemon=True).start()


def _watch(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
