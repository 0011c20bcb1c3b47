"""Where people go in the page, and what they send."""

from typing import Any

from tests.e2e.browsing import go


def look(page: Any, part: str = "Facts") -> None:
    """Go to a part of the page, as it is now."""
    go(page, "Profile" if part == "Facts" else "Facts")
    go(page, part)


def send(page: Any, text: str) -> None:
    """Type something, and press Enter."""
    words = page.locator("#chat-words")
    words.fill(text)
    words.press("Enter")
