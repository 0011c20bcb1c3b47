"""What the layers before the server's routes do with requests: read one and hand it on, or ask one in its name."""

import asyncio

from pydantic_core import from_json
from starlette.types import ASGIApp, Message, Receive, Scope


async def read_request(receive: Receive) -> tuple[list[Message], bytes]:
    """Return the messages of a request, and the whole body that they carry."""
    read: list[Message] = []
    while not read or (read[-1]["type"] == "http.request" and read[-1].get("more_body")):
        read.append(await receive())
    return read, b"".join(message.get("body", b"") for message in read)


def handing_on(messages: list[Message], receive: Receive) -> Receive:
    """Return what gives these messages first, and then what is received."""
    left = list(messages)

    async def again() -> Message:
        return left.pop(0) if left else await receive()

    return again


def with_body(scope: Scope, receive: Receive, read: list[Message], body: bytes) -> tuple[Scope, Receive]:
    """Return a request that was read, with another body in the place of its own."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    left += [message for message in read if message["type"] != "http.request"]
    # The body may be longer now than the header says.
    headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-length"]
    headers.append((b"content-length", str(len(body)).encode()))
    return {**scope, "headers": headers}, handing_on(left, receive)


async def get(app: ASGIApp, scope: Scope, path: str, *, without: frozenset[bytes] = frozenset()) -> tuple[int, bytes]:
    """Ask `GET path` in the name of another request, with its headers; return status and body.

    So the server itself decides what the caller may see, by whatever login and rules it has.

    Args:
        app: What answers.
        scope: The other request.
        path: With the server's prefix.
        without: Names of headers to leave out, in lower case.
    """
    headers = [(name, value) for name, value in scope["headers"] if name.lower() not in without]
    asked = {**scope, "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers}
    question: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]
    answer: list[Message] = []

    async def receive() -> Message:
        # Whoever waits for more is not answered: told of a disconnect, the server would stop.
        return question.pop() if question else await asyncio.Future()

    async def send(message: Message) -> None:
        answer.append(message)

    await app(asked, receive, send)
    status = next((message["status"] for message in answer if "status" in message), 0)
    return status, b"".join(message.get("body", b"") for message in answer)


def json_object(body: bytes) -> dict[str, object]:
    """Return the object in the body of a request; empty if there is none, which the server says."""
    try:
        read = from_json(body)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
