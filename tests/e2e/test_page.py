"""The page in a browser, against a real server: what people do with their memory, by mouse and by keyboard.

It needs Playwright (the group `page`), a Chromium of the system, and what `make page` builds: `make e2e-page`.
"""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browsing import NEEDED, expect, fact, go, look_again, say, take_in
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.e2e.waiting import eventually
from tests.stub_model import StubModel

pytest.importorskip("jinja2")

pytestmark = NEEDED

ALLERGY = "User is allergic to peanuts."


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.5", PALIMPSEST_REQUESTS_PER_MINUTE="100000")


@pytest.fixture(autouse=True)
def scripted(model: StubModel) -> None:
    model.respond = Scripted(learns={"allergic to peanuts": ALLERGY})


def erase(page: Any) -> None:
    go(page, "Your data")
    page.get_by_role("link", name="Erase everything …").click()
    page.get_by_label("Type everything to confirm").fill("everything")
    page.get_by_role("button", name="Erase everything").click()
    expect(page.get_by_text("Erased:")).to_be_visible()


def holding(word: bytes, server: DevServer) -> list[Path]:
    """Return the files of a server in which a word stands, its log and what it keeps itself among them."""
    found = []
    for path in server.folder.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):  # the server writes, and takes away, as it likes
            if word in path.read_bytes():
                found.append(path)
    return found


def test_the_story_of_a_fact(page: Any, server: DevServer, model: StubModel) -> None:
    expect(page.get_by_text("Nothing is known about you yet.")).to_be_visible()
    say(page, "I am allergic to peanuts, by the way.")
    # It appears by itself, in the chat and in the list, with where it was said.
    expect(page.locator(".learned", has_text=ALLERGY)).to_be_visible()
    expect(fact(page, ALLERGY)).to_be_visible()
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

    erase(page)
    go(page, "Facts")
    expect(page.get_by_text("Nothing is known about you yet.")).to_be_visible()
    # What was said before is not learned again with what is said now.
    expect(page.locator(".message")).to_have_count(0)
    reply = say(page, "I live by the sea.")
    expect(reply.locator(".sources, .drew")).to_have_count(0)
    page.reload()
    expect(page.get_by_text("Nothing is known about you yet.")).to_be_visible()
    assert not any("almonds" in request.text for request in model.requests[-1:])


def test_incognito_says_so_and_leaves_no_trace(page: Any, server: DevServer) -> None:
    page.get_by_label("What memory may do").select_option("incognito")
    expect(page.locator(".incognito")).to_be_visible()
    reply = say(page, "I am allergic to peanuts and live in Zanzibar.")
    expect(page.locator(".incognito")).to_be_visible()
    expect(reply.locator(".drew")).to_have_count(0)
    for file in server.data.glob("store.sqlite*"):
        assert b"Zanzibar" not in file.read_bytes(), file.name
    # Back among what is learned, the chat is a new one, and the other is deleted.
    page.get_by_label("What memory may do").select_option("normal")
    expect(page.locator(".message")).to_have_count(0)
    eventually(lambda: not holding(b"Zanzibar", server), 60)


def test_an_incognito_chat_goes_with_its_page(page: Any, server: DevServer) -> None:
    page.get_by_label("What memory may do").select_option("incognito")
    say(page, "I keep a parrot in Samarkand.")
    assert holding(b"Samarkand", server)
    page.goto("about:blank")
    eventually(lambda: not holding(b"Samarkand", server), 60)
    page.goto(f"{server.url}/memory")


def test_a_script_in_a_fact_is_text(page: Any) -> None:
    page.get_by_text("Add a fact", exact=True).click() if not page.locator(".add[open]").count() else None
    page.get_by_label("What should be known about you?").fill("<script>alert(1)</script>\n<b>second</b> line")
    page.get_by_role("button", name="Add", exact=True).click()
    row = fact(page, "second")
    expect(row.locator(".content")).to_have_text(re.compile(r"<script>.*</script>\s+<b>second</b> line"))
    assert row.locator("script, b").count() == 0
    row.get_by_role("button", name="Delete").click()


def test_five_hundred_facts_go_and_come_back_at_once(page: Any, server: DevServer) -> None:
    take_in(page, server.url, 500)
    page.reload()
    with page.expect_response("**/facts-list**"):
        page.get_by_label("Category", exact=True).last.select_option("goal")
    page.get_by_role("checkbox", name="All 500").check()
    page.locator("#choose").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("500 deleted.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("500 restored.")).to_be_visible()
    page.get_by_role("checkbox", name="All 500").check()
    page.locator("#choose").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("500 deleted.")).to_be_visible()


