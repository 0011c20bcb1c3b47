"""The page's other parts in a browser: what waits or failed, profile, journal, switches; axe, and a keyboard alone."""

import json
import re
import threading
from typing import Any

import pytest

from tests.e2e.browsing import WHOLE_PAGE, expect, go, say
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.stub_model import StubModel

pytest.importorskip("jinja2")

pytestmark = WHOLE_PAGE

SAILS = "User sails on Sundays."


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.5")


@pytest.fixture(autouse=True)
def scripted(model: StubModel) -> Scripted:
    model.respond = Scripted(learns={"sail on Sundays": SAILS})
    return model.respond


def test_a_chat_whose_conversation_was_erased_elsewhere_says_so_and_begins_a_new_one(
    page: Any, server: DevServer
) -> None:
    say(page, "I row across the fjord.")
    erased = page.request.post(f"{server.url}/memory/erase/everything", data={"erase": "everything"})
    assert erased.status == 200
    page.locator("#chat-words").fill("Are you there?")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".message .problem")).to_contain_text("not there any more")
    expect(page.locator("#chat")).not_to_contain_text("fjord")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".message.assistant:not(.failed, .coming)")).to_have_text(re.compile("Noted."))


WATCH = """() => {
  window.seen = new Set();
  const look = () => {
    const due = [...document.querySelectorAll("time[data-due]")].map((each) => each.textContent).join();
    const parts = [...document.querySelectorAll("main h1, main h2, main .cards > li")];
    const tops = parts.map((each) => each.getBoundingClientRect().top);
    window.seen.add(JSON.stringify([due, tops]));
    requestAnimationFrame(look);
  };
  look();
}"""


def test_the_countdown_runs_down_and_nothing_jumps_when_the_page_looks_again(page: Any, model: StubModel) -> None:
    go(page, "Waiting")
    expect(page.get_by_text("All that was said is learned.")).to_be_visible()
    gate = threading.Event()
    model.respond = Scripted(extraction_gate=gate)
    try:
        say(page, "I walk along the river.")
        expect(page.locator("time[data-due]")).to_have_text(re.compile(r"^in (\d+ min )?\d+ s$"))
        page.evaluate(WATCH)
        for _ in range(3):
            with page.expect_response("**/page/updates"):
                pass
        seen = [json.loads(each) for each in page.evaluate("[...window.seen]")]
    finally:
        gate.set()
    left = [re.fullmatch(r"in (?:(\d+) min )?(\d+) s", due) for due, _ in seen]
    assert all(left), {due for due, _ in seen}
    seconds = [60 * int(each[1] or 0) + int(each[2]) for each in left if each]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[0] - seconds[-1] >= 5
    assert len({tuple(tops) for _, tops in seen}) == 1, seen
    expect(page.get_by_text("All that was said is learned.")).to_be_visible()
