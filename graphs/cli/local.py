"""The local model as `palimpsest dev` brings it up: weights at hand, server started, ready to answer."""

import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click
import httpx

from graphs.cli.processes import PYTHON, Child, start, stop
from graphs.cli.shell import Refused
from graphs.local import server, weights
from graphs.local.weights import Weights
from graphs.process.causes import lacking

_START_SECONDS = 180.0
_POLL_SECONDS = 0.25
_SAY_EVERY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A local model's server that answers.

    Attributes:
        name: What it serves, for people.
        base_url: Where, for a client of OpenAI's protocol.
        background_url: Where it does so with a low priority.
        process: Who.
    """

    name: str
    base_url: str
    background_url: str
    process: Child


def start_local_model(name: str, environ: Mapping[str, str]) -> LocalModel:
    """Fetch the weights if they are missing, serve them on two free ports of loopback, and wait until both answer.

    Args:
        name: What `PALIMPSEST_LOCAL_MODEL` says.
        environ: The variables for the server's process.

    Raises:
        WeightsUnavailable: If they cannot be had.
        ValueError: If the name is not one we know.
        Refused: If a package or a library is missing, or the server does not start.
    """
    folder = weights.cache_folder()
    why = lacks(environ)
    if openmp := weights.openmp(why):
        with suppress(weights.WeightsUnavailable):  # then it stays missing, and is named
            weights.obtain(openmp, folder)
        why = lacks(environ)
    if why:
        raise Refused(why)
    chosen = weights.choose(name)
    path = chosen if isinstance(chosen, Path) else weights.find(chosen, folder) or _download(chosen, folder)
    with socket.create_server((server.HOST, 0)) as one, socket.create_server((server.HOST, 0)) as other:
        ports = [each.getsockname()[1] for each in (one, other)]
    command = [*PYTHON, "graphs.local.server", "--model", str(path), "--tethered"]
    command += ["--port", str(ports[0]), "--background-port", str(ports[1])]
    click.echo(f"Loading {path.name} ...", err=True)
    process = start(command, _with_fetched(environ))
    try:
        for port in ports:
            url = f"http://{server.HOST}:{port}/health"
            wait_until_answering(process, url, name="its server", timeout=_START_SECONDS)
    except (Refused, KeyboardInterrupt):
        stop(process, grace_seconds=0.0)
        raise
    base_url, background_url = (f"http://{server.HOST}:{port}/v1" for port in ports)
    return LocalModel(path.stem, base_url, background_url, process)


def lacks(environ: Mapping[str, str]) -> str:
    """Return in a clause what is missing for a local model to be served, and what to do; empty if nothing is."""
    command = [sys.executable, "-c", "import xllamacpp"]
    done = subprocess.run(command, env=_with_fetched(environ), capture_output=True, text=True, check=False)
    return lacking(ImportError(done.stderr.strip().rpartition("\n")[2]), server.EXTRA) if done.returncode else ""


def _with_fetched(environ: Mapping[str, str]) -> dict[str, str]:
    folder = weights.cache_folder()
    return {**environ, "LD_LIBRARY_PATH": f"{folder}:{environ.get('LD_LIBRARY_PATH', folder)}"}


def _download(chosen: Weights, folder: Path) -> Path:
    click.echo(
        f"The local model {chosen.name} is downloaded once, {chosen.download_size / 1e9:.1f} GB in "
        f"{len(chosen.parts)} packages, to {folder}. Interrupt at any time: finished packages are kept.",
        err=True,
    )
    with click.progressbar(length=chosen.download_size, label=chosen.name, file=sys.stderr) as bar:
        return weights.obtain(chosen, folder, advance=bar.update)


def wait_until_answering(process: Child, url: str, *, name: str, timeout: float) -> None:
    """Wait until a child's HTTP server answers with 200, saying now and then that it still waits.

    Args:
        process: The child.
        url: What it is asked for.
        name: What the child is, for the error.
        timeout: Seconds to wait at most.

    Raises:
        Refused: If the child ends before, or the time is over.
    """
    begun = said = time.monotonic()
    while not is_answering(url):
        now = time.monotonic()
        if process.poll() is not None:
            raise Refused(f"{name} ended with exit code {process.returncode} while starting: it says above why")
        if now - begun > timeout:
            raise Refused(f"{name} did not answer within {timeout:.0f} s")
        if now - said > _SAY_EVERY_SECONDS:
            click.echo(f"... still starting after {now - begun:.0f} s", err=True)
            said = now
        time.sleep(_POLL_SECONDS)


def is_answering(url: str) -> bool:
    """Return whether an HTTP server answers with 200, or refuses (403) the name; no proxy is asked."""
    with suppress(httpx.HTTPError):
        return httpx.get(url, timeout=2.0, trust_env=False).status_code in (200, 403)
    return False
