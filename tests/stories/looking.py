"""The page in a window of its own, and where people go in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.e2e.browsing import SECONDS, go
from tests.stories.host import Place


@contextmanager
def page_of(browser: Any, place: Place, **options: Any) -> Iterator[Any]:
    """Open the page in a window of its own; in the end nothing was wrong in it, and its policy refused nothing."""
    context = browser.new_context(viewport={"width": 1360, "height": 850}, reduced_motion="reduce", **options)
    page, wrong = context.new_page(), list[str]()
    page.set_default_timeout(SECONDS)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
    page.goto(f"{place.url}/memory")
    yield page
    context.close()
    assert wrong == []


def look(page: Any, part: str = "Facts") -> None:
    """Go to a part of the page, as it is now."""
    go(page, "Profile" if part == "Facts" else "Facts")
    go(page, part)
