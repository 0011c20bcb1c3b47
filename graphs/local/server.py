"""The local model's server: llama.cpp behind the OpenAI protocol, on loopback, in a process of its own.

    python -m graphs.local.server --model model.gguf --port 8080

It has two slots, each with a prompt cache: `graphs.models` sends what a turn waits for to the first and what works in
the background to the second.
"""

import os
import signal
import sys
import threading
from pathlib import Path

import click

from graphs.cli.processes import tether

HOST = "127.0.0.1"
SLOTS = 2
SLOT_TOKENS = 8192

# The server fills each batch with the chat's tokens first, then the background's. Behind a summary that is being read,
# a turn's first token comes after 2 s with batches of 64, after 12 s with llama.cpp's 2,048; reading is no slower.
_BATCH_TOKENS = 64
_ERRORS_ONLY = 1


@click.command()
@click.option("--model", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True)
@click.option("--port", type=click.IntRange(1, 65535), required=True)
@click.option("--tethered", is_flag=True, help="End when standard input closes.")
def main(model: Path, port: int, tethered: bool) -> None:
    """Serve a GGUF file at http://127.0.0.1:PORT/v1 until interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing to save: end at once, also while the model is loading
    if tethered:
        tether(sys.stdin.fileno())
    serve(model, port)


def serve(model: Path, port: int) -> None:
    """Load the model and answer on loopback until the process ends.

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
        raise click.ClickException(
            "The local model needs the extra `local`: pip install 'palimpsest-memory[local]'."
        ) from error
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
        server = xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise click.ClickException(
            f"The local model cannot be served: {model} is no model in GGUF format, or port {port} is taken."
        ) from error
    click.echo(f"{model.name} answers at {server.listening_address}/v1", err=True)
    threading.Event().wait()  # the server has threads of its own, and lives as long as its object


if __name__ == "__main__":
    main()
