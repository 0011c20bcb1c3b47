"""What every command about memory shares: where it is, whose it is, and how the answer is printed."""

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import httpx
import typer

from graphs.address import address_of
from graphs.cli.client import NOT_HERE, MemoryClient, connect
from graphs.cli.output import Output
from graphs.cli.shell import Refused, Shell
from graphs.settings import ClientSettings, environment

if TYPE_CHECKING:
    from graphs.cli.local_files import Files

ENV_FILE = Path(".env")
_PANEL = "Which memory"


Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="The server. Default: PALIMPSEST_URL, or the one of this folder.", rich_help_panel=_PANEL
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        metavar="TOKEN",
        help="Your token, where users log in. Default: PALIMPSEST_TOKEN.",
        rich_help_panel=_PANEL,
    ),
]
AsAgent = Annotated[
    str,
    typer.Option("--agent", metavar="NAME", help="Whose memory: an agent_name.", rich_help_panel=_PANEL),
]
Local = Annotated[
    bool,
    typer.Option("--local", help="Ask no server, but this folder's files.", rich_help_panel=_PANEL),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's own answer as JSON.")]


@dataclass(frozen=True, slots=True)
class Where:
    """The options that every command about memory has."""

    url: Url = None
    token: Token = None
    agent: AsAgent = "default"
    local: Local = False
    as_json: AsJson = False


def client_settings(shell: Shell) -> ClientSettings:
    """Return which server is meant where the command line does not say; its URL is empty where none is known."""
    try:
        given = ClientSettings.from_environment(environment(ENV_FILE, shell.environ))
    except ValueError as error:
        raise Refused(f"{error}.") from error
    return given if given.url else replace(given, url=address_of(given.data_dir))


@asynccontextmanager
async def open_memory(shell: Shell, where: Where, files: "Files" = "there") -> AsyncIterator[MemoryClient]:
    """Open the memory that a command is about.

    Args:
        shell: What the command works with.
        where: What the command line says.
        files: What is needed of local files.

    Raises:
        Refused: If there is none.
    """
    if where.local:
        # Both at once would leave open which memory was meant.
        if where.url or where.token:
            raise typer.BadParameter("--local asks no server: leave out --url and --token")
        from graphs.cli.local_files import (
            open_files,  # with the graph and the API, which a server's clients do not need
        )

        async with (
            open_files(environment(ENV_FILE, shell.environ), files) as (transport, place),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as http,
        ):
            yield MemoryClient(http, where.agent, place, is_local=True)
        return
    given = client_settings(shell)
    url = where.url or given.url
    if not url:
        raise Refused(f"{NOT_HERE}, or read its files with --local")
    try:
        http = connect(url, where.token or given.token, shell.transport)
    except ValueError as error:
        raise Refused(str(error)) from None
    async with http:
        yield MemoryClient(http, where.agent, url)


Command = Callable[..., Coroutine[Any, Any, None]]
"""A coroutine function of a `MemoryClient`, an `Output`, and options."""


def asks_memory(files: "Files" = "there") -> Callable[[Command], Callable[..., None]]:
    """Return what gives a command the options that say which memory it is about, opens that, and runs it.

    The command's first two parameters are that memory, and where it prints; the others are options and arguments.

    Args:
        files: What the command needs of local files.
    """

    def decorate(command: Command) -> Callable[..., None]:
        shared = inspect.signature(Where).parameters

        @functools.wraps(command)
        def run(ctx: typer.Context, **given: Any) -> None:
            shell = ctx.find_object(Shell) or Shell()
            where = Where(**{name: given.pop(name) for name in shared})
            shell.as_json = where.as_json

            async def ask() -> None:
                async with open_memory(shell, where, files) as memory:
                    await command(memory, Output(where.as_json), **given)

            asyncio.run(ask())

        own = list(inspect.signature(command).parameters.values())[2:]  # without memory and output
        of_typer = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        taken = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (of_typer, *own, *shared.values())]
        # These two are where typer looks for what a command takes.
        run.__dict__["__signature__"] = inspect.Signature(taken)
        run.__annotations__ = {each.name: each.annotation for each in taken}
        return run

    return decorate
