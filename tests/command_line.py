"""A person who types commands, against an app in process or one that fails."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import httpx
from click.testing import CliRunner, Result
from starlette.types import ASGIApp

from graphs.cli.local_files import ask_app
from graphs.cli.main import main
from graphs.cli.shell import Shell


class AsAda(httpx.BaseTransport):
    """Carries requests to the app, as the user whose token it is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.seen: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        if request.headers.get("authorization") == "Bearer ada":
            request.headers["x-test-user"] = "ada"
        return asyncio.run(ask_app(self.app, request))


class Typed:
    """A person who types commands, in a folder of their own."""

    def __init__(self, transport: httpx.BaseTransport | None, environ: dict[str, str], charset: str = "utf-8") -> None:
        # No server runs in this folder: which one is asked has to be said.
        self.transport, self.environ = transport, {"PALIMPSEST_URL": "http://127.0.0.1:2024", **environ}
        self.charset = charset

    def run(self, *words: str, typed: str | None = None) -> Result:
        shell = Shell(environ=self.environ, transport=self.transport)
        return CliRunner(charset=self.charset).invoke(main, list(words), obj=shell, input=typed)

    def __call__(self, *words: str) -> str:
        done = self.run(*words)
        assert done.exit_code == 0, done.output
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))

    def refused(self, *words: str) -> str:
        done = self.run(*words)
        assert (done.exit_code, done.stdout) == (1, ""), done.output
        assert done.stderr.startswith("Error: ")
        assert "Traceback" not in done.output
        return done.stderr


class Failing(httpx.BaseTransport):
    def __init__(self, answer: Exception | httpx.Response) -> None:
        self.answer = answer

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def now(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)
