"""A bearer token for a user of a server whose tokens are signed with a shared secret."""

from collections.abc import Sequence

import jwt
from langgraph_sdk import Auth

from graphs.server.authenticate import load_authenticator
from graphs.settings import AuthSettings


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
