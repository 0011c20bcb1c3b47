"""What `palimpsest dev` does: choose the model, bring the local one up if needed, and become `langgraph dev`.

Run as a module it is that server: one process, which Ctrl-C and SIGTERM reach.
"""

import json
import logging
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import click

from graphs.cli.local import LocalModel, start_local_model, wait_until_answering
from graphs.cli.shell import Refused
from graphs.local.server import PYTHON
from graphs.local.weights import WeightsUnavailable, cache_folder
from graphs.process.address import address_of, is_loopback
from graphs.process.data_folder import unfit
from graphs.settings import LOCAL, Settings, database_of, environment, read_env_file, under_langgraph_dev

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
_EVERY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # all addresses of a machine, and the one to ask
_SHIPPED = Path(__file__).parents[1] / "langgraph.json"  # the same as a clone's, for those who have the package only
_SERVER_MODULES = ("langgraph_api", "langgraph_runtime_inmem")  # what the extra `server` adds
_STARTUP_FAILURE = 3  # uvicorn's
_CLOSING_SECONDS = 10  # for connections that are open as the server stops: a stream may be, for hours


def serve(host: str, port: int | None, config: Path | None, given: Sequence[str]) -> NoReturn:
    """Become the server, with the local model as its child if that is needed.

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
    if running := address_of(settings.data_dir):
        raise Refused(f"A server of this folder runs at {running}: use it, or stop it first.")
    if not os.access(".", os.W_OK):  # the server would say so in a traceback
        raise Refused(f"{Path.cwd()} cannot be written, and the server keeps threads there: start in another folder")
    if not settings.database_uri and (why := unfit(settings.data_dir)):
        raise Refused(why)
    port = choose_port(host, [port] if port else _DEFAULT_PORTS)
    address = _EVERY_HOST.get(host, host)
    url = f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
    local = None
    if wants_local(settings):
        try:
            local = start_local_model(settings.local_model)
        except ValueError as error:
            raise Refused(f"{error}.") from error
        except (WeightsUnavailable, Refused) as error:
            click.echo(f"No local model: {error}", err=True)
    variables = {**server_environment(environ, local), **chosen_embedder(settings)}
    model = describe(settings, local)
    if model == _NO_MODEL:
        click.echo(f"Model    {model}", err=True)
    click.echo("Starting the server ...", err=True)
    own = "palimpsest" if shutil.which("palimpsest") == sys.argv[0] else sys.argv[0]
    open_to = reach(settings, host, given)
    network = f"Open to  {open_to}\n" if open_to else ""
    ready = (
        f"\nReady    {url}\nModel    {model}\nTalk     {own} chat\nMemory   {url}/memory\n"
        f"         {learning(variables)}\nStudio   {_STUDIO}{url}\nAPI      {url}/docs\n"
        f"{network}Stop     Ctrl-C\n"
    )
    os.umask(0o077)  # the server keeps what is said in pickles of its own
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a Ctrl-C waits until `be_server` has told how it ends
    # Of an option given twice the later one counts.
    command = ["dev", "--host", host, "--port", str(port), "--no-browser", "--no-reload"]
    command += ["--n-jobs-per-worker", "10", "--config", str(served), *given]
    kept = {name: variables[name] for name in (_LOCAL_URL, _BACKGROUND_URL)} if local else {}
    told = json.dumps([url, ready, local.process.pid if local else None, kept])
    os.execve(sys.executable, [*PYTHON, "graphs.cli.dev", told, *command], variables)  # it reads some as it starts


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
    """Return the first of the ports that is free, and say so where that is not the first.

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


def server_environment(environ: Mapping[str, str], local: LocalModel | None) -> dict[str, str]:
    """Return the server's variables: quiet unless told otherwise, in UTF-8, and knowing where the local model is."""
    # Under an ASCII locale it would not start; without docstrings, no tool would be described.
    variables = {**_QUIET, **environ, **database_of(environ), "PYTHONUTF8": "1", "PYTHONOPTIMIZE": ""}
    # Else a proxy would be asked for this machine, too. The lower-case name wins.
    if any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in environ):
        given = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
        variables |= dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(filter(None, (given, "127.0.0.1,localhost,::1"))))
    if local:
        variables |= {_LOCAL_URL: local.base_url, _BACKGROUND_URL: local.background_url}
    return variables


def chosen_embedder(settings: Settings) -> dict[str, str]:
    """Return the variable that turns the embedder on, where none is chosen and it is installed."""
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
    """Return in one line who may ask the server, where that needs a word."""
    if not settings.single_user:
        return ""
    if settings.open_to_network:
        return "EVERYONE who reaches this port may read and change all of it (PALIMPSEST_OPEN_TO_NETWORK=true)"
    if not is_loopback(host) or host in _EVERY_HOST or "--tunnel" in options:
        return "this machine only: nobody logs in. PALIMPSEST_OPEN_TO_NETWORK=true in .env lets everyone in"
    return ""


def be_server(url: str, ready: str, local: int | None, kept: Mapping[str, str]) -> None:
    """Be the `langgraph` command that the line says; say when the server answers, and if the local model ends.

    Args:
        url: Where the server is asked.
        ready: What is said once it answers.
        local: The process of the local model, a child of this one, which ends with it.
        kept: Variables that no file overrides.
    """
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:  # nothing to save before the server listens
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    import langgraph_api.cli  # imported here: the doctor needs no server
    import uvicorn
    from langgraph_cli.cli import cli

    run, stop = langgraph_api.cli.run_server, uvicorn.Server.handle_exit

    def run_server(*given: Any, env: Any = None, **options: Any) -> None:
        read = read_env_file(Path(env)) if isinstance(env, str) else env or {}
        run(*given, env={**read, **kept}, timeout_graceful_shutdown=_CLOSING_SECONDS, **options)

    def handle_exit(server: uvicorn.Server, *signalled: Any) -> None:
        # In a thread: the handler runs on the event loop, where `langgraph dev` lets nothing block.
        threading.Thread(target=click.echo, args=["Stopping ..."], kwargs={"err": True}).start()
        stop(server, *signalled)
        server._captured_signals.clear()  # uvicorn would raise them again; a stop that was asked for exits with 0

    def watch() -> None:
        wait_until_answering(f"{url}/ok")
        with suppress(OSError):  # who reads it may be gone
            click.echo(ready)
        if local:
            _, status = os.waitpid(local, 0)
            code = os.waitstatus_to_exitcode(status)
            click.echo(f"The local model ended with exit code {code}: start again.", err=True)

    if "--tunnel" not in sys.argv:  # only the server's own banner tells the address of a tunnel
        logging.getLogger("langgraph_api.cli").addFilter(lambda record: "Welcome to" not in record.getMessage())
    # langgraph-api 0.16 looks for a free port on IPv4 alone, and reads no UTF-16; the port was looked at already.
    langgraph_api.cli._resolve_port = lambda _, port: port
    langgraph_api.cli.run_server = run_server
    uvicorn.Server.handle_exit = handle_exit  # type: ignore[assignment, method-assign]
    # Not under nohup: a terminal that closes ends it in order, too.
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    threading.Thread(target=watch, name="watch", daemon=True).start()
    try:
        cli(prog_name="langgraph")
    except SystemExit as ended:
        sys.exit("Error: the server did not start: it says above why" if ended.code == _STARTUP_FAILURE else ended.code)


if __name__ == "__main__":
    be_server(*json.loads(sys.argv.pop(1)))
