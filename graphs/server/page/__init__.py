"""The page at `/memory`: see what is remembered, correct it, decide it, talk to it. Server-rendered; htmx if built."""

from graphs.server.page import facts
from graphs.server.page.door import PageDoor
from graphs.server.page.pages import Pages

__all__ = ["PAGES", "PageDoor", "routes"]

PAGES: tuple[Pages, ...] = (facts.pages,)

routes = [route for pages in PAGES for route in pages.routes]
