"""The page's other parts in a browser: what waits or failed, profile, journal, switches; axe, and a keyboard alone."""

import json
import re
import threading
from typing import Any

import pytest

from tests.e2e.browsing import WHOLE_PAGE, expect, fact, go, say, take_in
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted, is_extraction
from tests.stub_model import ChatRequest, Reply, StubModel

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


def test_two_hundred_proposals_are_decided_one_by_one_and_together(page: Any, server: DevServer) -> None:
    take_in(page, server.url, 200, status="waiting")
    go(page, "Waiting")
    held = page.locator("li.held")
    expect(held).to_have_count(200)
    first, second, third = (held.nth(n).get_attribute("id") for n in range(3))
    held.nth(0).get_by_role("button", name="Yes, remember").click()
    expect(page.locator(f"#{first}")).to_have_count(0)
    page.locator(f"#{second} textarea").fill("Knows many numbers")
    page.locator(f"#{second}").get_by_role("button", name="Yes, remember").click()
    expect(page.locator(f"#{second}")).to_have_count(0)
    page.locator(f"#{third}").get_by_role("button", name=re.compile("^No:")).click()
    expect(held).to_have_count(197)
    page.get_by_role("button", name="No to all 197").click()
    page.get_by_role("button", name="Yes", exact=True).click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    go(page, "Facts")
    expect(page.locator(".facts > li")).to_have_count(2)
    expect(fact(page, "Knows many numbers")).to_be_visible()


def test_what_could_not_be_learned_is_tried_again(
    page: Any, server: DevServer, model: StubModel, scripted: Scripted
) -> None:
    def refuses(request: ChatRequest) -> Reply | str:
        return Reply(status=403, text="no") if is_extraction(request) else scripted(request)

    model.respond = refuses
    say(page, "I always sail on Sundays, by the way.")
    go(page, "Waiting")
    again = page.get_by_role("button", name="Try again")
    expect(page.get_by_role("heading", name="Could not be learned")).to_be_visible()
    model.respond = scripted
    again.click()
    expect(page.get_by_role("heading", name="Could not be learned")).to_have_count(0)
    expect(page.locator("#updates").get_by_text(SAILS)).to_be_visible()
    go(page, "Facts")
    fact(page, SAILS).get_by_role("link", name="History").click()
    expect(fact(page, SAILS).locator(".history")).to_contain_text("now")
    say(page, "The wind was good today.")
    # From its source back into the conversation itself, with the tokens of each reply.
    fact(page, SAILS).get_by_role("link", name="from a conversation").click()
    page.get_by_role("button", name="New chat").click()
    page.get_by_role("button", name="Open this conversation").click()
    expect(page.locator(".message.user").first).to_have_text(re.compile("sail on Sundays"))
    expect(page.locator(".message.assistant .tokens")).to_have_count(2)


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
    gate = threading.Event()
    model.respond = Scripted(extraction_gate=gate)
    try:
        say(page, "I walk along the river.")
        go(page, "Waiting")
        expect(page.locator("time[data-due]")).to_have_text(re.compile(r"^in (\d+ min )?\d+ s$"))
        page.evaluate(WATCH)
        for _ in range(3):
            with page.expect_response("**/updates-list"):
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
