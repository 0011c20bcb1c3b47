"""The memory API as commands ask it: on a server, or in this process on the local files."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
import httpx

from graphs.cli.shell import Json, Refused, Shell
from graphs.process.address import address_of, is_loopback
from graphs.process.failures import cause_of
from graphs.settings import ClientSettings, environment

if TYPE_CHECKING:
    from typing import BinaryIO

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 60.0
_WORK_SECONDS = 600.0  # to write, to erase, or of a model to think
_MOST_WAIT_SECONDS = 60.0  # the memory API counts requests a minute
_TOO_MANY = 429

NO_SERVER = "start one with `palimpsest dev`, or name another with --url or PALIMPSEST_URL"
_LOGIN = (
    "give your token with --token or PALIMPSEST_TOKEN; where tokens are signed with a shared secret, "
    "`palimpsest token USER` makes one on the server's machine"
)


def client_settings(shell: Shell) -> ClientSettings:
    """Return which server is meant where the command line does not say; its URL is empty where none is known."""
    try:
        given = ClientSettings.from_environment(environment(Path(".env"), shell.environ))
    except ValueError as error:
        raise Refused(f"{error}.") from error
    return given if given.url else replace(given, url=address_of(given.data_dir))


def _without_server() -> str:
    """Return what to do where no server answers; not every command has `--local`."""
    command = click.get_current_context(silent=True)
    return f"{NO_SERVER}, or read this folder with --local" if command and "local" in command.params else NO_SERVER


@contextlib.contextmanager
def open_memory(
    shell: Shell, url: str | None = None, token: str | None = None, agent: str = "default", local: bool = False
) -> Iterator["MemoryClient"]:
    """Open the memory that a command is about.

    Args:
        shell: What the command works with.
        url: The server.
        token: Who asks it.
        agent: Whose memory.
        local: Ask the same API in this process, on this folder's files.

    Raises:
        Refused: If there is none.
    """
    transport: httpx.BaseTransport | None
    if local:
        # Both at once would leave open which memory was meant.
        if url or token:
            raise click.UsageError("--local asks no server: leave out --url and --token")
        from graphs.cli.local_files import LocalFiles  # with the server's packages

        files = LocalFiles(environment(Path(".env"), shell.environ))
        url, token, transport, place = "http://localhost", "", files, str(files.folder)
    else:
        given, transport = client_settings(shell), shell.transport
        url = place = url or given.url
        token = token or given.token
    if not url:
        raise Refused(f"no server of this folder runs: {_without_server()}")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Refused(f"the server's URL must begin with http:// or https://, not {url!r}")
    if not (token.isascii() and token.isprintable()):  # without its value: it is a secret
        raise Refused("the token of --token or PALIMPSEST_TOKEN must be one line of ASCII: it may be broken in two")
    with httpx.Client(
        base_url=url,
        headers={"Authorization": f"Bearer {token}"} if token else {},
        transport=transport,
        # A proxy that the user has for the world would be asked for loopback, too.
        trust_env=not is_loopback(parts.hostname),
    ) as http:
        try:
            yield MemoryClient(http, agent, place, local)
        except FieldLacking as lacking:
            raise Refused(f"{place} is no Palimpsest server, as its JSON tells: {NO_SERVER}") from lacking


class FieldLacking(KeyError):
    """A server's answer has no such field: it may be another one's."""


class ServerAnswer(dict[str, Json]):
    """An object in a server's JSON, which tells a field that it lacks from a mistake of ours."""

    def __missing__(self, name: str) -> Json:
        raise FieldLacking(name)


