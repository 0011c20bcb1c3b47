"""The page in a browser, against a real server: what people do with their memory, by mouse and by keyboard.

It needs Playwright (the group `page`), a Chromium of the system, and what `make page` builds: `make e2e-page`.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import PROJECT, DevServer
from tests.e2e.scripted import Scripted
from tests.stub_model import StubModel

playwright = pytest.importorskip("playwright.sync_api", reason="the browser's driver is not installed: make e2e-page")
pytest.importorskip("jinja2")

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or ""
AXE = PROJECT / "page" / "node_modules" / "axe-core" / "axe.min.js"
BUILT = PROJECT / "graphs" / "server" / "page" / "static" / "built" / "langgraph.js"

pytestmark = [
    pytest.mark.skipif(not BROWSER, reason="no browser: install chromium (Debian: apt install chromium)"),
    pytest.mark.skipif(not (AXE.exists() and BUILT.exists()), reason="the browser code is not built: make page"),
]

ALLERGY = "User is allergic to peanuts."
SECONDS = 30_000.0


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.5", PALIMPSEST_REQUESTS_PER_MINUTE="100000")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        # The sandbox wants a user namespace, which containers do not give to root.
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any, server: DevServer, model: StubModel) -> Iterator[Any]:
    model.respond = Scripted(learns={"allergic to peanuts": ALLERGY, "<script>": "User typed a script."})
    context = browser.new_context(viewport={"width": 1360, "height": 850}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
    page.goto(f"{server.url}/memory")
    page.locator("#chat-words").wait_for()
    yield page
    context.close()
    assert wrong == []


def say(page: Any, text: str) -> Any:
    """Say something in the chat, and return the reply once it is whole."""
    page.locator("#chat-words").fill(text)
    page.get_by_role("button", name="Send").click()
    page.locator(".message.user", has_text=text).last.wait_for()
    reply = page.locator(".message.assistant:not(.coming)").last
    expect(page.locator(".message.coming")).to_have_count(0, timeout=SECONDS)
    return reply


def fact(page: Any, text: str) -> Any:
    return page.locator(".facts > li", has_text=text)


def expect(locator: Any) -> Any:
    return playwright.expect(locator)


def test_the_story_of_a_fact(page: Any, server: DevServer, model: StubModel) -> None:
    expect(page.get_by_text("Nothing is known about you yet.")).to_be_visible()
    say(page, "I am allergic to peanuts, by the way.")
    # It appears by itself, in the chat and in the list, with where it was said.
    expect(page.locator(".learned", has_text=ALLERGY)).to_be_visible(timeout=SECONDS)
    expect(fact(page, ALLERGY)).to_be_visible(timeout=SECONDS)
    fact(page, ALLERGY).get_by_role("link", name="from a conversation").click()
    expect(page.locator(".source .marked")).to_contain_text("I am allergic to peanuts, by the way.")
    page.keyboard.press("Escape")

    fact(page, ALLERGY).get_by_role("link", name="Edit").click()
    page.get_by_label("What it says").fill("Allergic to almonds")
    page.get_by_role("button", name="Save").click()
    expect(fact(page, "Allergic to almonds")).to_be_visible()

    page.get_by_role("button", name="New chat").click()
    reply = say(page, "What should I cook?")
    reply.locator(".drew summary").click()
    expect(reply.locator(".sources")).to_contain_text("Allergic to almonds")
    assert any("Allergic to almonds" in request.text for request in model.requests)
    reply.locator(".tokens summary").click()
    expect(reply.locator(".legend")).to_contain_text("memory")

    fact(page, "almonds").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Undo").click()
    expect(fact(page, "Allergic to almonds").locator("input[type=checkbox]")).to_be_visible()

    page.get_by_role("link", name="Your data").click()
    page.get_by_role("link", name="Erase everything …").click()
    page.get_by_label("Type everything to confirm").fill("everything")
    page.get_by_role("button", name="Erase everything").click()
    expect(page.get_by_text("Erased:")).to_be_visible(timeout=SECONDS)
    page.get_by_role("link", name="Facts").click()
    expect(page.get_by_text("Nothing is known about you yet.")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Nothing is known about you yet.")).to_be_visible()


def test_incognito_says_so_and_leaves_no_trace_in_memory(page: Any, server: DevServer) -> None:
    page.get_by_label("What memory may do").select_option("incognito")
    expect(page.locator(".incognito")).to_be_visible()
    reply = say(page, "I am allergic to peanuts and live in Zanzibar.")
    expect(page.locator(".incognito")).to_be_visible()
    expect(reply.locator(".drew")).to_have_count(0)
    for file in server.data.glob("store.sqlite*"):
        assert b"Zanzibar" not in file.read_bytes(), file.name


def test_a_script_in_a_fact_is_text(page: Any) -> None:
    page.get_by_text("Add a fact", exact=True).click() if not page.locator(".add[open]").count() else None
    page.get_by_label("What should be known about you?").fill("<script>alert(1)</script>\n<b>second</b> line")
    page.get_by_role("button", name="Add", exact=True).click()
    row = fact(page, "second")
    expect(row.locator(".content")).to_have_text(re.compile(r"<script>.*</script>\s+<b>second</b> line"))
    assert row.locator("script, b").count() == 0
    row.get_by_role("button", name="Delete").click()


def test_five_hundred_facts_go_and_come_back_at_once(page: Any) -> None:
    sent = page.evaluate(
        """async () => {
          const fact = (n) => ({content: `Knows the number ${n}`, category: "goal", confidence: 0.5});
          const facts = Array.from({length: 480}, (_, n) => fact(n));
          const body = JSON.stringify({schema: "palimpsest.memory", version: 2, facts});
          const headers = {"Content-Type": "application/json"};
          return (await fetch("../import", {method: "POST", headers, body})).status;
        }"""
    )
    assert sent == 200
    page.reload()
    page.get_by_label("Category", exact=True).last.select_option("goal")
    page.get_by_role("checkbox", name="All 480").check()
    page.locator("#choose").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("480 deleted.")).to_be_visible(timeout=SECONDS)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("480 restored.")).to_be_visible(timeout=SECONDS)
    page.get_by_role("checkbox", name="All 480").check()
    page.locator("#choose").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("480 deleted.")).to_be_visible(timeout=SECONDS)


def test_everything_can_be_reached_and_done_by_keyboard(page: Any) -> None:
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to what is known")).to_be_focused()
    page.get_by_text("Add a fact", exact=True).focus()
    if not page.locator(".add[open]").count():
        page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("Plays the cello")
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(fact(page, "cello")).to_be_visible()
    fact(page, "cello").get_by_role("link", name="Edit").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("What it says")).to_be_focused()
    page.keyboard.type(" well")
    page.keyboard.press("Escape")
    expect(page.get_by_label("What it says")).to_have_count(0)
    fact(page, "cello").get_by_role("button", name="Delete").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(fact(page, "cello").locator("input")).to_have_count(2)
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_part_has_a_serious_finding_of_axe(page: Any, server: DevServer, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    for view in ("facts", "profile", "journal", "updates", "data", "erase"):
        page.goto(f"{server.url}/memory/page/{view}")
        page.locator("#chat-words").wait_for()
        # Through the driver: the page itself runs no script but its own.
        page.evaluate(AXE.read_text())
        found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        serious = [
            (each["id"], each["nodes"][0]["html"][:120]) for each in found if each["impact"] in ("serious", "critical")
        ]
        assert serious == [], (view, scheme)


def test_a_server_that_is_away_is_said_to_be_and_what_is_shown_stays(page: Any) -> None:
    page.route("**/memory/**", lambda route: route.abort())
    page.get_by_role("link", name="Journal").click()
    expect(page.locator("#away")).to_be_visible()
    expect(page.get_by_role("heading", name="What is known")).to_be_visible()
    page.unroute("**/memory/**")
    expect(page.locator("#away")).to_be_hidden(timeout=SECONDS)


def test_without_javascript_the_page_works_as_forms_and_links(browser: Any, server: DevServer) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.url}/memory")
    if not page.locator(".add[open]").count():
        page.get_by_text("Add a fact", exact=True).click()
    page.get_by_label("What should be known about you?").fill("Keeps bees")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(fact(page, "Keeps bees")).to_be_visible()
    fact(page, "Keeps bees").get_by_role("button", name="Delete").click()
    expect(fact(page, "Keeps bees")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(fact(page, "Keeps bees")).to_be_visible()
    context.close()


def test_pictures_of_the_page(page: Any, server: DevServer, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """Kept in `docs/` where `--pictures` says so; else they only have to be made, and no wider than the window."""
    folder = PROJECT / "docs" if pytestconfig.getoption("--pictures") else tmp_path
    for content, category in PICTURED:
        page.request.post(f"{server.url}/memory/facts", data={"content": content, "category": category})
    say(page, "What could we cook on Saturday?")
    page.locator(".message.assistant .drew summary").click()
    page.locator(".message.assistant .tokens summary").click()
    page.locator(".sources").wait_for()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for name, width, height in (("wide", 1360, 850), ("narrow", 360, 740)):
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate("scrollTo(0, 0)")
            page.get_by_role("link", name="Facts").click()
            page.locator(".facts").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            page.screenshot(path=folder / f"page-{name}-{scheme}.png")
    assert len(list(folder.glob("page-*-*.png"))) >= 4


PICTURED = (
    ("I am allergic to peanuts", "knowledge"),
    ("Ada's birthday is on 12 May", "knowledge"),
    ("Prefers answers in a few sentences", "preference"),
    ("Is learning to sail, and wants to reach Spitsbergen in 2028", "goal"),
    ("Cooks for four on Saturdays", "behavior"),
    ("The boat is red, not blue", "correction"),
)
