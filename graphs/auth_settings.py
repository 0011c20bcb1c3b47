"""What a server that authenticates is told; `settings.py` reads it."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """How a server that authenticates (`langgraph.prod.json`) knows who calls; one of the first four is needed.

    Attributes:
        secret: Shared secret of HMAC-signed tokens: 32 bytes for HS256, 48 for HS384, 64 for HS512.
        public_key: PEM public key of asymmetrically signed tokens (RS, PS, ES, EdDSA).
        jwks_url: Where the issuer publishes its public keys; `https`, or `http` on this machine.
        authenticator: `module:function` that is used instead of JSON web tokens; see `graphs.server.authenticate`.
        audience: The `aud` that a token must carry; empty accepts any.
        issuer: The `iss` that a token must carry; empty accepts any.
        user_claim: The claim that names the user.
    """

    secret: str = field(default="", repr=False)
    public_key: str = ""
    jwks_url: str = ""
    authenticator: str = ""
    audience: str = ""
    issuer: str = ""
    user_claim: str = "sub"
