"""`palimpsest doctor`: whether settings, models, store and server work, and what to do about what does not."""

import asyncio
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import httpx

from graphs.address import is_loopback
from graphs.causes import lacking
from graphs.cli.asking import client_settings, open_memory, variables
from graphs.cli.dev import has_login, server_environment, server_file, server_settings
from graphs.cli.local import lacks
from graphs.cli.processes import PYTHON
from graphs.cli.shell import Output, Refused, Shell, counted
from graphs.data_folder import unfit
from graphs.local import weights
from graphs.settings import LOCAL, EnvFileUnreadable, Settings
from memory.config import Approval

_ASK_SECONDS = 60.0
_NEW_STORE = (
    "mend that, or begin anew: stop the server, move the file away or name another PALIMPSEST_DATA_DIR, start, and "
    "`palimpsest import` your last export"
)
_SECONDS = 2
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


def examine(shell: Shell, out: Output, config: Path | None, url: str | None, token: str | None, *, asks: bool) -> bool:
    """Say what is found, each thing as soon as it is known, as a model may think for seconds; whether all works.

    Args:
        shell: What the command works with.
        out: Where it is said.
        config: What is served, if it is named.
        url: The server, if it is named.
        token: Who asks it.
        asks: Whether a model may be asked for a word.
    """
    found: list[Finding] = []
    for finding in _findings(shell, server_file(config), url, token, asks=asks):
        found.append(finding)
        out.say(f"{finding.state:<8} {finding.check:<13} {finding.said}", **_STYLES.get(finding.state, {}))
        if finding.fix:
            out.say(f"{'':<8} {'':<13} → {finding.fix}")
    failed = sum(each.state == "failed" for each in found)
    out.answer({"ok": not failed, "findings": [asdict(each) for each in found]})
    if failed:
        out.say(f"\n{counted(failed, 'thing')} to mend.")
    return not failed


def _findings(shell: Shell, config: Path, url: str | None, token: str | None, *, asks: bool) -> Iterator[Finding]:
    try:
        environ = variables(shell)
        authenticates = has_login(config)
        settings = server_settings(environ, authenticates=authenticates)
    except (Refused, EnvFileUnreadable) as error:
        fix = "change it, or the variable in .env, which the project's .env.example explains"
        yield Finding("settings", "failed", str(error), fix)
    else:
        yield Finding("settings", "ok", f"{config}: {'users log in' if authenticates else 'single user, no login'}")
        yield _check_model("model", settings.model, settings, environ, asks=asks)
        if settings.memory_model not in ("", settings.model):
            yield _check_model("memory model", settings.memory_model, settings, environ, asks=asks)
        if settings.memory.extraction_form == "brief" or _is_local(settings.memory_model or settings.model, settings):
            yield _unmarked(settings.memory.approval)
        yield _check_database(settings.database_uri) if settings.database_uri else _check_files(settings.data_dir)
    yield asyncio.run(_check_server(shell, url, token))


def _check_model(check: str, name: str, settings: Settings, environ: Mapping[str, str], *, asks: bool) -> Finding:
    """Ask a model for a word; of the local one that nobody serves yet, look for what it needs."""
    if not settings.local_base_url and _is_local(name, settings):
        return _check_local_model(check, settings, environ)
    named = name or settings.deployment
    if not asks:
        return Finding(check, "ok", f"{named}, not asked")
    if why := ask_model(environ, name):
        return Finding(check, "failed", f"{named}: {why}", "set what it names in .env, and ask the doctor again")
    return Finding(check, "ok", f"{named} answers")


def _is_local(name: str, settings: Settings) -> bool:
    return name == LOCAL or not (name or settings.deployment)


