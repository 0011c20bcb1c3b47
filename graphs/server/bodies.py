"""A request whose body stays half sent ends: its sender is answered, and its connection closed."""

import asyncio
import logging

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

_SECONDS = 30.0


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
        is_whole = is_answered = False
        clock = asyncio.get_running_loop().time
        # What reads the body is cancelled: an error that it is told of, each layer would answer and log by itself.
        waiting = asyncio.timeout(None)

        async def piece() -> Message:
            nonlocal is_whole
            if is_whole:  # then it waits for a disconnect, as long as the answer takes
                return await receive()
            waiting.reschedule(clock() + self._seconds)
            message = await receive()
            waiting.reschedule(None)
            is_whole = not message.get("more_body")
            return message

        async def answer(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        try:
            async with waiting:
                await self._app(scope, piece, answer)
        except TimeoutError:
            if is_answered or not waiting.expired():
                raise
            said = f"the rest of the request's body did not come within {self._seconds:g} s: send it again"
            logger.warning("408: %s", said)
            # What comes of the body after all is no next request.
            await JSONResponse({"detail": said}, 408, {"connection": "close"})(scope, receive, send)
