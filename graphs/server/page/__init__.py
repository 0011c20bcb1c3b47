"""The page at `/memory`: see what is remembered, correct it, decide it, talk to it. Server-rendered; htmx if built."""

from graphs.server.page import chat, facts, held, parts, preview
from graphs.server.page.assets import assets
from graphs.server.page.door import page_door
from graphs.server.page.pages import PageRoutes
from graphs.server.page.rendering import templates

__all__ = ["PAGES", "load_page", "page_door", "routes"]

PAGES: tuple[PageRoutes, ...] = (facts.pages, held.pages, parts.pages, preview.pages, chat.pages)

routes = [route for pages in PAGES for route in pages.routes]


def load_page() -> None:
    """Read templates and static files, before there is an event loop that must not wait for a disk."""
    assets()
    templates()
