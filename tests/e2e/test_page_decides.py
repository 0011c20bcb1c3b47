"""Approval and the check-up in a browser, against a real server: what is sensitive waits, and is used after the yes."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Serve
from tests.e2e.dev_server import PROJECT, DevServer
from tests.e2e.scripted import Scripted, is_chat
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

DIABETES = "User has type 2 diabetes."
SECONDS = 60_000.0


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(
        PALIMPSEST_DEBOUNCE_SECONDS="0.5", PALIMPSEST_REQUESTS_PER_MINUTE="100000", PALIMPSEST_APPROVAL="health"
    )


@pytest.fixture
def page(server: DevServer, model: StubModel, tmp_path: Path) -> Iterator[Any]:
    model.respond = Scripted(learns={"type 2 diabetes": DIABETES})
    with playwright.sync_playwright() as driver:
        # The sandbox wants a user namespace, which containers do not give to root.
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 850}, reduced_motion="reduce")
        page.set_default_timeout(SECONDS)
        yield page
        browser.close()


def talk(server: DevServer, text: str) -> None:
    said = {"messages": [{"role": "user", "content": text}]}
    done = httpx.post(f"{server.url}/runs/wait", json={"assistant_id": "chat", "input": said}, timeout=120)
    assert done.status_code == 200, done.text


def axe(page: Any) -> list[str]:
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run()")
    return [
        f"{each['id']}: {each['nodes'][0]['target']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def test_what_is_sensitive_waits_for_a_yes_and_is_used_after_it(page: Any, server: DevServer, model: StubModel) -> None:
    expect = playwright.expect
    page.goto(f"{server.url}/memory/page/updates")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    talk(server, "The doctor says that I have type 2 diabetes.")
    page.wait_for_function("async () => (await (await fetch('../facts?status=waiting')).json()).total === 1")
    talk(server, "What may I eat?")
    assert not any(
        "diabetes" in request.text for request in model.requests if is_chat(request) and "eat?" in request.text
    )
    page.reload()
    held = page.locator(".held")
    expect(held).to_have_count(1)
    expect(held).to_contain_text("about health")
    held.get_by_role("link", name="from a conversation").click()
    expect(page.locator(".source .marked")).to_contain_text("The doctor says that I have type 2 diabetes.")
    assert axe(page) == []
    page.get_by_label("Its words, which you may change").fill("User eats little sugar.")
    page.get_by_role("button", name="Yes, remember").click()
    expect(page.get_by_text("It is remembered.")).to_be_visible()
    talk(server, "What may I eat today?")
    asked = [request.text for request in model.requests if is_chat(request) and "eat today?" in request.text]
    assert asked
    assert all("User eats little sugar." in text for text in asked)


def test_no_and_its_undo(page: Any, server: DevServer, model: StubModel) -> None:
    expect = playwright.expect
    model.respond = Scripted(learns={"asthma": "User has asthma."})
    talk(server, "I have asthma, too.")
    page.goto(f"{server.url}/memory/page/updates")
    page.wait_for_function("async () => (await (await fetch('../facts?status=waiting')).json()).total === 1")
    page.reload()
    page.get_by_role("button", name="No: User has asthma.").click()
    expect(page.get_by_text("It is not remembered.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".held")).to_have_count(1)
    page.get_by_role("button", name="No: User has asthma.").click()
    expect(page.locator(".held")).to_have_count(0)


def test_the_check_up_finds_and_helps(page: Any, server: DevServer) -> None:
    expect = playwright.expect
    for content in ("User lives in Oslo", "User lives in Bergen", "User plays the cello in a choir",
                    "User plays the cello in a big choir"):  # fmt: skip
        added = httpx.post(f"{server.url}/memory/facts", json={"content": content, "category": "knowledge"}, timeout=60)
        assert added.status_code == 201, added.text
    page.goto(f"{server.url}/memory/page/checkup")
    expect(page.get_by_role("heading", name="Contradictions (1)")).to_be_visible()
    expect(page.get_by_role("heading", name="Repeats (1)")).to_be_visible()
    expect(page.locator("#preview pre").first).to_contain_text("User lives in Bergen")
    assert axe(page) == []
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 850})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Keep only: User lives in Bergen").click()
    expect(page.get_by_text("Kept. The other one is deleted.")).to_be_visible()
    expect(page.get_by_role("heading", name="Contradictions (1)")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="Contradictions (1)")).to_be_visible()
    page.get_by_label("The first message").fill("Where do I live?")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#preview")).to_contain_text("Where do I live?")
