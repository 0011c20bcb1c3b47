"""`palimpsest token`: a bearer token for a user of a server whose tokens are signed with a shared secret."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from graphs.auth_settings import AuthSettings
from graphs.cli.shell import Refused
from graphs.settings import Settings, environment

_DAY = 24 * 3600


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
    from graphs.server.permissions import OPERATOR  # with the SDK, which other commands do not need

    try:
        settings = Settings.from_environment(environment(Path(".env"))).auth
        granted = [*(permissions or ()), *([OPERATOR] if operator else [])]
        typer.echo(make_token(settings, user, granted, now=int(time.time()), seconds=int(days * _DAY)))
    except ValueError as error:
        raise Refused(f"{error}.") from error


def make_token(settings: AuthSettings, user: str, permissions: Sequence[str], *, now: int, seconds: int) -> str:
    """Return a token that a server with these settings takes.

    Args:
        settings: The server's; the token carries their audience and issuer.
        user: The identity.
        permissions: What the user may do beyond what every user may.
        now: Seconds since the epoch.
        seconds: How long it is valid.

    Raises:
        ValueError: If the server's tokens are not signed with a shared secret, or it would refuse this one.
    """
    # Only here, as other commands need none of them.
    import jwt
    from langgraph_sdk import Auth

    from graphs.server.authenticate import load_authenticator

    if not settings.secret:
        raise ValueError(
            "set PALIMPSEST_AUTH_SECRET in .env first; with another way to log in, tokens come from whoever has its key"
        )
    authenticate = load_authenticator(settings)
    claims = {settings.user_claim: user, "iat": now, "exp": now + seconds, "permissions": list(permissions)}
    claims |= {name: value for name, value in (("aud", settings.audience), ("iss", settings.issuer)) if value}
    made = jwt.encode(claims, settings.secret, "HS256")
    try:
        authenticate(f"Bearer {made}")
    except Auth.exceptions.HTTPException as error:
        raise ValueError(str(error.detail)) from None
    return made
