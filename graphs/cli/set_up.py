"""The commands about a set-up: what each takes, and what it says of itself. A help imports no more than this."""

from pathlib import Path

import click

from graphs.cli.asking import JSON, TOKEN, URL
from graphs.cli.shell import Refused, Shell, examples

CONFIG = click.Option(
    ["--config", "-c"], type=click.Path(path_type=Path),
    help="What is served. Default: this folder's langgraph.json, else the package's own.",
)  # fmt: skip


@click.command(
    params=[
        click.Option(["--host"], default="127.0.0.1", help="Elsewhere needs PALIMPSEST_OPEN_TO_NETWORK too."),
        click.Option(["--port"], type=click.IntRange(1, 65535), help="Default: 2024, or the next free one."),
        CONFIG,
        click.Argument(["langgraph_options"], nargs=-1, type=click.UNPROCESSED),
    ],
    context_settings={"ignore_unknown_options": True},
)
def dev(host: str, port: int | None, config: Path | None, langgraph_options: tuple[str, ...]) -> None:
    """Run the graph under `langgraph dev`; options it does not know itself are passed on.

    Without a model provider in the environment or in .env, a local model is fetched once and served on loopback.
    """
    from graphs.cli.dev import serve

    raise click.exceptions.Exit(serve(host, port, config, langgraph_options))


@click.command(
    params=[CONFIG, click.Option(["--no-ask"], is_flag=True, help="Ask no model for a word."), URL, TOKEN, JSON],
    epilog=examples("doctor", "doctor --no-ask --json"),
)
@click.pass_obj
def doctor(shell: Shell, config: Path | None, no_ask: bool, url: str | None, token: str | None, as_json: bool) -> None:
    """Look for what is wrong here: settings, model, memory model, store, server.

    It changes nothing. Each model is asked for one word. Exit code 1 if something does not work.
    """
    from graphs.cli.doctor import examine

    shell.as_json = as_json
    if not examine(shell, config, url, token, asks=not no_ask):
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("user")
@click.option("--days", type=click.FloatRange(0.0001, 3650), default=30.0, help="How long it is valid.")
@click.option("--operator", is_flag=True, help="It may publish assistants for everyone.")
@click.option("--permission", "permissions", multiple=True, help="A permission of your own; may be repeated.")
def token(user: str, days: float, operator: bool, permissions: tuple[str, ...]) -> None:
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
        granted = [*permissions, *([OPERATOR] if operator else [])]
        click.echo(make_token(settings, user, granted, now=int(time.time()), seconds=int(days * 24 * 3600)))
    except ValueError as error:
        raise Refused(f"{error}.") from error
