"""The commands about a set-up: what each takes, and what it says of itself. A help imports no more than this."""

from pathlib import Path
from typing import Annotated

import typer

from graphs.cli.asking import AsJson, Token, Url
from graphs.cli.shell import Output, Refused, Shell

Config = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", help="What is served. Default: this folder's langgraph.json, else the package's own."
    ),
]


def dev(
    host: Annotated[
        str, typer.Option(help="Where to listen; elsewhere needs PALIMPSEST_OPEN_TO_NETWORK too.")
    ] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Default: 2024, or the next free one.")] = None,
    config: Config = None,
    langgraph_options: Annotated[
        list[str] | None, typer.Argument(metavar="LANGGRAPH_OPTIONS", help="Passed on to `langgraph dev`.")
    ] = None,
) -> None:
    """Run the graph under `langgraph dev`; options it does not know itself are passed on.

    Without a model provider in the environment or in .env, a local model is fetched once and served on loopback.
    """
    from graphs.cli.dev import check_server, serve

    check_server()
    raise typer.Exit(serve(host, port, config, tuple(langgraph_options or ())))


def doctor(
    ctx: typer.Context,
    config: Config = None,
    no_ask: Annotated[bool, typer.Option("--no-ask", help="Ask no model for a word.")] = False,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Look for what is wrong here: settings, model, memory model, store, server.

    It changes nothing. Each model is asked for one word. Exit code 1 if something does not work.
    """
    from graphs.cli.doctor import examine

    shell = ctx.find_object(Shell) or Shell()
    shell.as_json = as_json
    if not examine(shell, Output(as_json), config, url, token, asks=not no_ask):
        raise typer.Exit(1)


def token(
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose threads and memory it opens.")],
    days: Annotated[float, typer.Option(min=0.0001, max=3650, help="How long it is valid.")] = 30.0,
    operator: Annotated[bool, typer.Option("--operator", help="It may publish assistants for everyone.")] = False,
    permissions: Annotated[
        list[str] | None, typer.Option("--permission", help="A permission of your own; may be repeated.")
    ] = None,
) -> None:
    """Print a bearer token for USER, signed with PALIMPSEST_AUTH_SECRET of the environment or .env.

    USER is whose threads and memory the token opens: unique, and the same for ever. Whoever has the token is that user
    until it expires.
    """
    import time

    from graphs.cli.token import make_token
    from graphs.server.permissions import OPERATOR
    from graphs.settings import Settings, environment

    try:
        settings = Settings.from_environment(environment(Path(".env"))).auth
        granted = [*(permissions or ()), *([OPERATOR] if operator else [])]
        typer.echo(make_token(settings, user, granted, now=int(time.time()), seconds=int(days * 24 * 3600)))
    except ValueError as error:
        raise Refused(f"{error}.") from error
