"""`palimpsest doctor`: whether settings, models, store and server work, and what to do about what does not."""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path

import httpx

from graphs.cli.client import client_settings, open_memory
from graphs.cli.dev import read_set_up, server_environment
from graphs.cli.local import lacks
from graphs.cli.shell import Refused, Shell, counted
from graphs.local import weights
from graphs.process.address import is_loopback
from graphs.process.data_folder import unfit
from graphs.process.failures import lacking
from graphs.settings import LOCAL, EnvFileUnreadable, Settings, environment, give_process

_ASK_SECONDS = 60.0
_CONNECT_SECONDS = 2


def examine(shell: Shell, config: Path | None, url: str | None, token: str | None, *, asks: bool) -> bool:
    """Say what is found, each thing as soon as it is known, as a model may think for seconds; whether all works.

    Args:
        shell: What the command works with, and where it is said.
        config: What is served, if it is named.
        url: The server, if it is named.
        token: Who asks it.
        asks: Whether a model may be asked for a word.
    """
    findings: list[dict[str, str]] = []
    environ: Mapping[str, str] = {}
    settings: Settings | None = None

    def read_settings() -> str:
        nonlocal environ, settings
        environ = environment(Path(".env"), shell.environ)
        served, settings = read_set_up(config, environ)
        return f"{served}: {'single user, no login' if settings.single_user else 'users log in'}"

    def look(check: str, at: Callable[..., str], *given: object) -> None:
        """Carry out a check, which returns what works or raises what does not, with what to do."""
        try:
            state, said = "ok", at(*given)
        except (Refused, EnvFileUnreadable) as error:
            state, said = "failed", str(error)
        findings.append({"check": check, "state": state, "said": said})
        shell.say(f"{state:<8} {check:<13} {said}", fg=None if state == "ok" else "red")

    look("settings", read_settings)
    if settings:
        look("model", _check_model, settings.model, settings, environ, asks)
        if settings.memory_model not in ("", settings.model):
            look("memory model", _check_model, settings.memory_model, settings, environ, asks)
        look("store", _check_store, settings)
    look("server", _check_server, shell, url, token)
    failed = sum(each["state"] == "failed" for each in findings)
    shell.answer({"ok": not failed, "findings": findings}, f"\n{counted(failed, 'thing')} to mend." if failed else "")
    return not failed


def _check_model(name: str, settings: Settings, environ: Mapping[str, str], asks: bool) -> str:
    """Ask a model for a word; of the local one that nobody serves yet, look for what it needs."""
    named = name or settings.deployment or LOCAL
    if named == LOCAL and not settings.local_base_url:
        provider = "set OPENAI_API_KEY, or PALIMPSEST_MODEL=provider:model with its key, in .env"
        if why := lacks():
            raise Refused(f"no model is configured, and the local one cannot be served: {why}; or {provider}")
        try:
            chosen = weights.choose(settings.local_model)
        except ValueError as error:
            raise Refused(f"{error}: change PALIMPSEST_LOCAL_MODEL in .env") from error
        is_here = isinstance(chosen, Path) or weights.find(chosen, weights.cache_folder())
        where = "is here" if is_here else "is fetched once, by the first `palimpsest dev`"
        return f"the local model {settings.local_model} {where} (small and slow; or {provider})"
    if not asks:
        return f"{named}, not asked"
    if why := ask_model(environ, name):
        raise Refused(f"{named}: {why} Mend that, and ask the doctor again.")
    return f"{named} answers"


def ask_model(environ: Mapping[str, str], name: str) -> str:
    """Ask a model for a word, with the server's variables, which this process keeps; return why it cannot answer."""
    from memory.door import in_daemon_thread  # a package that hangs holds up no end of this process

    # The providers' packages read their keys from the environment. A trace would be waited for.
    given = server_environment(environ, None)
    given |= {each: "false" for each in given if each.endswith(("_TRACING", "_TRACING_V2"))}
    give_process(given)
    logging.disable()
    try:
        with redirect_stdout(sys.stderr):  # a package or a deployment's module may print
            return in_daemon_thread(lambda: answer_for_model(name)).result(_ASK_SECONDS)
    except TimeoutError:
        return f"it did not answer within {_ASK_SECONDS:.0f} s."
    finally:
        logging.disable(logging.NOTSET)


def _check_store(settings: Settings) -> str:
    """Look whether the SQLite files and their folder can be written, or the configured Postgres answers."""
    folder, uri = settings.data_dir, settings.database_uri
    if not uri:
        if why := unfit(folder):
            raise Refused(
                f"{why}; or begin anew: name another PALIMPSEST_DATA_DIR, and `palimpsest import` your last export"
            )
        return f"{folder} is {'there' if folder.exists() else 'made by the first start'}"
    try:
        import psycopg

        from graphs.persistence.postgres import place_of

        psycopg.connect(uri, connect_timeout=_CONNECT_SECONDS).close()
    except ImportError as error:
        why = lacking(error, "pip install 'palimpsest-memory[postgres]'")
        raise Refused(f"DATABASE_URI needs Postgres's client: {why}") from error
    except psycopg.Error as error:
        why = " ".join(str(error).split())
        raise Refused(f"{place_of(uri)} does not answer: {why}: start it, or correct DATABASE_URI") from error
    return f"Postgres answers: {place_of(uri)}"


def _check_server(shell: Shell, url: str | None, token: str | None) -> str:
    """Look at the server that would be asked."""
    if not (url := url or client_settings(shell).url):
        return "none of this folder runs: `palimpsest dev` starts one"
    try:
        with open_memory(shell, url, token) as memory:
            there = memory.get("/overview")
            waiting = counted(there["pending"], "update")
            return f"{url} answers: {counted(there['facts'], 'fact')}, {waiting} to be learned"
    except Refused as refused:
        is_away = isinstance(refused.__cause__, httpx.ConnectError | httpx.ConnectTimeout)
        if is_away and is_loopback(httpx.URL(url).host):
            return str(refused)
        raise


def answer_for_model(name: str) -> str:
    """Return an empty text if the model of this name answers, else one sentence; without a name, the one that chats."""
    # With LangChain, for which nothing else waits here.
    from graphs.process.deployment import make_service
    from graphs.process.failures import explain

    sys.path.append(os.getcwd())  # as for the server, a deployment's module may be there
    model = name
    try:
        service = make_service()
        model = name or service.settings.model
        if service.load_model(name, "chat").invoke("Answer with one word: ok").text.strip():
            return ""
    except ValueError as error:
        return str(error)
    except Exception as error:  # of any provider's package, or of the deployment's module
        return str(explain(error, model))
    return "it answers without content: let its server tell thoughts and answers apart, or turn thoughts off."
