"""Who calls: a request's `Authorization` header in, one identity out.

The default reads JSON web tokens. Another method takes its place with `PALIMPSEST_AUTH_AUTHENTICATOR`, which names
a function of this shape:

    def authenticate(authorization: str | None) -> User:
        session = sessions.get(authorization)
        if session is None:
            raise Auth.exceptions.HTTPException(status_code=401, detail="log in first")
        return User(identity=session.user_id, permissions=[])

The server calls it in a worker thread, once for each request, so it may wait for a database or a network.
"""

import logging
from collections.abc import Callable, Mapping
from typing import NotRequired, cast
from urllib.parse import urlsplit

import jwt
from langgraph_sdk import Auth
from typing_extensions import TypedDict

from graphs.process.address import is_loopback
from graphs.settings import AuthSettings, imported

logger = logging.getLogger(__name__)

MAX_IDENTITY_CHARS = 1024
CLOCK_SKEW_SECONDS = 30

# One family for each key: a public key must never be the secret of a token that names HMAC.
# An HMAC secret must be as long as the hash (RFC 7518, section 3.2).
_HMAC = {"HS256": 32, "HS384": 48, "HS512": 64}
_ASYMMETRIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class User(TypedDict):
    """What the server learns about a caller."""

    identity: str
    """Whose threads and whose memory; unique for each person, and stable."""
    display_name: NotRequired[str]
    """The name under which they write where several people do; by default the identity."""
    permissions: list[str]
    """What a caller may do beyond what every user may; see `graphs.server.permissions.OPERATOR`."""


Authenticator = Callable[[str | None], User]
"""Returns the caller that the `Authorization` header proves; raises `Auth.exceptions.HTTPException` with status 401."""


def load_authenticator(settings: AuthSettings) -> Authenticator:
    """Return the deployment's way to know who calls.

    Raises:
        ValueError: If not exactly one way is configured, or it cannot work; the message names the variable.
    """
    ways = ("secret", "public_key", "jwks_url", "authenticator")
    chosen = [way for way in ways if getattr(settings, way)]
    if len(chosen) != 1:
        names = ", ".join(f"PALIMPSEST_AUTH_{way.upper()}" for way in ways)
        raise ValueError(
            f"exactly one of {names} must be set, not {len(chosen)} of them: in .env, or in the environment of the "
            "image (docs/run/deploy.md)"
        )
    if settings.authenticator:
        return with_checked_identity(
            cast("Authenticator", imported("PALIMPSEST_AUTH_AUTHENTICATOR", settings.authenticator))
        )
    return with_checked_identity(jwt_authenticator(settings))


def with_checked_identity(authenticate: Authenticator) -> Authenticator:
    """Return the authenticator with its identities checked: one line of at most 1,024 printable characters."""

    def check(authorization: str | None) -> User:
        user = authenticate(authorization)
        identity = user["identity"]
        # It becomes the owner in metadata of threads, and is shown there: one line, no control characters.
        is_name = isinstance(identity, str) and identity.strip() and identity.isprintable()
        if not is_name or len(identity) > MAX_IDENTITY_CHARS:
            raise _not_logged_in(f"the identity must be 1 to {MAX_IDENTITY_CHARS} printable characters")
        return user

    return check


def jwt_authenticator(settings: AuthSettings) -> Authenticator:
    """Return an authenticator for bearer tokens (RFC 7519): signed by the configured key, and not expired.

    Raises:
        ValueError: If the key cannot do; the message names the variable.
    """
    key: Callable[[str], jwt.PyJWK] | str = settings.secret or settings.public_key
    algorithms: tuple[str, ...] = _ASYMMETRIC
    if settings.jwks_url:
        parts = urlsplit(settings.jwks_url)
        # Whoever can change keys on the way can log in as anyone.
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
            raise ValueError("PALIMPSEST_AUTH_JWKS_URL must start with https:// (http:// only on this machine)")
        key = jwt.PyJWKClient(settings.jwks_url, timeout=10).get_signing_key_from_jwt
    elif settings.public_key:
        if "PUBLIC KEY" not in settings.public_key:
            raise ValueError("PALIMPSEST_AUTH_PUBLIC_KEY must be a public key in PEM form")
    else:
        algorithms = tuple(name for name, size in _HMAC.items() if len(settings.secret.encode()) >= size)
        if not algorithms:
            raise ValueError(
                f"PALIMPSEST_AUTH_SECRET must have at least {min(_HMAC.values())} bytes: "
                "python3 -c 'import secrets; print(secrets.token_urlsafe(48))' makes one"
            )

    def authenticate(authorization: str | None) -> User:
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise _not_logged_in("send the header `Authorization: Bearer <token>`")
        try:
            claims = jwt.decode(
                token,
                key if isinstance(key, str) else key(token),
                algorithms=algorithms,
                audience=settings.audience or None,
                issuer=settings.issuer or None,
                leeway=CLOCK_SKEW_SECONDS,
                # A token without an end could not be taken back. Where no audience is expected, PyJWT would refuse
                # every token that names one.
                options={"require": ["exp", settings.user_claim], "verify_aud": bool(settings.audience)},
            )
        except jwt.PyJWTError as error:
            logger.info("bearer token refused: %s", type(error).__name__)
            raise _not_logged_in(f"the bearer token is not valid: {error} ({type(error).__name__})") from None
        identity = claims[settings.user_claim]
        name = str(claims.get("name") or identity)  # a standard claim (OpenID Connect)
        return User(identity=identity, display_name=name, permissions=_permissions(claims))

    return authenticate


def _permissions(claims: Mapping[str, object]) -> list[str]:
    """Return a token's permissions: a list in `permissions`, or words in `scope` (RFC 8693, section 4.2)."""
    permissions, scope = claims.get("permissions"), claims.get("scope")
    if permissions is None and isinstance(scope, str):
        return scope.split()
    return [each for each in permissions if isinstance(each, str)] if isinstance(permissions, list) else []


def _not_logged_in(detail: str) -> Exception:
    return Auth.exceptions.HTTPException(status_code=401, detail=detail)
