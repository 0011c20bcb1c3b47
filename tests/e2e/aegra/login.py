"""The login of `graphs.auth` as Aegra calls it: with all headers, and awaited."""

import asyncio
from collections.abc import Mapping

from graphs.server.authenticate import User, load_authenticator
from graphs.server.permissions import make_auth
from graphs.settings import Settings

_authenticator = load_authenticator(Settings.from_environment().auth)
auth = make_auth(_authenticator)


async def authenticate(headers: Mapping[str, str]) -> User:
    """Return who calls; waiting for an issuer's keys stops nobody else."""
    return await asyncio.to_thread(_authenticator, headers.get("authorization"))


auth._authenticate_handler = authenticate  # a second one is refused
