"""Keys that an issuer publishes: fetched over HTTP once, found by their ids."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from langgraph_sdk import Auth

from graphs.server.authenticate import load_authenticator
from graphs.settings import AuthSettings


class Issuer:
    """Publishes the public half of each key it made."""

    def __init__(self) -> None:
        self.keys: dict[str, ec.EllipticCurvePrivateKey] = {}
        self.requests = 0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requests += 1
                body = json.dumps(issuer.document()).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
                """Keep the test's output clean."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"

    def document(self) -> dict[str, Any]:
        algorithm = jwt.algorithms.ECAlgorithm
        public = {kid: json.loads(algorithm.to_jwk(key.public_key())) for kid, key in self.keys.items()}
        return {"keys": [{**jwk, "kid": kid, "use": "sig", "alg": "ES256"} for kid, jwk in public.items()]}

    def token(self, kid: str) -> str:
        key = self.keys.setdefault(kid, ec.generate_private_key(ec.SECP256R1()))
        return "Bearer " + jwt.encode({"sub": "ada", "exp": time.time() + 60}, key, "ES256", headers={"kid": kid})


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    thread = threading.Thread(target=issuer.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield issuer
    issuer.server.shutdown()
    thread.join()
    issuer.server.server_close()


def test_published_keys_are_fetched_once_and_found_by_their_ids(issuer: Issuer) -> None:
    authenticate = load_authenticator(AuthSettings(jwks_url=issuer.url))
    tokens = [issuer.token("one"), issuer.token("two")]
    assert [authenticate(token)["identity"] for token in tokens * 3] == ["ada"] * 6
    assert issuer.requests == 1


def test_a_key_that_nobody_published_is_refused(issuer: Issuer) -> None:
    issuer.token("known")
    authenticate = load_authenticator(AuthSettings(jwks_url=issuer.url))
    stranger = Issuer()
    stranger.server.server_close()
    with pytest.raises(Auth.exceptions.HTTPException, match="401"):
        authenticate(stranger.token("unknown"))
    with pytest.raises(Auth.exceptions.HTTPException, match="401"):
        authenticate(stranger.token("known"))


def test_an_issuer_that_is_down_lets_nobody_in(issuer: Issuer) -> None:
    token = issuer.token("one")
    closed = Issuer()
    closed.server.server_close()
    authenticate = load_authenticator(AuthSettings(jwks_url=closed.url))
    with pytest.raises(Auth.exceptions.HTTPException, match="PyJWKClientConnectionError"):
        authenticate(token)
