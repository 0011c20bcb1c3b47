"""A browser with the page in it: what its tests share. It needs Playwright, a Chromium, and what `make page` builds."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.archive_lines import JSON_LINES, lines_of
from tests.stories.serving import PROJECT

UNPACKED = PROJECT / "tests" / "e2e" / "browser" / "node_modules" / "unpacked-chromium"
"""The browser that `make test` unpacks where none is installed, beside the libraries and fonts that it needs."""
BESIDE = {"LD_LIBRARY_PATH": str(UNPACKED / "al2023" / "lib"), "FONTCONFIG_FILE": str(UNPACKED / "fonts.conf")}
AXE = PROJECT / "page" / "node_modules" / "axe-core" / "axe.min.js"
BUILT = PROJECT / "graphs" / "server" / "page" / "static" / "built" / "rendering.js"
SECONDS = 120_000.0


def find_browser(installed: str | None, unpacked: Path) -> tuple[str, dict[str, str] | None, str]:
    """Return a browser, the environment that it needs, and why there is none.

    Args:
        installed: The system's own, if there is one.
        unpacked: Where `make test` puts one otherwise.
    """
    if installed:
        return installed, None, ""
    if not unpacked.exists():
        return "", None, "no browser: install chromium (Debian: apt install chromium), or run make test"
    # It may be of another architecture, or lack a library that only some systems have.
    try:
        subprocess.run([unpacked, "--version"], env=BESIDE, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error).encode()
        return "", None, f"the unpacked browser does not run here: {said.decode(errors='replace').strip()[:200]}"
    return str(unpacked), BESIDE, ""


BROWSER, ENVIRONMENT, WHY_NONE = find_browser(
    shutil.which("chromium") or shutil.which("google-chrome"), UNPACKED / "chromium"
)

# Marks and no fixture: no server is started for a test that is skipped.
NEEDED = [
    pytest.mark.skipif(not find_spec("playwright"), reason="the browser's driver is not installed: make test"),
    pytest.mark.skipif(not BROWSER, reason=WHY_NONE or "there is one"),
    pytest.mark.skipif(not (AXE.exists() and BUILT.exists()), reason="the browser code is not built: make page"),
]
# What takes minutes is no part of `make test`.
WHOLE_PAGE = [*NEEDED, pytest.mark.whole_page]


@contextmanager
def chromium() -> Iterator[Any]:
    """Open a browser."""
    from playwright import sync_api

    with sync_api.sync_playwright() as driver:
        # The sandbox wants a user namespace, which containers do not give to root; a GPU that is none takes CPU.
        beside = dict[str, str | float | bool](ENVIRONMENT) if ENVIRONMENT else None
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"], env=beside)
        if ENVIRONMENT:
            try:
                browser.new_page().goto("data:text/html,<p>It runs.</p>")
            except sync_api.Error as error:
                pytest.skip(f"the unpacked browser shows no page here: {error.message[:200]}")
        yield browser
        browser.close()


@contextmanager
def window(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """Open the page in a window of its own; in the end nothing was wrong in it, and its policy refused nothing."""
    context = browser.new_context(viewport={"width": 1360, "height": 850}, reduced_motion="reduce", **options)
    page, wrong = context.new_page(), list[str]()
    page.set_default_timeout(SECONDS)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console",
        lambda said: wrong.append(f"{said.text} {said.location}") if "Content Security Policy" in said.text else None,
    )
    page.goto(f"{url}/memory")
    yield page
    context.close()
    assert wrong == []


@contextmanager
def opened(browser: Any, url: str) -> Iterator[Any]:
    """Open the page, with its chat."""
    with window(browser, url) as page:
        page.locator("#chat-words").wait_for()
        yield page


def expect(locator: Any) -> Any:
    """Return what waits for a condition of a locator or a page, as long as a busy machine may take."""
    from playwright import sync_api

    sync_api.expect.set_options(timeout=SECONDS)
    return sync_api.expect(locator)


def say(page: Any, text: str) -> Any:
    """Say something in the chat, and return the reply once it is whole, and its run has ended."""
    page.locator("#chat-words").fill(text)
    page.get_by_role("button", name="Send").click()
    page.locator(".message.user", has_text=text).last.wait_for()
    expect(page.locator(".message.coming")).to_have_count(0)
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    return page.locator(".message.assistant:not(.coming)").last


def fact(page: Any, text: str) -> Any:
    """Return the row of a fact in the list."""
    return page.locator(".facts > li", has_text=text)


def go(page: Any, part: str) -> None:
    """Go to a part of the page by its menu."""
    parts, name = page.get_by_label("Parts of the page"), re.compile(rf"^{part}( \d+)?$")  # with what waits
    parts.get_by_role("link", name=name).click()
    expect(parts.locator("[aria-current]")).to_have_text(name)


def break_off(page: Any, address: str, times: int = 1000) -> Callable[[], None]:
    """Abort what the page asks of an address, so often at most, until what is returned is called.

    The route stays for as long as the page does: a request that the browser holds back while the last route is taken
    away is never sent, and the page asks again as soon as it is refused.
    """
    broken = [True] * times

    def answer(route: Any) -> None:
        if broken:
            broken.pop()
            route.abort()
        else:
            route.continue_()

    page.route(address, answer)
    return broken.clear


def erase(page: Any) -> None:
    """Erase everything, by the page."""
    go(page, "Your data")
    page.get_by_role("link", name="Erase everything …").click()
    page.get_by_label("Type everything to confirm").fill("everything")
    page.get_by_role("button", name="Erase everything").click()
    expect(page.get_by_text("Erased:")).to_be_visible()


def look_again(page: Any) -> None:
    """Have the page look for facts as it does when memory has learned, and wait until the list is shown anew."""
    with page.expect_response("**/memory/page/**") as answered:
        page.evaluate("document.body.dispatchEvent(new Event('facts-changed'))")
    answered.value.finished()
    page.evaluate("new Promise((done) => setTimeout(done, 50))")


def take_in(page: Any, url: str, count: int, **fields: Any) -> None:
    """Bring so many facts in."""
    facts = [
        {"content": f"Knows the number {n}", "category": "goal", "confidence": 0.5, **fields} for n in range(count)
    ]
    answer = page.request.post(
        f"{url}/memory/import", data=lines_of({"facts": facts}), headers=JSON_LINES, timeout=SECONDS
    )
    assert (answer.status, len(answer.json()["created"])) == (200, count)


def serious(page: Any) -> list[tuple[str, str]]:
    """Return what axe finds that is serious, with the element."""
    # Through the driver: the page itself runs no script but its own.
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [(each["id"], each["nodes"][0]["html"][:160]) for each in found if each["impact"] in ("serious", "critical")]
