import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from langgraph_sdk import Auth

from graphs.cli.main import make_token
from graphs.server.authenticate import Authenticator, User, load_authenticator, with_checked_identity
from graphs.server.permissions import OPERATOR
from graphs.settings import AuthSettings, Settings

SECRET = "a secret of at least thirty-two bytes"
PRIVATE_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC_PEM = (
    PRIVATE_KEY.public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    .decode()
)


def claims(**changes: Any) -> dict[str, Any]:
    whole = {"sub": "ada", "exp": time.time() + 600, **changes}
    return {name: value for name, value in whole.items() if value is not None}


def bearer(key: Any = SECRET, algorithm: str = "HS256", **changes: Any) -> str:
    return "Bearer " + jwt.encode(claims(**changes), key, algorithm)


def refusal(authenticator: Authenticator, authorization: str | None) -> str:
    with pytest.raises(Auth.exceptions.HTTPException) as caught:
        authenticator(authorization)
    assert caught.value.status_code == 401
    return str(caught.value.detail)


@pytest.fixture
def hmac() -> Authenticator:
    return load_authenticator(AuthSettings(secret=SECRET))


def test_a_signed_token_names_the_user(hmac: Authenticator) -> None:
    assert hmac(bearer()) == User(identity="ada", display_name="ada", permissions=[])
    assert hmac(bearer(name="Ada Lovelace"))["display_name"] == "Ada Lovelace"
    assert hmac(bearer().replace("Bearer", "bearer"))["identity"] == "ada"


def test_a_secret_signs_with_the_hashes_it_is_long_enough_for(hmac: Authenticator) -> None:
    long = SECRET.ljust(64, ".")
    assert load_authenticator(AuthSettings(secret=long))(bearer(long, "HS512"))["identity"] == "ada"
    header = jwt.utils.base64url_encode(b'{"alg":"HS512"}').decode()
    assert "InvalidAlgorithmError" in refusal(hmac, f"Bearer {header}.e30.c2lnbmF0dXJl")


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer ", "Basic YWRhOg==", "ada"])
def test_without_a_token_nobody_calls(hmac: Authenticator, authorization: str | None) -> None:
    assert "Authorization: Bearer" in refusal(hmac, authorization)


@pytest.mark.parametrize(
    ("reason", "says", "token"),
    [
        ("DecodeError", "", lambda: "Bearer not.a.token"),
        ("InvalidSignatureError", "Signature verification failed", lambda: bearer(SECRET + "!")),
        ("ExpiredSignatureError", "expired", lambda: bearer(exp=time.time() - 3600)),
        ("MissingRequiredClaimError", '"exp" claim', lambda: bearer(exp=None)),
        ("MissingRequiredClaimError", '"sub" claim', lambda: bearer(sub=None)),
        ("ImmatureSignatureError", "not yet valid", lambda: bearer(nbf=time.time() + 3600)),
        ("InvalidAlgorithmError", "", lambda: bearer(PRIVATE_KEY, "RS256")),
        ("InvalidAlgorithmError", "", lambda: "Bearer " + jwt.encode(claims(), "", "none")),
    ],
)
def test_a_token_that_proves_nothing_is_refused_and_the_refusal_says_why(
    hmac: Authenticator, reason: str, says: str, token: Callable[[], str]
) -> None:
    refused = refusal(hmac, token())
    assert reason in refused
    assert says in refused


def test_a_public_key_is_never_an_hmac_secret() -> None:
    asymmetric = load_authenticator(AuthSettings(public_key=PUBLIC_PEM))
    assert asymmetric(bearer(PRIVATE_KEY, "RS256"))["identity"] == "ada"
    header, payload, _ = bearer(SECRET).removeprefix("Bearer ").split(".")
    assert "InvalidAlgorithmError" in refusal(asymmetric, f"Bearer {header}.{payload}.c2lnbmF0dXJl")


def test_audience_and_issuer_must_fit_when_they_are_set() -> None:
    strict = load_authenticator(AuthSettings(secret=SECRET, audience="palimpsest", issuer="https://id.example"))
    assert strict(bearer(aud="palimpsest", iss="https://id.example"))["identity"] == "ada"
    assert "InvalidAudienceError" in refusal(strict, bearer(aud="other", iss="https://id.example"))
    assert "MissingRequiredClaimError" in refusal(strict, bearer(iss="https://id.example"))
    foreign = refusal(strict, bearer(aud="palimpsest", iss="https://evil.example"))
    assert "InvalidIssuerError" in foreign
    assert "issuer" in foreign


