"""`palimpsest doctor`: whether settings, models, store and server work, and what to do about what does not."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import httpx

from graphs.address import is_loopback
from graphs.causes import lacking
from graphs.cli.client import client_settings, open_memory
from graphs.cli.dev import read_set_up, server_environment
from graphs.cli.local import lacks
from graphs.cli.processes import PYTHON
from graphs.cli.shell import Refused, Shell, counted
from graphs.data_folder import unfit
from graphs.local import weights
from graphs.settings import LOCAL, EnvFileUnreadable, Settings, environment

_ASK_SECONDS = 60.0
_CONNECT_SECONDS = 2
_PROVIDER = "set OPENAI_API_KEY, or PALIMPSEST_MODEL=provider:model with its key, in .env"
_STYLES: dict[str, dict[str, Any]] = {"failed": {"fg": "red", "bold": True}, "warning": {"fg": "yellow"}}


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found.

    Attributes:
        check: What was looked at.
        state: failed: it does not work. warning: it works, and may surprise. none: it is not there, and need not be.
        said: What is the case.
        fix: What to do; empty where nothing is to be done.
    """

    check: str
    state: Literal["ok", "none", "warning", "failed"]
    said: str
    fix: str = ""


def examine(shell: Shell, config: Path | None, url: str | None, token: str | None, *, asks: bool) -> bool:
    """Say what is found, each thing as soon as it is known, as a model may think for seconds; whether all works.

    Args:
        shell: What the command works with, and where it is said.
        config: What is served, if it is named.
        url: The server, if it is named.
        token: Who asks it.
        asks: Whether a model may be asked for a word.
    """
    found: list[Finding] = []
    for finding in _findings(shell, config, url, token, asks):
        found.append(finding)
        shell.say(f"{finding.state:<8} {finding.check:<13} {finding.said}", **_STYLES.get(finding.state, {}))
        if finding.fix:
            shell.say(f"{'':<22} → {finding.fix}")
    failed = sum(each.state == "failed" for each in found)
    shell.answer({"ok": not failed, "findings": [asdict(each) for each in found]})
    if failed:
        shell.say(f"\n{counted(failed, 'thing')} to mend.")
    return not failed


def _findings(shell: Shell, config: Path | None, url: str | None, token: str | None, asks: bool) -> Iterator[Finding]:
    try:
        environ = environment(Path(".env"), shell.environ)
        served, settings = read_set_up(config, environ)
    except (Refused, EnvFileUnreadable) as error:
        fix = "change it, or the variable in .env, which the project's .env.example explains"
        yield Finding("settings", "failed", str(error), fix)
    else:
        yield Finding(
            "settings", "ok", f"{served}: {'single user, no login' if settings.single_user else 'users log in'}"
        )
        yield _check_model("model", settings.model, settings, environ, asks)
        if settings.memory_model not in ("", settings.model):
            yield _check_model("memory model", settings.memory_model, settings, environ, asks)
        yield _check_store(settings)
    yield _check_server(shell, url, token)


def _check_model(check: str, name: str, settings: Settings, environ: Mapping[str, str], asks: bool) -> Finding:
    """Ask a model for a word; of the local one that nobody serves yet, look for what it needs."""
    if not settings.local_base_url and name in ("", LOCAL) and not (settings.deployment and not name):
        return _check_local_model(check, settings, environ)
    named = name or settings.deployment
    if not asks:
        return Finding(check, "ok", f"{named}, not asked")
    if why := ask_model(environ, name):
        return Finding(check, "failed", f"{named}: {why}", "set what it names in .env, and ask the doctor again")
    return Finding(check, "ok", f"{named} answers")


def ask_model(environ: Mapping[str, str], name: str) -> str:
    """Ask a model for one word, in a process with the server's variables; return why it cannot answer."""
    # The providers' packages read their keys from the environment of the process. A trace would be waited for.
    given = server_environment(environ, None)
    given |= {each: "false" for each in given if each.endswith(("_TRACING", "_TRACING_V2"))}
    command = [*PYTHON, "graphs.cli.ask_model", name]
    try:
        done = subprocess.run(command, env=given, capture_output=True, timeout=_ASK_SECONDS, check=True)
        return str(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return f"it did not answer within {_ASK_SECONDS:.0f} s."
    except subprocess.CalledProcessError as error:
        return error.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2] or "it could not be asked."


def _check_local_model(check: str, settings: Settings, environ: Mapping[str, str]) -> Finding:
    if (why := lacks(environ)) and not weights.openmp(why):  # the first `palimpsest dev` fetches it
        return Finding(check, "failed", f"no model is configured, and the local one cannot be served: {why}", _PROVIDER)
    try:
        chosen = weights.choose(settings.local_model)
    except ValueError as error:
        return Finding(check, "failed", str(error), "change PALIMPSEST_LOCAL_MODEL in .env")
    if isinstance(chosen, Path) or weights.find(chosen, weights.cache_folder()):
        return Finding(check, "ok", f"the local model {settings.local_model} is here (small and slow; or {_PROVIDER})")
    said = f"the local model {chosen.name} is fetched by the first `palimpsest dev`, {chosen.size / 1e9:.1f} GB, once"
    return Finding(check, "warning", said, f"or {_PROVIDER}")


def _check_store(settings: Settings) -> Finding:
    """Look whether the SQLite files and their folder can be written, or the configured Postgres answers."""
    folder, uri = settings.data_dir, settings.database_uri
    if not uri:
        if why := unfit(folder):
            fix = "mend that, or begin anew: move the file away, start, and `palimpsest import` your last export"
            return Finding("store", "failed", why, fix)
        return Finding("store", "ok", f"{folder} is {'there' if folder.exists() else 'made by the first start'}")
    try:
        import psycopg

        from graphs.persistence.postgres import place_of

        psycopg.connect(uri, connect_timeout=_CONNECT_SECONDS).close()
    except ImportError as error:
        fix = lacking(error, "pip install 'palimpsest-memory[postgres]'")
        return Finding("store", "failed", "DATABASE_URI needs Postgres's client", fix)
    except psycopg.Error as error:
        said = f"{place_of(uri)} does not answer: {' '.join(str(error).split())}"
        return Finding("store", "failed", said, "start it, or correct DATABASE_URI")
    return Finding("store", "ok", f"Postgres answers: {place_of(uri)}")


def _check_server(shell: Shell, url: str | None, token: str | None) -> Finding:
    """Look at the server that would be asked."""
    try:
        if not (url := url or client_settings(shell).url):
            return Finding("server", "none", "none of this folder runs: `palimpsest dev` starts one")
        with open_memory(shell, url, token) as memory:
            there = memory.get("/overview")
            known = f"{counted(there['facts'], 'fact')}, {counted(there['pending'], 'update')} to be learned"
            return Finding("server", "ok", f"{url} answers: {known}")
    except Refused as refused:
        is_away = isinstance(refused.__cause__, httpx.ConnectError | httpx.ConnectTimeout)
        if is_away and is_loopback(httpx.URL(url or "").host):
            return Finding("server", "none", str(refused))
        fix = "change --url, --token or their variables, or stop what is there"
        return Finding("server", "failed", str(refused), fix)