def test_a_look_at_the_list_keeps_what_somebody_has_begun_in_it(page: Any, server: DevServer) -> None:
    for content in ("Likes figs", "Likes plums", "Likes quinces", "Likes pears"):
        page.request.post(f"{server.url}/memory/facts", data={"content": content, "category": "preference"})
    page.reload()
    fact(page, "figs").get_by_role("checkbox").check()
    fact(page, "pears").get_by_role("link", name="History").click()
    expect(fact(page, "pears").locator(".aside")).to_be_visible()
    fact(page, "plums").get_by_role("button", name="Delete").click()
    expect(fact(page, "plums").get_by_role("button", name="Undo")).to_be_focused()
    fact(page, "quinces").get_by_role("link", name="Edit").click()
    page.get_by_label("What it says").fill("Likes quinces, cooked")
    page.request.post(f"{server.url}/memory/facts", data={"content": "Likes sloes", "category": "preference"})
    look_again(page)
    expect(fact(page, "sloes")).to_be_visible()
    expect(fact(page, "figs").get_by_role("checkbox")).to_be_checked()
    expect(fact(page, "pears").locator(".aside")).to_be_visible()
    expect(page.get_by_label("What it says")).to_be_focused()
    page.get_by_role("button", name="Save").click()
    expect(fact(page, "Likes quinces, cooked").get_by_role("link", name="Edit")).to_be_visible()
    fact(page, "plums").get_by_role("button", name="Undo").click()
    expect(fact(page, "Likes plums").get_by_role("checkbox")).to_be_visible()
    # Under another filter nobody has said "all".
    page.locator("#choose-all").check()
    look_again(page)
    expect(page.locator("#choose-all")).to_be_checked()
    expect(fact(page, "sloes").get_by_role("checkbox")).to_be_checked()
    # One that is spared is spared.
    fact(page, "sloes").get_by_role("checkbox").uncheck()
    expect(page.locator("#choose-all")).not_to_be_checked()
    page.locator("#choose-all").check()
    with page.expect_response("**/facts-list**"):
        page.get_by_role("searchbox").fill("quinces")
    expect(page.locator(".facts > li")).to_have_count(1)
    expect(page.locator("#choose-all")).not_to_be_checked()
    erase(page)


def test_many_facts_are_chosen_by_category_day_and_conversation(page: Any, server: DevServer, tmp_path: Path) -> None:
    take_in(page, server.url, 3)
    page.request.post(f"{server.url}/memory/facts", data={"content": "Likes figs", "category": "preference"})
    say(page, "I am allergic to peanuts, by the way.")
    expect(fact(page, ALLERGY)).to_be_visible()
    filters = page.locator("#find")
    with page.expect_response("**/facts-list**"):
        filters.get_by_label("Category").select_option("goal")
    page.get_by_role("checkbox", name="All 3").check()
    with page.expect_download() as download:
        page.locator("#choose").get_by_role("button", name="Export").click()
    download.value.save_as(tmp_path / "facts.json")
    exported = json.loads((tmp_path / "facts.json").read_text())
    assert sorted(each["content"] for each in exported["facts"]) == [f"Knows the number {n}" for n in range(3)]
    with page.expect_response("**/facts-list**"):
        filters.get_by_label("Category").select_option("")
    filters.get_by_text("By day or conversation").click()
    with page.expect_response("**/facts-list**"):
        filters.get_by_label("until").fill("2001-01-01")
    expect(page.get_by_text("No fact fits this search.")).to_be_visible()
    with page.expect_response("**/facts-list**"):
        filters.get_by_label("until").fill("")
    page.reload()
    page.locator("#find").get_by_text("By day or conversation").click()
    with page.expect_response("**/facts-list**"):
        page.locator("#find").get_by_label("Conversation").select_option(index=1)
    expect(page.locator(".facts > li")).to_have_count(1)
    page.get_by_role("checkbox", name="All 1").check()
    page.locator("#choose").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("1 deleted.")).to_be_visible()
    page.reload()
    expect(fact(page, "figs")).to_be_visible()
    expect(fact(page, ALLERGY)).to_have_count(0)
    erase(page)


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


def test_a_server_that_is_away_is_said_to_be_and_what_is_shown_stays(page: Any) -> None:
    page.route("**/memory/**", lambda route: route.abort())
    page.get_by_role("link", name="Journal").click()
    expect(page.locator("#away")).to_be_visible()
    expect(page.get_by_role("heading", name="What is known")).to_be_visible()
    page.unroute("**/memory/**")
    expect(page.locator("#away")).to_be_hidden()


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
