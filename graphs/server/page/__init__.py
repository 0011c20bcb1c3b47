"""The page at `/memory`: see what is remembered, correct it, decide it, talk to it. Rendered on the server."""

from graphs.server.page import erasing, facts, parts, waiting
from graphs.server.page.assets import assets
from graphs.server.page.door import page_door
from graphs.server.page.rendering import templates

__all__ = ["load_page", "page_door", "routes"]

routes = [route for room in (facts, waiting, erasing, parts) for route in room.pages.routes]


def load_page() -> None:
    """Read templates and static files, before there is an event loop."""
    assets()
    templates()
