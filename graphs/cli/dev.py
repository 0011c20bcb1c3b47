"""What `palimpsest dev` does: choose the model, bring the local one up if needed, run `langgraph dev`, end both."""

import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from graphs.cli.local import LocalModel, start_local_model, wait_until_answering
from graphs.cli.processes import PYTHON, Child, settle_child, start, stop
from graphs.cli.shell import Refused
from graphs.local.weights import WeightsUnavailable, cache_folder
from graphs.process.address import is_loopback, served_at
from graphs.process.data_folder import unfit
from graphs.settings import LOCAL, Settings, database_of, environment, under_langgraph_dev

_STUDIO = "https://smith.langchain.com/studio/?baseUrl="
_QUIET = {
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGSMITH_TRACING": "false",
    "LOG_LEVEL": "WARNING",  # INFO is 30 lines at start and several for each run
}
_LOCAL_URL = "PALIMPSEST_LOCAL_BASE_URL"
_BACKGROUND_URL = "PALIMPSEST_LOCAL_BACKGROUND_URL"
_DEFAULT_PORTS = range(2024, 2034)
_NO_MODEL = "NONE, every run fails: set OPENAI_API_KEY or PALIMPSEST_MODEL=provider:model in .env, then start again"
_EVERY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # what stands for all addresses of a machine, and where it is asked
_SHIPPED = Path(__file__).parents[1] / "langgraph.json"  # the same as a clone's, for those who have the package only
_SERVER_MODULES = ("langgraph_api", "langgraph_runtime_inmem")  # what the extra `server` adds
_START_SECONDS = 180.0
_POLL_SECONDS = 0.5
_CLOSING_SECONDS = 10.0  # for connections, after pending updates were drained
_STOPPED_AS_ASKED = frozenset({-signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT})


def serve(host: str, port: int | None, config: Path | None, given: Sequence[str]) -> int:
    """Run the server until it ends, or is told to, with the local model if that is needed; return its exit code.

    Args:
        host: Where to listen.
        port: On which port; by default the first of ten that is free.
        config: What is served, if it is named.
        given: Options that `langgraph dev` gets.
    """
    if not all(map(find_spec, _SERVER_MODULES)):  # `langgraph dev` would name another package
        raise Refused('The server is not installed: pip install "palimpsest-memory[server]".')
    environ = environment(Path(".env"))
    served, settings = read_set_up(config, environ)
    if running := served_at(settings.data_dir):
        raise Refused(f"A server of this folder runs at {running}: use it, or stop it first.")
    if not os.access(".", os.W_OK):  # the server would say so in a traceback
        raise Refused(f"{Path.cwd()} cannot be written, and the server keeps threads there: start in another folder")
    if not settings.database_uri and (why := unfit(settings.data_dir)):
        raise Refused(why)
    port = choose_port(host, [port] if port else _DEFAULT_PORTS)
    address = _EVERY_HOST.get(host, host)
    url = f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both ways of stopping raise KeyboardInterrupt
    local = server = None
    grace_seconds = settings.memory.drain_seconds + _CLOSING_SECONDS
    try:
        if wants_local(settings):
            local = _bring_up_local(settings.local_model, environ)
        variables = {**server_environment(environ, local), **chosen_embedder(settings)}
        model = describe(settings, local)
        if model == _NO_MODEL:
            click.echo(f"Model    {model}", err=True)
        click.echo("Starting the server ...", err=True)
        # Of an option given twice the later one counts.
        command = [*PYTHON, "graphs.cli.processes", "dev", "--host", host, "--port", str(port), "--no-browser"]
        command += ["--n-jobs-per-worker", "10", "--config", str(served), *given]
        server = start(command, variables)
        wait_until_answering(server, f"{url}/ok", name="the server", timeout=_START_SECONDS)
        settle_child(server)
        own = "palimpsest" if shutil.which("palimpsest") == sys.argv[0] else sys.argv[0]
        open_to = reach(settings, host, given)
        network = f"Open to  {open_to}\n" if open_to else ""
        click.echo(
            f"\nReady    {url}\nModel    {model}\nTalk     {own} chat\nMemory   {url}/memory\n"
            f"         {learning(variables)}\nStudio   {_STUDIO}{url}\nAPI      {url}/docs\n"
            f"{network}Stop     Ctrl-C\n"
        )
        return supervise(server, local)
    except KeyboardInterrupt:
        click.echo("Stopping ...", err=True)
        code = stop(server, grace_seconds) if server else 128 + signal.SIGINT
        # Before there is a server nothing was ready: who waits for it must know.
        return 0 if server and code in _STOPPED_AS_ASKED else code
    finally:
        if server:
            stop(server, grace_seconds)
        if local:
            stop(local.process, grace_seconds=5.0)


