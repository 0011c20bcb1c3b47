"""Approval in a browser, against a real server: what is sensitive waits, and is used after the yes."""

from typing import Any

import httpx
import pytest

from tests.archive_lines import taking
from tests.e2e.browsing import WHOLE_PAGE, expect, serious
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted, is_chat
from tests.e2e.waiting import eventually
from tests.stub_model import StubModel

pytest.importorskip("jinja2")

pytestmark = WHOLE_PAGE

DIABETES = "User has type 2 diabetes."


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.5", PALIMPSEST_APPROVAL="health")


@pytest.fixture(autouse=True)
def scripted(model: StubModel) -> None:
    model.respond = Scripted(learns={"type 2 diabetes": DIABETES})


def talk(server: DevServer, text: str) -> None:
    said = {"messages": [{"role": "user", "content": text}]}
    done = httpx.post(f"{server.url}/runs/wait", json={"assistant_id": "chat", "input": said}, timeout=120)
    assert done.status_code == 200, done.text


def asked(model: StubModel, word: str) -> str:
    return "\n".join(request.text for request in model.requests if is_chat(request) and word in request.text)


def test_a_message_of_which_no_fact_was_made_is_told_after_the_yes(
    page: Any, server: DevServer, model: StubModel
) -> None:
    model.respond = Scripted()
    said = "My migraine was terrible in Trondheim."
    talk(server, said)
    page.goto(f"{server.url}/memory/page/updates")
    page.wait_for_function("async () => (await (await fetch('../journal?waits=true')).json()).total === 1")
    talk(server, "Which first town had my migraine?")
    assert "Trondheim" not in asked(model, "first town")
    page.wait_for_function("async () => (await (await fetch('../journal?waits=true')).json()).total === 2")
    page.reload()
    messages = page.get_by_text("Messages that wait (2)")
    expect(messages).to_be_visible()
    messages.click()
    line = page.locator("li.line", has_text=said)
    expect(line).to_contain_text("about health")
    assert serious(page) == []
    # What is open stays so when the page looks again, also while nobody is in it.
    page.get_by_role("heading", name="Waiting").click()
    page.evaluate("document.activeElement.blur(); document.getElementById('lines').dataset.old = 'yes'")
    page.evaluate("document.body.dispatchEvent(new Event('facts-changed'))")
    page.wait_for_function("document.getElementById('lines').dataset.old !== 'yes'")
    assert page.evaluate("document.getElementById('lines').open")
    line.get_by_role("button", name="No, do not recall").click()
    expect(page.get_by_text("It is not recalled.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("It waits again.")).to_be_visible()
    line.get_by_role("button", name="Yes, recall").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("It may be recalled.")).to_be_visible()
    expect(line).to_have_count(0)

    def is_told() -> bool:
        talk(server, "Which other town had my migraine?")
        return said in asked(model, "other town")

    eventually(is_told)
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 850})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_words_that_were_begun_stay_when_another_one_is_decided(page: Any, server: DevServer) -> None:
    proposals = [
        {"content": content, "category": "knowledge", "confidence": 0.9, "status": "waiting"}
        for content in ("User has gout.", "User has a migraine.")
    ]
    document = {"facts": proposals}
    added = httpx.post(f"{server.url}/memory/import", **taking(document), timeout=60)
    assert added.status_code == 200, added.text
    page.goto(f"{server.url}/memory/page/updates")
    gout = page.locator("li.held", has=page.get_by_role("button", name="No: User has gout."))
    mine = gout.get_by_label("Its words")
    mine.fill("User avoids shellfish.")
    page.get_by_role("button", name="No: User has a migraine.").click()
    expect(page.get_by_text("It is not remembered.")).to_be_visible()
    expect(page.locator(".held textarea")).to_have_value("User avoids shellfish.")
    page.get_by_role("button", name="No: User has gout.").click()
