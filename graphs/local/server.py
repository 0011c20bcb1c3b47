"""The local model's server: llama.cpp behind the OpenAI protocol, on loopback, in a process of its own.

    python -m graphs.local.server --model model.gguf --port 8080 --background-port 8081

Each port has two slots with a prompt cache each. What a turn waits for is sent to the first port. What works in the
background is sent to the second: a process of its own, with a low priority, so that it hardly works while a chat is
answered and goes on by itself afterwards. Without a second port, it is sent to the first's other slot.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import click

from graphs.process.failures import lacking

PYTHON = (sys.executable, "-P", "-m")
"""Runs a module of ours, also in a folder that has a `memory` or a `graphs` of its own."""
EXTRA = "install the extra `local`: pip install 'palimpsest-memory[local]'"
HOST = "127.0.0.1"
SLOTS = 2
SLOT_TOKENS = 8192

# A server fills each batch with the first slot's tokens, then the second's. Behind a summary that is being read in the
# other slot, a turn's first token comes after 2 s with batches of 64, after 12 s with llama.cpp's 2,048; reading is no
# slower.
_BATCH_TOKENS = 64
# The scheduler gives it about a tenth of what a chat gets while one is answered, and all there is otherwise. With 19 it
# would be a sixtieth: a summary could pass its deadline behind chats that follow each other without a pause.
_BACKGROUND_NICE = 10
_ERRORS_ONLY = 1
_NOT_SERVED = "The local model cannot be served"


@click.command()
@click.option("--model", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True)
@click.option("--port", type=click.IntRange(1, 65535), required=True)
@click.option("--background-port", type=click.IntRange(1, 65535), help="Serve it there too, with a low priority.")
@click.option("--tethered", is_flag=True, help="End when standard input closes.")
@click.option("--nice", type=click.IntRange(0, 19), default=0, help="Lower the priority by so much.")
def serve_weights(model: Path, port: int, background_port: int | None, tethered: bool, nice: int) -> None:
    """Serve a GGUF file at http://127.0.0.1:PORT/v1 until interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing to save: end at once, also while the model is loading
    if tethered:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(nice)
    background = _start_background(model, background_port) if background_port else None
    server = load(model, port)
    click.echo(f"{model.name} answers at {server.listening_address}/v1", err=True)
    if background:
        sys.exit(background.wait())
    signal.pause()  # the server has threads of its own, and lives as long as its object


def _end_with_parent() -> None:
    """End this process once the other end of its standard input is closed, which the system does for a dead parent."""
    # Past Python's own buffer, whose lock would be held when the interpreter shuts down.
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _start_background(model: Path, port: int) -> subprocess.Popen[bytes]:
    """Start the process that serves the background; it ends with this one.

    It stays in this process's session: of two sessions, Linux gives each the same share, whatever their priorities.
    """
    command = [*PYTHON, "graphs.local.server", "--model", str(model), "--port", str(port), "--tethered"]
    return subprocess.Popen([*command, "--nice", str(_BACKGROUND_NICE)], stdin=subprocess.PIPE)


def load(model: Path, port: int) -> Any:
    """Load the model and return what answers on loopback as long as it is held.

    Args:
        model: A GGUF file.
        port: A free port of 127.0.0.1.

    Raises:
        click.ClickException: If the package that serves is missing, the file is no model, or the port is taken.
    """
    # llama.cpp's threads wait for each other by spinning. Where another process works too, as the graph's server does,
    # they spin on the very core that the thread they wait for needs: with one of two cores busy, 0.5 instead of 9
    # tokens a second. The library reads this when it is loaded.
    os.putenv("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp
    except ImportError as error:
        raise click.ClickException(f"{_NOT_SERVED}: {lacking(error, EXTRA)}.") from error
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.model_alias = {"local"}
    parameters.hostnames = [HOST]
    parameters.port = port
    parameters.n_parallel = SLOTS
    parameters.n_ctx = SLOTS * SLOT_TOKENS
    parameters.n_batch = parameters.n_ubatch = _BATCH_TOKENS
    parameters.cache_ram_mib = 0  # serves requests that name no slot; ours all do
    parameters.cache_idle_slots = False
    parameters.cors_origins = ""  # no web page may ask it
    parameters.endpoint_slots = False
    parameters.ui = False
    parameters.offline = True
    parameters.verbosity = _ERRORS_ONLY
    try:
        return xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise click.ClickException(
            f"{_NOT_SERVED}: {model} is no model in GGUF format, or port {port} is taken."
        ) from error


if __name__ == "__main__":
    serve_weights()
