"""`palimpsest migrate`: what the SQLite files of this folder hold, moved into the database of DATABASE_URI."""

import asyncio
import sqlite3
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from graphs.cli.output import Output
from graphs.cli.shell import Refused, Shell
from graphs.settings import Settings, environment

_ROWS_ONLY = (
    "Conversations are there under their ids. The development server's list of threads stays where it is: create a "
    "thread under its id, with `if_exists: do_nothing`, to go on with it elsewhere."
)


def migrate(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Move facts, journal, pending updates and conversations from SQLite to the Postgres of DATABASE_URI.

    The server must be stopped. The files stay as they are. Stopped in between, it goes on where it was.
    """
    shell = ctx.ensure_object(Shell)
    shell.as_json = as_json
    environ = environment(Path(".env")) if shell.environ is None else shell.environ
    try:
        settings = Settings.from_environment(environ)
    except ValueError as error:
        raise Refused(f"{error}.") from error
    asyncio.run(_migrate(settings, Output(as_json)))


async def _migrate(settings: Settings, out: Output) -> None:
    if not settings.database_uri:
        raise Refused("DATABASE_URI names no database: set it to postgresql://user:password@host:5432/name")
    from graphs.cli.local_files import is_open_elsewhere
    from graphs.persistence import CHECKPOINTS, STORE, WrongKey, check_postgres

    checkpoints, store = settings.data_dir / CHECKPOINTS, settings.data_dir / STORE
    for path in (checkpoints, store):
        if not path.exists():
            raise Refused(f"there is no {path}: run this where you run `palimpsest dev`, or set PALIMPSEST_DATA_DIR")
        if await asyncio.to_thread(is_open_elsewhere, path):
            raise Refused(f"another process has {path} open, a server perhaps: stop it first")
    try:
        check_postgres(settings)
    except ValueError as error:
        raise Refused(f"{error}.") from error
    from graphs.persistence.migration import NotEmpty, open_migration
    from graphs.persistence.postgres import DatabaseAway

    try:
        async with open_migration(checkpoints, store, settings.database_uri) as migration:
            before = await migration.counts_before()
            was_done = await migration.begin()
            if not was_done:
                await migration.carry(lambda what, done, of: _tell(out, what, done, of))
            after = await migration.counts_after()
    except (DatabaseAway, NotEmpty, WrongKey, sqlite3.Error) as error:
        raise Refused(f"{error}") from error
    counts = {"before": asdict(before), "after": asdict(after), "was_done": was_done}
    rows = [(kind, str(number), str(asdict(after)[kind])) for kind, number in asdict(before).items()]
    out.answer(counts, lambda: out.table(("", "files", "database"), rows))
    if was_done:
        out.note("This was done before, and nothing was carried over again.")
    elif missing := before.missing_from(after):
        raise Refused(f"the database has fewer {', '.join(missing)} than the files: start the command again")
    else:
        out.note(_ROWS_ONLY)


def _tell(out: Output, what: str, done: int, of: int) -> None:
    if done == of or done % 1000 == 0:
        out.note(f"{what}: {done} of {of}")
