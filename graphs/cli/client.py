"""The memory API as a command asks it: on a server, or in this process on the local files."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from graphs.address import is_loopback
from graphs.causes import cause_of
from graphs.cli.shell import Json, Refused

CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 60.0

NO_SERVER = "start one with `palimpsest dev`, or name another with --url or PALIMPSEST_URL"
_LOGIN = (
    "give your token with --token or PALIMPSEST_TOKEN; where tokens are signed with a shared secret, "
    "`palimpsest token USER` makes one on the server's machine"
)


def connect(url: str, token: str, transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """Return a client of a server.

    Args:
        url: Where it is.
        token: Who asks; empty where nobody logs in.
        transport: What carries the requests; the network by default.

    Raises:
        Refused: If the URL is none of a server, or the token none.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Refused(f"the server's URL must begin with http:// or https://, not {url!r}")
    if not (token.isascii() and token.isprintable()):  # without its value: it is a secret
        raise Refused("the token of --token or PALIMPSEST_TOKEN must be one line of ASCII: it may be broken in two")
    return httpx.AsyncClient(
        base_url=url.rstrip("/"),
        headers={"Authorization": f"Bearer {token}"} if token else {},
        transport=transport,
        timeout=httpx.Timeout(_ANSWER_SECONDS, connect=CONNECT_SECONDS),
        # A proxy that the user has for the world would be asked for loopback, too.
        trust_env=not is_loopback(parts.hostname),
    )


class ServerAnswer(dict[str, Json]):
    """What a server answers, which may be another one's: who asks for a field that it lacks is told so.

    Args:
        fields: The JSON object.
        place: Which server.
    """

    def __init__(self, fields: Mapping[str, Json], place: str) -> None:
        super().__init__(fields)
        self._place = place

    def __missing__(self, name: str) -> Json:
        raise Refused(f"{self._place} is no Palimpsest server, as its JSON tells: {NO_SERVER}")


@dataclass(frozen=True, slots=True)
class MemoryClient:
    """Asks the memory API, and turns each refusal into a sentence.

    Attributes:
        http: Knows where the API is, and who asks.
        agent: Whose memory of the user.
        place: Where it is, for people.
        is_local: Whether it is in this process, on the local files.
    """

    http: httpx.AsyncClient
    agent: str
    place: str
    is_local: bool = False

    async def get(self, path: str, **query: object) -> Json:
        """Read something; what is `None` in the query is left out."""
        return await self.ask("GET", path, query=query)

    async def post(self, path: str, **body: object) -> Json:
        """Write something, or have something done; what is `None` in the body is left out."""
        return await self.ask("POST", path, body=body)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        content: AsyncIterator[bytes] | bytes | None = None,
        patience: float = _ANSWER_SECONDS,
        waits: bool = False,
    ) -> Json:
        """Ask, and return the JSON object that is answered; `{}` for none.

        Args:
            method: The HTTP method.
            path: The path below `/memory`.
            query: The query, beside the agent; what is `None` is left out.
            body: The body as JSON; what is `None` is left out.
            content: The body, or its pieces, instead.
            patience: Seconds to wait for the answer.
            waits: Whether to ask again where too much was asked in a minute.

        Raises:
            Refused: If the API refuses, or cannot be reached.
        """
        with self.explained():
            answer = await self.http.request(
                method,
                f"/memory{path}",
                params=self._query(query or {}),
                json=None if body is None else {name: value for name, value in body.items() if value is not None},
                content=content,
                headers={"Content-Type": "application/jsonl"} if content is not None else {},
                timeout=httpx.Timeout(patience, connect=CONNECT_SECONDS),
            )
            if waits and answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
                await asyncio.sleep(float(answer.headers.get("Retry-After", 1)))
                return await self.ask(method, path, query=query, body=body, patience=patience, waits=True)
            self.check(answer)
            fields = answer.json() if answer.content else {}
            return ServerAnswer(fields if isinstance(fields, dict) else {}, self.place)

    @contextlib.asynccontextmanager
    async def reading(self, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open an answer that may be larger than memory, and hand on its bytes as they come."""
        patience = httpx.Timeout(None, connect=CONNECT_SECONDS)
        with self.explained():
            async with self.http.stream("GET", f"/memory{path}", params=self._query({}), timeout=patience) as answer:
                if answer.is_error:
                    await answer.aread()
                self.check(answer)
                yield answer.aiter_bytes()

    def _query(self, query: Mapping[str, object]) -> dict[str, str]:
        return {"agent_name": self.agent} | {name: str(value) for name, value in query.items() if value is not None}

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Say in a sentence why a server cannot be asked, and what to do."""
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            otherwise = f"{NO_SERVER}, or read this folder with --local"
            raise Refused(f"no server answers at {self.place}: {cause_of(error) or otherwise}") from error
        except httpx.TimeoutException as error:
            raise Refused(f"{self.place} did not answer in time; its log says more") from error
        except httpx.HTTPError as error:
            raise Refused(f"the connection to {self.place} was lost ({type(error).__name__}): does it run?") from error
        except UnicodeEncodeError as error:
            raise Refused("what was typed has bytes that are no UTF-8") from error
        except ValueError as error:  # no JSON
            raise Refused(f"{self.place} answers something else than JSON: is it a Palimpsest server?") from error

    def check(self, answer: httpx.Response) -> None:
        """Raise `Refused` unless the server has done what it was asked."""
        if answer.is_success:
            return
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
        elif not is_ours:
            told = f"{self.place} refuses with status {answer.status_code}: {told}"
        raise Refused(told, problem if is_ours else None)