def ask_model(environ: Mapping[str, str], name: str) -> str:
    """Ask a model for one word, in a process with the server's variables; return why it cannot answer."""
    command = [*PYTHON, "graphs.cli.ask_model", name]
    # The providers' packages read their keys from the environment of the process. A trace would be waited for.
    given = server_environment(environ, None)
    given |= {each: "false" for each in given if each.endswith(("_TRACING", "_TRACING_V2"))}
    try:
        done = subprocess.run(command, env=given, capture_output=True, timeout=_ASK_SECONDS, check=True)
        return str(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return f"it did not answer within {_ASK_SECONDS:.0f} s."
    except subprocess.CalledProcessError as error:
        last_line = error.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return last_line or "it could not be asked."


def _check_local_model(check: str, settings: Settings, environ: Mapping[str, str]) -> Finding:
    provider = "set OPENAI_API_KEY, or PALIMPSEST_MODEL=provider:model with its key, in .env"
    if (why := lacks(environ)) and not weights.openmp(why):  # the first `palimpsest dev` fetches it
        return Finding(check, "failed", f"no model is configured, and the local one cannot be served: {why}", provider)
    try:
        chosen = weights.choose(settings.local_model)
    except ValueError as error:
        return Finding(check, "failed", str(error), "change PALIMPSEST_LOCAL_MODEL in .env")
    if isinstance(chosen, Path):
        return Finding(check, "ok", f"the local model {chosen}")
    if weights.find(chosen, weights.cache_folder()):
        return Finding(check, "ok", f"the local model {chosen.name} is here (small and slow; or {provider})")
    said = f"the local model {chosen.name} is fetched by the first `palimpsest dev`, {chosen.size / 1e9:.1f} GB, once"
    return Finding(check, "warning", said, f"or {provider}")


def _unmarked(approval: Approval) -> Finding:
    """Say what asking about what is sensitive means where the memory model cannot tell it."""
    said = "the local model cannot mark what is sensitive: who asks to be asked about that is asked about all"
    if approval != "sensitive":
        return Finding("approval", "ok", said)
    return Finding("approval", "warning", said, "PALIMPSEST_APPROVAL=all says so, or configure a larger memory model")


def _check_files(folder: Path) -> Finding:
    """Look at the SQLite files: they can be opened, and the folder in which they are, or will be, can be written."""
    if why := unfit(folder):
        return Finding("store", "failed", why, _NEW_STORE)
    return Finding("store", "ok", f"{folder} is {'there' if folder.exists() else 'made by the first start'}")


def _check_database(uri: str) -> Finding:
    """Look whether the configured Postgres answers."""
    try:
        import psycopg

        from graphs.persistence.postgres import place_of

        psycopg.connect(uri, connect_timeout=_SECONDS).close()
    except ImportError as error:
        fix = lacking(error, "pip install 'palimpsest-memory[postgres]'")
        return Finding("store", "failed", "DATABASE_URI needs Postgres's client", fix)
    except psycopg.Error as error:
        why = " ".join(str(error).split())
        return Finding(
            "store", "failed", f"{place_of(uri)} does not answer: {why}", "start it, or correct DATABASE_URI"
        )
    return Finding("store", "ok", f"Postgres answers: {place_of(uri)}")


async def _check_server(shell: Shell, url: str | None, token: str | None) -> Finding:
    """Look at the server that would be asked."""
    try:
        if not (url or client_settings(variables(shell)).url):
            return Finding("server", "none", "none of this folder runs: `palimpsest dev` starts one")
        async with open_memory(shell, url=url, token=token) as memory:
            place = memory.http.base_url.host
            there = await memory.get("/overview")
            known = f"{counted(there['facts'], 'fact')}, {counted(there['pending'], 'update')} to be learned"
            return Finding("server", "ok", f"{memory.place} answers: {known}")
    except Refused as refused:
        if isinstance(refused.__cause__, httpx.ConnectError | httpx.ConnectTimeout) and is_loopback(place):
            return Finding("server", "none", str(refused))
        return Finding(
            "server", "failed", str(refused), "change --url, --token or their variables, or stop what is there"
        )