def test_another_claim_may_name_the_user() -> None:
    by_mail = load_authenticator(AuthSettings(secret=SECRET, user_claim="email"))
    assert by_mail(bearer(email="ada@example.org"))["identity"] == "ada@example.org"
    assert "MissingRequiredClaimError" in refusal(by_mail, bearer())


@pytest.mark.parametrize(
    ("claimed", "permissions"),
    [
        ({"permissions": ["a", 1, "b"]}, ["a", "b"]),
        ({"scope": "a b"}, ["a", "b"]),
        ({"permissions": "a", "scope": "b"}, []),
        ({"scope": 7}, []),
    ],
)
def test_permissions_are_a_list_or_a_scope(
    hmac: Authenticator, claimed: dict[str, Any], permissions: list[str]
) -> None:
    assert hmac(bearer(**claimed))["permissions"] == permissions


@pytest.mark.parametrize(
    "identity", ["", "   ", "a\nb", "a\0b", "\ud800", "\u202eadmin", "x" * 1025, "x" * 100_000, 7, None]
)
def test_identities_that_name_nobody_are_refused(identity: Any) -> None:
    assert "identity must" in refusal(with_checked_identity(lambda _: User(identity=identity, permissions=[])), None)


@pytest.mark.parametrize("identity", ["al", "AL", "al%", "al.ice", "ada@example.org", "Ångström", "x" * 1024])
def test_identities_of_people_are_kept_as_they_are(identity: str) -> None:
    assert with_checked_identity(lambda _: User(identity=identity, permissions=[]))(None)["identity"] == identity


def greet(authorization: str | None) -> User:
    return User(identity=f"friend {authorization}", permissions=[])


def test_another_method_takes_the_place_of_tokens() -> None:
    authenticate = load_authenticator(AuthSettings(authenticator=f"{__name__}:greet"))
    assert authenticate("ada")["identity"] == "friend ada"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (AuthSettings(), "exactly one of PALIMPSEST_AUTH_SECRET"),
        (AuthSettings(secret=SECRET, public_key=PUBLIC_PEM), "not 2 of them"),
        (AuthSettings(secret="short"), "PALIMPSEST_AUTH_SECRET must have at least 32 bytes"),
        (AuthSettings(public_key="ssh-rsa AAAA"), "PALIMPSEST_AUTH_PUBLIC_KEY"),
        (AuthSettings(jwks_url="http://id.example/keys"), "PALIMPSEST_AUTH_JWKS_URL must start with https"),
        (AuthSettings(authenticator="nowhere:at_all"), "PALIMPSEST_AUTH_AUTHENTICATOR must be module:name"),
        (AuthSettings(authenticator=""), "exactly one of"),
        (
            AuthSettings(authenticator="graphs.server.authenticate"),
            "PALIMPSEST_AUTH_AUTHENTICATOR must be module:name",
        ),
    ],
)
def test_a_server_that_cannot_know_its_callers_does_not_start(settings: AuthSettings, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_authenticator(settings)


def test_the_environment_says_how() -> None:
    environ = {"PALIMPSEST_AUTH_PUBLIC_KEY": PUBLIC_PEM.replace("\n", "\\n"), "PALIMPSEST_AUTH_ISSUER": "i"}
    auth = Settings.from_environment(environ).auth
    assert auth == AuthSettings(public_key=PUBLIC_PEM.rstrip("\n") + "\n", issuer="i")
    assert SECRET not in repr(AuthSettings(secret=SECRET))


@pytest.mark.parametrize(
    "settings",
    [
        AuthSettings(secret=SECRET),
        AuthSettings(secret=SECRET.ljust(64, "."), audience="chat", issuer="us", user_claim="email"),
    ],
)
def test_a_token_of_the_command_is_taken_by_the_server(settings: AuthSettings) -> None:
    made = make_token(settings, "ada@example.org", [OPERATOR], seconds=60)
    assert load_authenticator(settings)(f"Bearer {made}") == User(
        identity="ada@example.org", display_name="ada@example.org", permissions=[OPERATOR]
    )


@pytest.mark.parametrize(
    ("settings", "user", "says"),
    [
        (AuthSettings(), "ada", "set PALIMPSEST_AUTH_SECRET"),
        (AuthSettings(public_key=PUBLIC_PEM), "ada", "set PALIMPSEST_AUTH_SECRET"),
        (AuthSettings(secret="short"), "ada", "at least 32 bytes"),
        (AuthSettings(secret=SECRET, public_key=PUBLIC_PEM), "ada", "exactly one of"),
        (AuthSettings(secret=SECRET), " ", "identity"),
        (AuthSettings(secret=SECRET), "a\nb", "identity"),
    ],
)
def test_no_token_is_made_that_the_server_would_refuse(settings: AuthSettings, user: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make_token(settings, user, [], seconds=60)
