"""A request whose body stays half sent ends: its sender is answered, and its connection closed."""

import asyncio

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = 30.0


class HalfSent(HTTPException):
    """Nothing more of a body came in time (408); the server answers it like any error of a route."""

    def __init__(self, seconds: float) -> None:
        super().__init__(408, f"the rest of the request's body did not come within {seconds:g} s: send it again")


class WholeBodies:
    """Answers 408 where nothing of a body comes for too long; how long all of it takes is not bounded.

    Args:
        app: What answers everything else.
        seconds: So long may the next piece of a body take.
    """

    def __init__(self, app: ASGIApp, seconds: float = _SECONDS) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_whole = is_late = is_answered = False

        async def piece() -> Message:
            nonlocal is_whole, is_late
            if is_whole:  # then it waits for a disconnect, as long as the answer takes
                return await receive()
            try:
                async with asyncio.timeout(self._seconds):
                    message = await receive()
            except TimeoutError:
                is_late = True
                raise HalfSent(self._seconds) from None
            is_whole = not message.get("more_body")
            return message

        async def answer(message: Message) -> None:
            nonlocal is_answered
            if message["type"] == "http.response.start":
                is_answered = True
                if is_late:  # what comes of the body after all is no next request
                    MutableHeaders(scope=message)["connection"] = "close"
            await send(message)

        try:
            await self._app(scope, piece, answer)
        except HalfSent as late:  # a layer before the routes has read it
            if is_answered:
                raise
            await JSONResponse({"detail": late.detail}, late.status_code)(scope, receive, answer)
