"""What `palimpsest doctor` looks at: each check says what it found, and what to do about it."""

import importlib.metadata
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click
from packaging.requirements import Requirement

from graphs.cli.dev import INSTALL_SERVER, has_login, has_module, server_environment, server_settings, wants_local
from graphs.local import weights
from graphs.settings import LOCAL, Settings, misspelt
from memory.context.tokenizer import Tokenizer

_ASK_SECONDS = 60.0
_LITTLE_SPACE, _NO_SPACE = 1_000_000_000, 100_000_000


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


def installed_version(package: str) -> str | None:
    """Return the version of a package that is installed, or `None`."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def free_bytes(folder: Path) -> int:
    """Return how many bytes are free where a folder is, or will be."""
    there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    return shutil.disk_usage(there).free


def ask_model(environ: Mapping[str, str], *options: str) -> str:
    """Ask the configured model for one word, in a process with the server's variables; return why it cannot answer."""
    command = [sys.executable, "-m", "graphs.cli.ask_model", *options]
    try:
        # The providers' packages read their keys from the environment of the process.
        done = subprocess.run(
            command, env=server_environment(environ, None), capture_output=True, timeout=_ASK_SECONDS, check=False
        )
        return str(json.loads(done.stdout or b"null") or "") if done.returncode == 0 else _last_line(done.stderr)
    except subprocess.TimeoutExpired:
        return f"it did not answer within {_ASK_SECONDS:.0f} s."
    except ValueError:
        return "it could not be asked."


def load_model(environ: Mapping[str, str]) -> str:
    """Load the configured model, in the same way, and send nothing anywhere; return why it cannot be asked."""
    return ask_model(environ, "--only-load")


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it could not be asked."


@dataclass(frozen=True, slots=True)
class Machine:
    """What checks ask the machine.

    Attributes:
        installed: Returns the version of a package, or `None`.
        has: Returns whether a module can be imported.
        free: Returns the free bytes where a folder is.
        ask: Asks the model with these variables, and returns why it cannot answer; empty where it did.
        load: Loads it only: its provider, the provider's package and the key have to be there.
        tokenizer: Returns what counts tokens, not yet loaded.
        models: Where the weights of local models are kept.
    """

    installed: Callable[[str], str | None] = installed_version
    has: Callable[[str], bool] = has_module
    free: Callable[[Path], int] = free_bytes
    ask: Callable[[Mapping[str, str]], str] = ask_model
    load: Callable[[Mapping[str, str]], str] = load_model
    tokenizer: Callable[[], Tokenizer] = Tokenizer
    models: Callable[[], Path] = weights.cache_folder


def examine(environ: Mapping[str, str], config: Path, machine: Machine, *, asks: bool = True) -> Iterator[Finding]:
    """Yield what is found, in the order in which a start needs it.

    Args:
        environ: The variables, those of `.env` among them.
        config: The server's configuration file.
        machine: What is asked.
        asks: Whether the model is asked for a word.
    """
    yield check_versions(machine)
    yield from check_names(environ)
    server_file, authenticates = check_server_file(config)
    yield server_file
    try:
        settings = server_settings(environ, authenticates=authenticates)
    except click.ClickException as error:
        fix = "change it in .env; the project's .env.example explains it"
        yield Finding("configuration", "failed", error.format_message(), fix)
        return
    who = "users log in" if authenticates else "single user, no login"
    yield Finding("configuration", "ok", who)
    yield check_journal(settings)
    yield check_model(settings, environ, machine, asks=asks)
    yield check_tokenizer(machine)
    yield check_embedder(settings, machine)
    yield from [check_database(settings.database_uri)] if settings.database_uri else check_files(settings.data_dir)
    yield check_disk(settings.data_dir, machine)


def check_journal(settings: Settings) -> Finding:
    """Tell how long what was said is kept: of what no fact tells, the journal is all that memory has."""
    memory = settings.memory
    until = f"for {memory.journal_days} days, {memory.journal_bytes:,} bytes a user"
    fix = "PALIMPSEST_JOURNAL_DAYS and PALIMPSEST_JOURNAL_BYTES set it"
    return Finding("journal", "ok", f"keeps what was said {until}; then memory has only what a fact tells", fix)


