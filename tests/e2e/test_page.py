"""The list of facts in a browser, against a real server: what people do with it, by mouse and by keyboard."""

from typing import Any

import pytest

from tests.e2e.browsing import WHOLE_PAGE, erase, expect, fact, look_again, shown_anew, take_in
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.stub_model import StubModel

pytest.importorskip("jinja2")

pytestmark = WHOLE_PAGE


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.5")


@pytest.fixture(autouse=True)
def scripted(model: StubModel) -> None:
    model.respond = Scripted()


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
    with shown_anew(page):
        page.get_by_role("searchbox").fill("quinces")
    expect(page.locator(".facts > li")).to_have_count(1)
    expect(page.locator("#choose-all")).not_to_be_checked()
    erase(page)


def test_what_is_asked_for_in_a_row_comes_though_the_list_is_shown_anew_meanwhile(page: Any, server: DevServer) -> None:
    for content in ("Likes figs", "Likes plums"):
        page.request.post(f"{server.url}/memory/facts", data={"content": content, "category": "preference"})
    page.reload()
    held: list[Any] = []
    page.route("**/page/fact{-history,s-delete}*", lambda route: held.append(route))
    with page.expect_request("**/page/fact{-history,s-delete}*"):
        fact(page, "figs").get_by_role("link", name="History").click()
    with page.expect_request("**/page/fact{-history,s-delete}*"):
        fact(page, "plums").get_by_role("button", name="Delete").click()
    look_again(page)
    for each in held:
        each.continue_()
    expect(fact(page, "figs").locator(".aside")).to_be_visible()
    expect(fact(page, "plums").get_by_role("button", name="Undo")).to_be_visible()
    page.unroute("**/page/fact{-history,s-delete}*")
    erase(page)


def test_what_is_pressed_as_soon_as_it_is_shown_loads_no_page(page: Any, server: DevServer) -> None:
    page.request.post(f"{server.url}/memory/facts", data={"content": "Likes figs", "category": "preference"})
    page.reload()
    expect(fact(page, "figs")).to_be_visible()
    page.evaluate(
        """() => {
          window.isTheSame = true;
          const press = () => queueMicrotask(() => document.querySelector(".facts a[hx-get*=history]").click());
          document.body.addEventListener("htmx:afterSwap", press, { once: true });
        }"""
    )
    page.evaluate("document.body.dispatchEvent(new Event('facts-changed'))")
    expect(fact(page, "figs").locator(".aside")).to_be_visible()
    assert page.evaluate("window.isTheSame")
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


def test_the_place_of_the_chat_is_there_before_its_scripts_are(page: Any) -> None:
    held: list[Any] = []
    page.route("**/static/langgraph.js", lambda route: held.append(route))
    with page.expect_request("**/static/langgraph.js"):
        page.reload()
    heading = page.get_by_role("heading", name="What is known")
    before = heading.bounding_box(), page.locator("#find").bounding_box()
    held.pop().continue_()
    page.locator("#chat-words").wait_for()
    assert (heading.bounding_box(), page.locator("#find").bounding_box()) == before
    page.unroute("**/static/langgraph.js")


def loads_late(page: Any, server: DevServer, *contents: str) -> list[Any]:
    """Have the page come with these facts and without htmx; return where its request is held."""
    for content in contents:
        page.request.post(f"{server.url}/memory/facts", data={"content": content, "category": "preference"})
    held: list[Any] = []
    page.route("**/static/htmx.js", lambda route: held.append(route))  # Playwright takes no method of a list
    page.reload(wait_until="commit")
    fact(page, contents[-1]).wait_for()
    page.evaluate("window.isTheSame = true")
    return held


def test_what_is_pressed_and_chosen_before_the_scripts_are_there_is_done_once_they_are(
    page: Any, server: DevServer
) -> None:
    held = loads_late(page, server, "Likes figs", "Likes plums", "Likes sloes")
    fact(page, "figs").get_by_role("button", name="Delete").click()
    page.locator("#choose-all").check()
    edit = fact(page, "plums").get_by_role("link", name="Edit")
    edit.focus()
    page.keyboard.press("Enter")
    expect(edit).to_have_attribute("aria-busy", "true")
    held.pop().continue_()
    # Both are asked for at once: the keyboard is where the later answer is.
    expect(page.get_by_label("What it says")).to_be_visible()
    expect(fact(page, "figs").get_by_role("button", name="Undo")).to_be_visible()
    expect(fact(page, "sloes").get_by_role("checkbox")).to_be_checked()
    assert page.evaluate("window.isTheSame")
    page.unroute("**/static/htmx.js")
    erase(page)


def test_what_is_searched_for_before_the_scripts_are_there_is_found(page: Any, server: DevServer) -> None:
    held = loads_late(page, server, "Likes figs", "Keeps bees")
    page.get_by_role("searchbox").fill("bees")
    held.pop().continue_()
    expect(page.locator(".facts > li")).to_have_count(1)
    expect(page.get_by_role("searchbox")).to_be_focused()
    erase(page)


def test_a_server_that_is_away_is_said_to_be_and_what_is_shown_stays(page: Any) -> None:
    take_in(page, page.url.partition("/memory")[0], 30)
    page.reload()
    page.get_by_role("button", name="Delete", exact=False).last.scroll_into_view_if_needed()
    page.route("**/memory/**", lambda route: route.abort())
    place = page.get_by_role("heading", name="What is known").bounding_box()
    page.get_by_role("link", name="Journal").click()
    # Seen wherever one has scrolled to, and nothing moves for it.
    expect(page.locator("#away")).to_be_in_viewport()
    assert page.get_by_role("heading", name="What is known").bounding_box() == place
    expect(page.get_by_role("heading", name="What is known")).to_be_visible()
    page.unroute("**/memory/**")
    expect(page.locator("#away")).to_be_hidden()
