"""The page's static files: our own, and third-party code that `make page` puts beside them."""

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

_STATIC = Path(__file__).with_name("static")
BUILT = _STATIC / "built"
"""Not in git: `page/build.mjs` makes it. The wheel contains it."""
SHARED = Path(sys.prefix) / "share" / "palimpsest" / "page"
"""Where the image has it: its Node stage cannot name the folder of the code, which is called as the clone is."""

CHAT_CLIENT, RENDERING = "langgraph.js", "rendering.js"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is sent."""

    body: bytes
    media_type: str
    etag: str

    def answer(self, request: Request) -> Response:
        """Return it, or word that the browser has it already."""
        # No token protects these, so that they hold no data. Asked for anew each time, as an update replaces them.
        headers = {"ETag": self.etag, "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        body = b"" if request.method == "HEAD" else self.body
        return Response(body, media_type=self.media_type, headers=headers)


@cache
def assets() -> Mapping[str, Asset]:
    """Read all files once a process: the event loop must not wait for a disk."""
    paths = [path for folder in (_STATIC, SHARED, BUILT) for path in sorted(folder.glob("*.*"))]
    return {
        path.name: Asset(body := path.read_bytes(), _TYPES[path.suffix], f'"{hashlib.sha256(body).hexdigest()[:16]}"')
        for path in paths
        if path.suffix in _TYPES
    }


def missing() -> list[str]:
    """Return the names of third-party files that are not built: without them there is no chat."""
    return [name for name in (CHAT_CLIENT, RENDERING) if name not in assets()]