@dataclass(frozen=True, slots=True)
class MemoryClient:
    """Asks the memory API, and turns each refusal into a sentence.

    Attributes:
        http: Knows where the API is, and who asks.
        agent: Whose memory of the user.
        place: Where it is, for people.
        is_local: Whether it is in this process, on the local files.
    """

    http: httpx.Client
    agent: str
    place: str
    is_local: bool = False

    def ask(
        self, method: str, path: str, fields: Mapping[str, object] | None = None, content: "BinaryIO | None" = None
    ) -> Json:
        """Ask, and return the JSON object that is answered; `{}` for none.

        Args:
            method: The HTTP method.
            path: The path below `/memory`.
            fields: What the query of `GET`, or the body of what writes, says; what is `None` is left out.
            content: Lines of JSON, as the body.
        """
        said = {name: value for name, value in (fields or {}).items() if value is not None}
        request: dict[str, Any] = {}
        if content is not None:
            request = {"content": content, "headers": {"Content-Type": "application/jsonl"}}
        elif method in ("POST", "PUT", "PATCH"):
            request = {"json": said}
        query = {"agent_name": self.agent, **(said if method == "GET" else {})}
        with self.open(method, f"/memory{path}", params=query, **request) as answer:
            found = answer.json(object_hook=ServerAnswer) if answer.read() else None
            return found if isinstance(found, ServerAnswer) else ServerAnswer()

    def get(self, path: str, **query: object) -> Json:
        """Read something."""
        return self.ask("GET", path, query)

    def post(self, path: str, **body: object) -> Json:
        """Write something, or have something done."""
        return self.ask("POST", path, body)

    @contextlib.contextmanager
    def open(self, method: str, url: str, **request: Any) -> Iterator[httpx.Response]:
        """Ask the server, and yield its answer before the body is read, which may be long, or come as it is made.

        Where too much was asked in a minute it is asked again, later.

        Raises:
            Refused: If the server refuses, or cannot be reached, with what to do.
        """
        timeout = httpx.Timeout(_READ_SECONDS if method == "GET" else _WORK_SECONDS, connect=_CONNECT_SECONDS)
        content: BinaryIO | None = request.get("content")
        can_repeat = content is None or content.seekable()  # what came by a pipe cannot be sent twice
        try:
            while True:
                with self.http.stream(method, url, timeout=timeout, **request) as answer:
                    wait = float(answer.headers.get("Retry-After", 0)) if answer.status_code == _TOO_MANY else 0.0
                    if not (can_repeat and 0 < wait <= _MOST_WAIT_SECONDS):
                        if not answer.is_success:
                            answer.read()
                            self._check(answer)
                        yield answer
                        return
                time.sleep(wait)
                if content:
                    content.seek(0)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Refused(f"no server answers at {self.place}: {cause_of(error) or _without_server()}") from error
        except httpx.TimeoutException as error:
            raise Refused(f"{self.place} did not answer in time; its log says more") from error
        except httpx.HTTPError as error:
            raise Refused(f"the connection to {self.place} was lost ({type(error).__name__}): does it run?") from error
        except UnicodeEncodeError as error:
            raise Refused("what was typed has bytes that are no UTF-8") from error
        except ValueError as error:
            raise Refused(f"{self.place} answers something else than JSON: is it a Palimpsest server?") from error

    def _check(self, answer: httpx.Response) -> None:
        try:
            problem = dict(answer.json())
        except (ValueError, TypeError):
            problem = {}
        # Only our own refusals name fields: a 404 of memory without is a server that does not know `/memory`.
        is_ours = isinstance(problem.get("errors"), list)
        told = str(problem.get("detail") or f"it answers with status {answer.status_code}; its log says more")
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            told = f"{self.place} asks for a login: {_LOGIN}"
        elif answer.status_code == httpx.codes.NOT_FOUND and not is_ours and "/memory" in answer.url.path:
            told = f"{self.place} is another server, without /memory: {NO_SERVER}"
        elif answer.has_redirect_location:
            told = f"{self.place} leads to {answer.headers['Location']}: name that with --url"
        elif not is_ours:
            told = f"{self.place} refuses with status {answer.status_code}: {told}"
        raise Refused(told, problem if is_ours else None)
