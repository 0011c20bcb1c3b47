"""The page in a browser, against a real server: what stays while it is shown anew, loads late, or breaks off."""

import re
import threading
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.archive_lines import JSON_LINES, lines_of
from tests.e2e.browsing import WHOLE_PAGE, break_off, erase, expect, fact, look_again, say, take_in
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.e2e.waiting import eventually
from tests.stub_model import Reply, StubModel

pytest.importorskip("jinja2")

pytestmark = WHOLE_PAGE


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.5")


@pytest.fixture(autouse=True)
def scripted(model: StubModel) -> None:
    model.respond = Scripted()


def test_a_look_at_the_list_keeps_what_somebody_has_begun_in_it(page: Any, server: DevServer) -> None:
    for content in ("Likes figs", "Likes quinces", "Likes pears"):
        page.request.post(f"{server.url}/memory/facts", data={"content": content, "category": "preference"})
    page.reload()
    fact(page, "figs").get_by_role("checkbox").check()
    fact(page, "pears").get_by_role("link", name="History").click()
    expect(fact(page, "pears").locator(".aside")).to_be_visible()
    page.request.post(f"{server.url}/memory/facts", data={"content": "Likes sloes", "category": "preference"})
    look_again(page)
    expect(fact(page, "sloes")).to_be_visible()
    expect(fact(page, "figs").get_by_role("checkbox")).to_be_checked()
    expect(fact(page, "pears").locator(".aside")).to_be_visible()
    # Under another filter nobody has said "all".
    page.locator("#choose-all").check()
    page.request.post(f"{server.url}/memory/facts", data={"content": "Likes medlars", "category": "preference"})
    look_again(page)
    expect(page.locator("#choose-all")).to_be_checked()
    expect(fact(page, "medlars").get_by_role("checkbox")).to_be_checked()
    # One that is spared is spared.
    fact(page, "sloes").get_by_role("checkbox").uncheck()
    expect(page.locator("#choose-all")).not_to_be_checked()
    page.locator("#choose-all").check()
    page.get_by_role("searchbox").fill("quinces")
    expect(page.locator(".facts > li")).to_have_text([re.compile("pears"), re.compile("quinces")])  # one is open
    expect(page.locator("#choose-all")).not_to_be_checked()
    erase(page)


def test_whoever_spares_those_on_this_page_has_not_chosen_all(page: Any, server: DevServer) -> None:
    take_in(page, server.url, 120)
    page.reload()
    whole, this = page.get_by_role("checkbox", name="All 120"), page.get_by_role("checkbox", name="On this page")
    whole.check()
    expect(this).to_be_checked()
    this.uncheck()
    expect(whole).not_to_be_checked()
    this.check()
    expect(whole).not_to_be_checked()
    page.locator("#choose").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Yes", exact=True).click()
    expect(page.get_by_text("100 deleted.")).to_be_visible()
    erase(page)


def test_what_is_done_before_the_script_is_there_is_done_as_without_it(page: Any, server: DevServer) -> None:
    for content in ("Likes figs", "Keeps bees"):
        page.request.post(f"{server.url}/memory/facts", data={"content": content, "category": "preference"})
    held: list[Any] = []
    page.route("**/static/page.js", lambda route: held.append(route))  # Playwright takes no method of a list
    page.reload(wait_until="commit")
    fact(page, "figs").get_by_role("button", name="Delete").click(no_wait_after=True)
    expect(page.get_by_text("1 deleted.")).to_be_visible()
    page.get_by_role("searchbox").fill("figs")
    held.pop().continue_()
    expect(page.get_by_text("No fact fits this search.")).to_be_visible()
    expect(page.get_by_role("searchbox")).to_be_focused()
    erase(page)


def test_a_server_that_is_away_is_said_to_be_and_what_is_shown_stays(page: Any) -> None:
    take_in(page, page.url.partition("/memory")[0], 30)
    page.reload()
    page.get_by_role("button", name="Delete", exact=False).last.scroll_into_view_if_needed()
    mend = break_off(page, "**/memory/**")
    place = page.get_by_role("heading", name="What is known").bounding_box()
    page.get_by_role("link", name="Journal").click()
    # Seen wherever one has scrolled to, and nothing moves for it.
    expect(page.locator("#away")).to_be_in_viewport()
    assert page.get_by_role("heading", name="What is known").bounding_box() == place
    expect(page.get_by_role("heading", name="What is known")).to_be_visible()
    mend()
    expect(page.locator("#away")).to_be_hidden()


def test_words_that_were_begun_stay_when_another_one_is_decided(page: Any, server: DevServer) -> None:
    proposals = [
        {"content": content, "category": "knowledge", "confidence": 0.9, "status": "waiting"}
        for content in ("User has gout.", "User has a migraine.")
    ]
    page.request.post(f"{server.url}/memory/import", data=lines_of({"facts": proposals}), headers=JSON_LINES)
    page.goto(f"{server.url}/memory/page/updates")
    gout = page.locator("li.held", has=page.get_by_role("button", name="No: User has gout."))
    gout.get_by_label("Its words").fill("User avoids shellfish.")
    page.get_by_role("button", name="No: User has a migraine.").click()
    expect(page.get_by_text("It is not remembered.")).to_be_visible()
    expect(page.locator(".held textarea")).to_have_value("User avoids shellfish.")
    page.get_by_role("button", name="No: User has gout.").click()


def test_a_chat_whose_conversation_was_erased_elsewhere_says_so_and_begins_a_new_one(
    page: Any, server: DevServer
) -> None:
    page.clock.install()
    page.reload()
    say(page, "I row across the fjord.")
    page.clock.pause_at(datetime.now() + timedelta(hours=1))  # else the page may look by itself before that is sent
    erased = page.request.post(f"{server.url}/memory/erase/everything", data={"erase": "everything"})
    assert erased.status == 200
    page.locator("#chat-words").fill("Are you there?")
    page.get_by_role("button", name="Send").click()
    page.clock.resume()
    expect(page.locator("#chat-log")).to_contain_text("not there any more")
    expect(page.locator("#chat")).not_to_contain_text("fjord")
    expect(page.locator("#chat-words")).to_have_value("Are you there?")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".message.assistant:not(.failed, .coming)")).to_contain_text("Noted.")


def test_an_incognito_chat_goes_though_its_page_is_closed_while_an_answer_comes(
    page: Any, server: DevServer, model: StubModel
) -> None:
    def holding() -> list[str]:
        return [name for name, kept in server.stored().items() if b"Ouagadougou" in kept]

    hangs = threading.Event()
    model.respond = lambda _: Reply(text="It is far away.", gate=hangs)
    page.get_by_label("What memory may do").select_option("incognito")
    page.locator("#chat-words").fill("I keep a goat in Ouagadougou.")
    page.get_by_role("button", name="Send").click()
    eventually(lambda: bool(model.requests))
    page.goto("about:blank")
    hangs.set()
    eventually(lambda: holding() == [])
