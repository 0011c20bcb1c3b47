"""A walk through the page in a browser, against a real server: the few of its tests that `make test` runs, too.

The story of one fact, incognito, and text that stays text. The others are marked `whole_page`: `make e2e-page`.
"""

import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browsing import NEEDED, erase, expect, fact, go, say
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.e2e.waiting import eventually
from tests.stub_model import Reply, StubModel

pytest.importorskip("jinja2")

pytestmark = NEEDED

ALLERGY = "User is allergic to peanuts."


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.5")


@pytest.fixture(autouse=True)
def scripted(model: StubModel) -> None:
    model.respond = Scripted(learns={"allergic to peanuts": ALLERGY})


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
    eventually(lambda: not holding(b"Zanzibar", server))


@pytest.mark.whole_page  # the server writes its own files every ten seconds
def test_an_incognito_chat_goes_with_its_page(page: Any, server: DevServer) -> None:
    page.get_by_label("What memory may do").select_option("incognito")
    say(page, "I keep a parrot in Samarkand.")
    assert holding(b"Samarkand", server)
    page.goto("about:blank")
    eventually(lambda: not holding(b"Samarkand", server))
    page.goto(f"{server.url}/memory")


@pytest.mark.whole_page
@pytest.mark.parametrize("other", ["normal", "read_only"])
def test_in_each_mode_is_another_chat(page: Any, server: DevServer, other: str) -> None:
    word = f"Timbuktu{other}"
    mode = page.get_by_label("What memory may do")
    mode.select_option(other)
    say(page, f"I said this in {other} mode.")
    # From here on nothing is said in the chat of before, and what is said is not read there.
    mode.select_option("incognito")
    expect(page.locator(".message")).to_have_count(0)
    say(page, f"I keep a camel in {word}.")
    assert holding(word.encode(), server)
    mode.select_option(other)
    expect(page.locator(".message")).to_have_count(0)
    expect(page.locator(".incognito")).to_be_hidden()
    eventually(lambda: not holding(word.encode(), server))
    assert holding(f"I said this in {other} mode.".encode(), server)


@pytest.mark.whole_page
def test_an_incognito_chat_goes_though_its_page_is_closed_while_an_answer_comes(
    page: Any, server: DevServer, model: StubModel
) -> None:
    hangs = threading.Event()
    model.respond = lambda _: Reply(text="It is far away.", gate=hangs)
    page.get_by_label("What memory may do").select_option("incognito")
    page.locator("#chat-words").fill("I keep a goat in Ouagadougou.")
    page.get_by_role("button", name="Send").click()
    eventually(lambda: bool(model.requests))
    page.goto("about:blank")
    hangs.set()
    eventually(lambda: not holding(b"Ouagadougou", server))
    page.goto(f"{server.url}/memory")


def test_a_script_in_a_fact_is_text(page: Any) -> None:
    page.get_by_text("Add a fact", exact=True).click() if not page.locator(".add[open]").count() else None
    page.get_by_label("What should be known about you?").fill("<script>alert(1)</script>\n<b>second</b> line")
    page.get_by_role("button", name="Add", exact=True).click()
    row = fact(page, "second")
    expect(row.locator(".content")).to_have_text(re.compile(r"<script>.*</script>\s+<b>second</b> line"))
    assert row.locator("script, b").count() == 0
    row.get_by_role("button", name="Delete").click()
