"""The `palimpsest` command, and what its commands about a set-up take: a help imports no more than this."""

import gc
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphs.cli import archive, commands
from graphs.cli.chat import chat
from graphs.cli.shell import JSON, TOKEN, URL, CommandLine, Refused, Shell, examples_of_use

if TYPE_CHECKING:
    from graphs.settings import AuthSettings

CONFIG = click.Option(
    ["--config", "-c"], type=click.Path(path_type=Path),
    help="What is served. Default: this folder's langgraph.json, else the package's own.",
)  # fmt: skip
_MORE = """\b
Exit codes: 0 done, 1 refused or failed, 2 the command line is wrong.
The server is this folder's, or that of PALIMPSEST_URL, or of --url behind COMMAND; COMMAND --help has examples.
"""


@click.command(
    params=[
        click.Option(["--host"], default="127.0.0.1", help="Elsewhere needs PALIMPSEST_OPEN_TO_NETWORK too."),
        click.Option(["--port"], type=click.IntRange(1, 65535), help="Default: 2024, or the next free one."),
        CONFIG,
        click.Argument(["langgraph_options"], nargs=-1, type=click.UNPROCESSED),
    ],
    context_settings={"ignore_unknown_options": True},
)
def dev(host: str, port: int | None, config: Path | None, langgraph_options: Sequence[str]) -> None:
    """Run the graph under `langgraph dev`; options it does not know itself are passed on.

    Without a model provider in the environment or in .env, a local model is fetched once and served on loopback.
    """
    from graphs.cli.dev import serve

    serve(host, port, config, langgraph_options)


@click.command(
    params=[CONFIG, click.Option(["--no-ask"], is_flag=True, help="Ask no model for a word."), URL, TOKEN, JSON],
    epilog=examples_of_use("doctor", "doctor --no-ask --json"),
)
@click.pass_obj
def doctor(shell: Shell, config: Path | None, no_ask: bool, url: str | None, token: str | None) -> None:
    """Look for what is wrong here: settings, model, memory model, store, server.

    It changes nothing. Each provider's model is asked for one word. Exit code 1 if something does not work.
    """
    from graphs.cli.doctor import examine

    if not examine(shell, config, url, token, asks=not no_ask):
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("user")
@click.option("--days", type=click.FloatRange(0.0001, 3650), default=30.0, help="How long it is valid.")
@click.option("--operator", is_flag=True, help="It may publish assistants for everyone.")
@click.option("--permission", "permissions", multiple=True, help="A permission of your own; may be repeated.")
def token(user: str, days: float, operator: bool, permissions: Sequence[str]) -> None:
    """Print a bearer token for USER, signed with PALIMPSEST_AUTH_SECRET of the environment or .env.

    USER is whose threads and memory the token opens: unique, and the same for ever. Whoever has the token is that user
    until it expires.
    """
    from graphs.server.permissions import OPERATOR
    from graphs.settings import Settings, environment

    try:
        settings = Settings.from_environment(environment(Path(".env"))).auth
        granted = [*permissions, *([OPERATOR] if operator else [])]
        click.echo(make_token(settings, user, granted, seconds=int(days * 24 * 3600)))
    except ValueError as error:
        raise Refused(f"{error}.") from error


def make_token(settings: "AuthSettings", user: str, permissions: Sequence[str], *, seconds: int) -> str:
    """Return a token that a server with these settings takes.

    Args:
        settings: The server's; the token carries their audience and issuer.
        user: The identity.
        permissions: What the user may do beyond what every user may.
        seconds: How long it is valid.

    Raises:
        ValueError: If the server's tokens are not signed with a shared secret, or it would refuse this one.
    """
    import jwt
    from langgraph_sdk import Auth

    from graphs.server.authenticate import load_authenticator

    if not settings.secret:
        raise ValueError(
            "set PALIMPSEST_AUTH_SECRET in .env first; with another way to log in, tokens come from whoever has its key"
        )
    authenticate, now = load_authenticator(settings), int(time.time())
    claims = {settings.user_claim: user, "iat": now, "exp": now + seconds, "permissions": list(permissions)}
    claims |= {name: value for name, value in (("aud", settings.audience), ("iss", settings.issuer)) if value}
    made = jwt.encode(claims, settings.secret, "HS256")
    try:
        authenticate(f"Bearer {made}")
    except Auth.exceptions.HTTPException as error:
        raise ValueError(str(error.detail)) from None
    return made


@click.group(
    cls=CommandLine,
    commands=[
        chat, commands.facts, commands.pending, archive.write_out, archive.read_in, archive.backfill, commands.sources,
        commands.erase, doctor, dev, token,
    ],
    epilog=_MORE,
    context_settings={"max_content_width": 120},
)  # fmt: skip
@click.option("--debug", is_flag=True, help="Show where an unexpected error came from.")
@click.version_option(package_name="palimpsest-memory", prog_name="palimpsest")
@click.pass_context
def main(ctx: click.Context, debug: bool) -> None:
    """A chat agent for LangGraph Platform that remembers."""
    # What a command imports stays until it ends: looking through all of it for garbage took a third of its time.
    gc.set_threshold(100_000)
    ctx.ensure_object(Shell).debug = debug
