"""The local model as `palimpsest dev` brings it up: weights at hand, server started, ready to answer."""

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click
import httpx

from graphs.cli.shell import Refused
from graphs.local import server, weights
from graphs.local.weights import Weights
from graphs.process.failures import lacking

_POLL_SECONDS = 0.25
_SAY_EVERY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A local model's server that answers.

    Attributes:
        name: What it serves, for people.
        base_url: Where, for a client of OpenAI's protocol.
        background_url: Where it does so with a low priority.
        process: Who; it ends when this process does, also after that has become another program.
    """

    name: str
    base_url: str
    background_url: str
    process: subprocess.Popen[bytes]


def start_local_model(name: str) -> LocalModel:
    """Fetch the weights if they are missing, serve them on two free ports of loopback, and wait until both answer.

    Args:
        name: What `PALIMPSEST_LOCAL_MODEL` says.

    Raises:
        WeightsUnavailable: If they cannot be had.
        ValueError: If the name is not one we know.
        Refused: If a package or a library is missing, or the server does not start.
    """
    if why := lacks():
        raise Refused(why)
    chosen, folder = weights.choose(name), weights.cache_folder()
    path = chosen if isinstance(chosen, Path) else weights.find(chosen, folder) or _download(chosen, folder)
    with socket.create_server((server.HOST, 0)) as one, socket.create_server((server.HOST, 0)) as other:
        ports = [each.getsockname()[1] for each in (one, other)]
    command = [*server.PYTHON, "graphs.local.server", "--model", str(path), "--tethered"]
    command += ["--port", str(ports[0]), "--background-port", str(ports[1])]
    click.echo(f"Loading {path.name} ...", err=True)
    # In a session of its own the terminal's Ctrl-C does not reach it: the server that it serves drains first.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        for port in ports:
            wait_until_answering(f"http://{server.HOST}:{port}/health", process)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    if process.stdin:
        os.set_inheritable(process.stdin.fileno(), True)
    base_url, background_url = (f"http://{server.HOST}:{port}/v1" for port in ports)
    return LocalModel(path.stem, base_url, background_url, process)


def lacks() -> str:
    """Return in a clause what is missing for a local model to be served, and what to do; empty if nothing is."""
    try:
        import xllamacpp  # noqa: F401
    except ImportError as error:
        return lacking(error, server.EXTRA)
    return ""


def _download(chosen: Weights, folder: Path) -> Path:
    click.echo(
        f"The local model {chosen.name} is downloaded once, {chosen.download_size / 1e9:.1f} GB in "
        f"{len(chosen.parts)} packages, to {folder}. Interrupt at any time: finished packages are kept.",
        err=True,
    )
    with click.progressbar(length=chosen.download_size, label=chosen.name, file=sys.stderr) as bar:
        return weights.obtain(chosen, folder, advance=bar.update)


def wait_until_answering(url: str, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until an HTTP server answers with 200, or refuses the name (403), saying now and then that it still waits.

    Args:
        url: What it is asked for; no proxy is.
        process: The server, if it is another process than this one.

    Raises:
        Refused: If that process ends before.
    """
    begun = said = time.monotonic()
    # One client: a server that starts in this process swaps classes of `ssl`, and who makes one then recurses for ever.
    with httpx.Client(timeout=2.0, trust_env=False) as client:
        while True:
            with suppress(httpx.HTTPError):
                if client.get(url).status_code in (200, 403):
                    return
            if process and process.poll() is not None:
                raise Refused(f"its server ended with exit code {process.returncode} while starting: it says above why")
            if (now := time.monotonic()) - said > _SAY_EVERY_SECONDS:
                click.echo(f"... still starting after {now - begun:.0f} s", err=True)
                said = now
            time.sleep(_POLL_SECONDS)