def read_set_up(named: Path | None, environ: Mapping[str, str]) -> tuple[Path, Settings]:
    """Return the server's configuration, and the settings as the server will read them.

    Args:
        named: The configuration that was asked for; by default the folder's, else the package's own.
        environ: The variables.

    Raises:
        Refused: If the server would not start with them; the message names the file or the variable.
    """
    served = named or next(filter(Path.exists, (Path("langgraph.json"), _SHIPPED)))
    try:
        authenticates = bool(json.loads(served.read_text()).get("auth"))
    except (OSError, ValueError, AttributeError) as error:
        raise Refused(f"{served} is no configuration: {error}; name another file with --config, or none") from error
    try:
        settings = Settings.from_environment(under_langgraph_dev(environ, authenticates=authenticates))
        if authenticates and not settings.auth.authenticator:  # an own one may need the server's environment
            from graphs.server.authenticate import load_authenticator  # with the SDK, which other commands do not need

            load_authenticator(settings.auth)
    except ValueError as error:
        raise Refused(f"{error}.") from error
    return served, settings


def wants_local(settings: Settings) -> bool:
    """Return whether this command has to bring the local model up: it is wanted, and nobody serves it yet."""
    return LOCAL in (settings.model or LOCAL, settings.memory_model) and not settings.local_base_url


def choose_port(host: str, wanted: Sequence[int]) -> int:
    """Return the first of the ports that is free, and say so where that is not the first of them.

    Raises:
        Refused: If none is: `langgraph dev` would silently take another.
    """
    for port in wanted:
        try:
            socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
        except OSError as error:
            why = error.strerror
            continue
        if port != wanted[0]:
            click.echo(f"Port {wanted[0]} is taken: using {port}. Commands in this folder find it.")
        return port
    raise Refused(f"Port {wanted[0]} cannot be used: {why}: choose another --port or --host.")


def _bring_up_local(name: str, environ: Mapping[str, str]) -> LocalModel | None:
    """Return the running local model, or `None` after saying why there is none."""
    if hidden := environment(Path(".env"), {}).keys() & {_LOCAL_URL, _BACKGROUND_URL}:
        raise Refused(f"Remove the line {min(hidden)}= from .env: it hides the local model started here.")
    try:
        return start_local_model(name, environ)
    except ValueError as error:
        raise Refused(f"{error}.") from error
    except (WeightsUnavailable, Refused) as error:
        click.echo(f"No local model: {error}", err=True)
        return None


def server_environment(environ: Mapping[str, str], local: LocalModel | None) -> dict[str, str]:
    """Return the server's variables: quiet unless told otherwise, in UTF-8, and knowing where the local model is."""
    # In a machine's encoding that is ASCII, it could not even start; without docstrings, no tool could be described.
    variables = {**_QUIET, **environ, **database_of(environ), "PYTHONUTF8": "1", "PYTHONOPTIMIZE": ""}
    # A proxy that the user has for the world would be asked for this machine, too. The lower-case name wins.
    if any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in environ):
        given = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
        variables |= dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(filter(None, (given, "127.0.0.1,localhost,::1"))))
    if local:
        variables |= {_LOCAL_URL: local.base_url, _BACKGROUND_URL: local.background_url}
    return variables


def chosen_embedder(settings: Settings) -> dict[str, str]:
    """Return the variable that has the server find texts by their meaning too, where nothing is chosen and it can."""
    from graphs.local import embedder  # with LangChain, which the doctor does not wait for

    if settings.embedder or not embedder.is_installed():
        return {}
    if not embedder.is_fetched(cache_folder()):
        click.echo(f"The embedder's weights ({embedder.MEGABYTES} MB) are fetched once, in the background.", err=True)
    return {"PALIMPSEST_EMBEDDER": "local"}


def describe(settings: Settings, local: LocalModel | None) -> str:
    """Return in one line which model answers."""
    if settings.model not in ("", LOCAL):
        return settings.model
    if local:
        return f"the local model {local.name} (small and slow; set OPENAI_API_KEY in .env for a better one)"
    return settings.local_base_url or _NO_MODEL


def learning(variables: Mapping[str, str]) -> str:
    """Return in one line when what was said is known in later conversations."""
    # As the server reads them: the local model that was brought up for it has other defaults.
    settings = Settings.from_environment(variables)
    if not settings.memory.enabled:
        return "off (PALIMPSEST_MEMORY=false)"
    quiet = f"reads what you said once a conversation was quiet for {settings.memory.debounce_seconds:g} s"
    is_local = (settings.memory_model or settings.model) == LOCAL
    return f"{quiet}; the local model takes a few seconds a message" if is_local else quiet


def reach(settings: Settings, host: str, options: Sequence[str]) -> str:
    """Return in one line who may ask the server, where that is not plain."""
    if not settings.single_user:
        return ""
    if settings.open_to_network:
        return "EVERYONE who reaches this port may read and change all of it (PALIMPSEST_OPEN_TO_NETWORK=true)"
    if not is_loopback(host) or host in _EVERY_HOST or "--tunnel" in options:
        return "this machine only: nobody logs in. PALIMPSEST_OPEN_TO_NETWORK=true in .env lets everyone in"
    return ""


def supervise(server: Child, local: LocalModel | None) -> int:
    """Stay until the server ends, and return its exit code; that the local model ended before is said once."""
    while (code := server.poll()) is None:
        if local and local.process.poll() is not None:
            click.echo(f"The local model ended with exit code {local.process.returncode}: start again.", err=True)
            local = None
        time.sleep(_POLL_SECONDS)
    if code < 0 or code > 128:
        why = ", maybe by the system for want of memory" if abs(code) % 128 == signal.SIGKILL else ""
        click.echo(f"The server was killed{why}: start again.", err=True)
    return code
