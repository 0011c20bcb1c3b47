"""Approval in a browser, against a real server: what is sensitive waits, and is used after the yes."""

from typing import Any

import httpx
import pytest

from tests.archive_lines import taking
from tests.e2e.browsing import WHOLE_PAGE, expect
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.stub_model import StubModel

pytest.importorskip("jinja2")

pytestmark = WHOLE_PAGE

DIABETES = "User has type 2 diabetes."


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.5", PALIMPSEST_APPROVAL="sensitive")


@pytest.fixture(autouse=True)
def scripted(model: StubModel) -> None:
    model.respond = Scripted(learns={"type 2 diabetes": DIABETES})


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