def check_versions(machine: Machine) -> Finding:
    """Look for packages that are missing, or older than what is known to work."""
    declared = [Requirement(line) for line in importlib.metadata.requires("palimpsest-memory") or ()]
    wrong = []
    for wanted in (each for each in declared if each.marker is None or each.marker.evaluate({"extra": ""})):
        found = machine.installed(wanted.name)
        if found is None or not wanted.specifier.contains(found, prereleases=True):
            wrong.append(f"{wanted.name} {found or 'is missing'} (wanted: {wanted.specifier})")
    if wrong:
        again = "pip install --upgrade --upgrade-strategy eager palimpsest-memory, or `make dev` in the project"
        return Finding("versions", "failed", ", ".join(wrong), again)
    own = machine.installed("palimpsest-memory")
    python = ".".join(map(str, sys.version_info[:3]))
    if not machine.has("langgraph_api"):
        return Finding(
            "versions", "warning", f"palimpsest {own}, Python {python}, without a server of its own",
            f"{INSTALL_SERVER}, for `palimpsest dev`",
        )  # fmt: skip
    return Finding("versions", "ok", f"palimpsest {own}, langgraph {machine.installed('langgraph')}, Python {python}")


def check_names(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look for variables that nothing reads: a misspelt one is as if it were not set."""
    for name, meant in misspelt(environ):
        fix = f"is {meant} meant?" if meant else "remove it; the project's .env.example lists all there are"
        yield Finding("configuration", "warning", f"{name} is no variable of ours: nothing reads it", fix)


def check_server_file(config: Path) -> tuple[Finding, bool]:
    """Look at what `palimpsest dev` serves, and return whether users log in there."""
    if not config.exists():
        fix = "name another file with --config, or none: then the package's own is served"
        return Finding("server file", "failed", f"there is no {config} here", fix), False
    try:
        authenticates = has_login(config)
    except click.ClickException as error:
        fix = "mend it; without it, the package's own is served"
        return Finding("server file", "failed", error.format_message(), fix), False
    return Finding("server file", "ok", str(config)), authenticates


def check_model(settings: Settings, environ: Mapping[str, str], machine: Machine, *, asks: bool) -> Finding:
    """Ask the model that chats, or only load it; of the local one, look for what it needs."""
    if not settings.deployment and wants_local(settings):
        return _check_local_model(settings, machine)
    name = settings.model or settings.deployment
    # The local one needs no package and no key of its own where somebody serves it.
    why = machine.ask(environ) if asks else "" if name == LOCAL else machine.load(environ)
    if why:
        return Finding("model", "failed", f"{name}: {why}", "set what it names in .env, and ask the doctor again")
    return Finding("model", "ok", f"{name} answers" if asks else f"{name}, not asked")


def _check_local_model(settings: Settings, machine: Machine) -> Finding:
    provider = "set OPENAI_API_KEY, or PALIMPSEST_MODEL=provider:model with its key, in .env"
    if not machine.has("xllamacpp"):
        said = "no model is configured, and the local one is not installed: every turn fails"
        return Finding("model", "failed", said, f"{provider}; or pip install 'palimpsest-memory[local]'")
    try:
        chosen = weights.choose(settings.local_model)
    except ValueError as error:
        return Finding("model", "failed", str(error), "change PALIMPSEST_LOCAL_MODEL in .env")
    if isinstance(chosen, Path):
        return Finding("model", "ok", f"the local model {chosen}")
    folder = machine.models()
    if weights.find(chosen, folder):
        return Finding("model", "ok", f"the local model {chosen.name} is here (small and slow; or {provider})")
    missing = weights.missing_bytes(chosen, folder)
    needed, free = missing + chosen.size, machine.free(folder)
    if free < needed:
        said = f"the local model needs {needed / 1e9:.1f} GB in {folder}, and {free / 1e9:.1f} GB are free"
        return Finding("model", "failed", said, f"make room, choose {chosen.smaller}, or {provider}")
    said = f"the local model {chosen.name} is fetched by the first `palimpsest dev`, {missing / 1e9:.1f} GB, once"
    return Finding("model", "warning", said, f"or {provider}")


def check_tokenizer(machine: Machine) -> Finding:
    """Look whether tokens are counted, or estimated."""
    tokenizer = machine.tokenizer()
    tokenizer.warm_up()
    if tokenizer.exact:
        return Finding("tokenizer", "ok", "tokens are counted exactly")
    said = "tokens are estimated as a quarter of the characters: budgets are off, most of all in Chinese or Japanese"
    return Finding("tokenizer", "warning", said, "pip install 'palimpsest-memory[tokens]', which needs no network")


def check_embedder(settings: Settings, machine: Machine) -> Finding:
    """Look whether texts are found by their meaning."""
    if settings.embedder == "none":
        return Finding("embedder", "ok", "none is wanted: memory is searched by words")
    if settings.embedder in ("", "local"):
        from graphs.local import embedder  # with LangChain, which other commands do not wait for

        missing = [package for package in embedder.PACKAGES if not machine.has(package)]
        extra = "pip install 'palimpsest-memory[embedder]'"
        if missing and settings.embedder:
            said = f"PALIMPSEST_EMBEDDER=local needs {', '.join(missing)}: memory is searched by words alone"
            return Finding("embedder", "failed", said, f"{extra}, or PALIMPSEST_EMBEDDER=none")
        if missing:
            return Finding("embedder", "ok", f"none: memory is searched by words ({extra} finds by meaning, too)")
        if not embedder.is_fetched(machine.models()):
            megabytes = embedder.MODEL.download_size // 1_000_000
            return Finding("embedder", "ok", f"the local one; the server fetches {megabytes} MB for it, once")
        return Finding("embedder", "ok", "the local one is here")
    if not machine.has("numpy"):
        fix = "pip install 'palimpsest-memory[embedder]'"
        return Finding("embedder", "failed", f"{settings.embedder} needs numpy to rank what it finds", fix)
    return Finding("embedder", "ok", f"{settings.embedder}, not asked")


def check_files(folder: Path) -> Iterator[Finding]:
    """Look at the SQLite files: there, whole, writable, and nobody else's to read."""
    if not folder.exists():
        parent = next(each for each in folder.absolute().parents if each.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            fix = "choose another folder with PALIMPSEST_DATA_DIR, or let this user write there"
            yield Finding("store", "failed", f"{folder} cannot be made in {parent}", fix)
        else:
            yield Finding("store", "ok", f"{folder} is made by the first start")
        return
    if not folder.is_dir():
        fix = "move the file away, or choose another folder with PALIMPSEST_DATA_DIR"
        yield Finding("store", "failed", f"{folder} is a file, and no folder", fix)
        return
    from graphs.persistence import FILES  # with LangGraph, which other commands do not wait for

    for path in (folder / name for name in FILES):
        yield _check_file(path) if path.exists() else Finding("store", "ok", f"{path} is made by the first start")


def _check_file(path: Path) -> Finding:
    if not os.access(path, os.R_OK | os.W_OK):
        return Finding(
            "store", "failed", f"{path} cannot be read and written", f"chown it to this user; chmod 600 {path}"
        )
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=5.0)) as connection:
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        said = str(error)
    if said != "ok":
        fix = (
            f"stop the server, move {path.name} and its -wal file away, start, and `palimpsest import` your last export"
        )
        return Finding("store", "failed", f"{path} is damaged: {said}", fix)
    if path.stat().st_mode & 0o077:
        return Finding("store", "warning", f"other users of this machine may read {path}", f"chmod 600 {path}")
    return Finding("store", "ok", f"{path} is whole, {path.stat().st_size / 1e6:.1f} MB")


def check_database(uri: str) -> Finding:
    """Look whether the configured Postgres answers."""
    if not has_module("psycopg"):
        return Finding(
            "store", "failed", "DATABASE_URI needs Postgres's client", "pip install 'palimpsest-memory[postgres]'"
        )
    import psycopg

    from graphs.persistence.postgres import place_of

    try:
        with psycopg.connect(uri, connect_timeout=5) as connection:
            version = connection.info.server_version // 10_000
    except psycopg.Error as error:
        said = f"the database {place_of(uri)} does not answer: {' '.join(str(error).split())}"
        return Finding("store", "failed", said, "start it, or correct DATABASE_URI")
    return Finding("store", "ok", f"Postgres {version} answers: {place_of(uri)}")


def check_disk(folder: Path, machine: Machine) -> Finding:
    """Look whether there is room for what is to be remembered."""
    free = machine.free(folder)
    said = f"{free / 1e9:.1f} GB are free where {folder} is"
    if free < _NO_SPACE:
        return Finding("disk", "failed", said, "make room: on a full disk turns are answered, and nothing is learned")
    return Finding("disk", "warning", said, "make room soon") if free < _LITTLE_SPACE else Finding("disk", "ok", said)
