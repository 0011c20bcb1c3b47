"""A browser with the page in it: what its tests share. It needs Playwright (the group `page`) and a Chromium."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest

from tests.e2e.dev_server import PROJECT

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or ""
AXE = PROJECT / "page" / "node_modules" / "axe-core" / "axe.min.js"
BUILT = PROJECT / "graphs" / "server" / "page" / "static" / "built" / "langgraph.js"
SECONDS = 60_000.0

# Marks and no fixture: no server is started for a test that is skipped.
NEEDED = [
    pytest.mark.skipif(not find_spec("playwright"), reason="the browser's driver is not installed: make e2e-page"),
    pytest.mark.skipif(not BROWSER, reason="no browser: install chromium (Debian: apt install chromium)"),
    pytest.mark.skipif(not (AXE.exists() and BUILT.exists()), reason="the browser code is not built: make page"),
]


@contextmanager
def chromium() -> Iterator[Any]:
    """Open a browser."""
    from playwright import sync_api

    with sync_api.sync_playwright() as driver:
        # The sandbox wants a user namespace, which containers do not give to root.
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, url: str) -> Iterator[Any]:
    """Open the page, with its chat; in the end nothing was wrong in it, and its policy had nothing to refuse."""
    context = browser.new_context(viewport={"width": 1360, "height": 850}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console",
        lambda said: wrong.append(f"{said.text} {said.location}") if "Content Security Policy" in said.text else None,
    )
    page.goto(f"{url}/memory")
    page.locator("#chat-words").wait_for()
    yield page
    context.close()
    assert wrong == []


def expect(locator: Any) -> Any:
    """Return what waits for a condition of a locator or a page, as long as a busy machine may take."""
    from playwright import sync_api

    sync_api.expect.set_options(timeout=SECONDS)
    return sync_api.expect(locator)


def say(page: Any, text: str) -> Any:
    """Say something in the chat, and return the reply once it is whole."""
    page.locator("#chat-words").fill(text)
    page.get_by_role("button", name="Send").click()
    page.locator(".message.user", has_text=text).last.wait_for()
    expect(page.locator(".message.coming")).to_have_count(0)
    return page.locator(".message.assistant:not(.coming)").last


def fact(page: Any, text: str) -> Any:
    """Return the row of a fact in the list."""
    return page.locator(".facts > li", has_text=text)


def go(page: Any, part: str) -> None:
    """Go to a part of the page by its menu."""
    page.get_by_label("Parts of the page").get_by_role("link", name=part, exact=True).click()
    expect(page.get_by_label("Parts of the page").locator("[aria-current]")).to_have_text(part)


def look_again(page: Any) -> None:
    """Have the page look for facts as it does when memory has learned, and wait until the list is shown anew."""
    with page.expect_response("**/facts-list**"):
        page.evaluate("document.body.dispatchEvent(new Event('facts-changed'))")


def take_in(page: Any, url: str, count: int, **fields: Any) -> None:
    """Bring so many facts in."""
    facts = [
        {"content": f"Knows the number {n}", "category": "goal", "confidence": 0.5, **fields} for n in range(count)
    ]
    answer = page.request.post(
        f"{url}/memory/import", data={"schema": "palimpsest.memory", "version": 2, "facts": facts}, timeout=SECONDS
    )
    assert (answer.status, len(answer.json()["created"])) == (200, count)


def serious(page: Any) -> list[tuple[str, str]]:
    """Return what axe finds that is serious, with the element."""
    # Through the driver: the page itself runs no script but its own.
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [(each["id"], each["nodes"][0]["html"][:160]) for each in found if each["impact"] in ("serious", "critical")]
