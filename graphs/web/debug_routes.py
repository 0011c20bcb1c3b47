"""Closes the development server's debug routes, which it serves to everyone before any authentication.

`langgraph dev` has `/internal/debug/thread/{id}` (any thread, whole), `/internal/truncate` (deletes everything) and
`/deploy`, and no setting turns them off (langgraph-runtime-inmem 0.36.7). Other runtimes have none of them.
"""

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class ClosedDebugRoutes:
    """Answers 404 under the debug routes' paths.

    Args:
        app: What answers everything else.
        single_user: Whether nobody logs in: then Studio may still deploy.
    """

    def __init__(self, app: ASGIApp, *, single_user: bool) -> None:
        self._app = app
        self._closed = ("/internal",) if single_user else ("/internal", "/deploy")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and any(_is_under(scope["path"], root) for root in self._closed):
            await JSONResponse({"detail": "Not Found"}, status_code=404)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _is_under(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")
