"""What every command about memory shares: where it is, whose it is, and how the answer is printed."""

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphs.cli.shell import Output, Refused, Shell

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient
    from graphs.cli.local_files import Files
    from graphs.settings import ClientSettings

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


def variables(shell: Shell) -> dict[str, str]:
    """Return the variables as the server of this folder sees them."""
    from graphs.settings import environment  # in functions, as in all commands: a help does not wait for imports

    return environment(Path(".env"), shell.environ)


def client_settings(environ: Mapping[str, str]) -> "ClientSettings":
    """Return which server is meant where the command line does not say; its URL is empty where none is known."""
    from dataclasses import replace

    from graphs.address import address_of
    from graphs.settings import ClientSettings

    try:
        given = ClientSettings.from_environment(environ)
    except ValueError as error:
        raise Refused(f"{error}.") from error
    return given if given.url else replace(given, url=address_of(given.data_dir))


@asynccontextmanager
async def open_memory(
    shell: Shell,
    files: "Files" = "there",
    *,
    url: Url = None,
    token: Token = None,
    agent: AsAgent = "default",
    local: Local = False,
) -> AsyncIterator["MemoryClient"]:
    """Open the memory that a command is about.

    Args:
        shell: What the command works with.
        files: What is needed of local files.
        url: The server.
        token: Who asks it.
        agent: Whose memory.
        local: Ask the same API in this process, on this folder's files.

    Raises:
        Refused: If there is none.
    """
    from graphs.cli.client import NO_SERVER, MemoryClient, connect

    environ = variables(shell)
    if local:
        # Both at once would leave open which memory was meant.
        if url or token:
            raise typer.BadParameter("--local asks no server: leave out --url and --token")
        from graphs.cli.local_files import open_files

        async with open_files(environ, files) as (transport, place):
            yield MemoryClient(connect("http://localhost", "", transport), agent, place, is_local=True)
        return
    given = client_settings(environ)
    url = url or given.url
    if not url:
        raise Refused(f"no server of this folder runs: {NO_SERVER}, or read its files with --local")
    async with connect(url, token or given.token, shell.transport) as http:
        yield MemoryClient(http, agent, url)


Command = Callable[..., Coroutine[Any, Any, None]]
"""A coroutine function of a `MemoryClient`, an `Output`, and options."""


def asks_memory(files: "Files" = "there") -> Callable[[Command], Callable[..., None]]:
    """Return what gives a command the options that say which memory it is about, opens that, and runs it.

    The command's first two parameters are that memory, and where it prints; the others are options and arguments.

    Args:
        files: What the command needs of local files.
    """

    def decorate(command: Command) -> Callable[..., None]:
        shared = list(inspect.signature(open_memory).parameters.values())[2:]

        def run(ctx: typer.Context, as_json: AsJson = False, **given: Any) -> None:
            import asyncio

            shell = ctx.find_object(Shell) or Shell()
            shell.as_json = as_json
            where = {each.name: given.pop(each.name) for each in shared}

            async def ask() -> None:
                async with open_memory(shell, files, **where) as memory:
                    await command(memory, Output(as_json), **given)

            asyncio.run(ask())

        context, json_option, _ = inspect.signature(run).parameters.values()
        own = list(inspect.signature(command).parameters.values())[2:]  # without memory and output
        functools.update_wrapper(run, command)
        all_options = (context, *own, *shared, json_option)
        taken = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in all_options]
        # These two are where typer looks for what a command takes.
        run.__dict__["__signature__"] = inspect.Signature(taken)
        run.__annotations__ = {each.name: each.annotation for each in taken}
        return run

    return decorate
