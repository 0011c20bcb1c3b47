"""An incognito chat of the page, in a browser, against a real server: it goes with its page."""

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browsing import WHOLE_PAGE, expect, say
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


def holding(word: bytes, server: DevServer) -> list[Path]:
    """Return the files of a server in which a word stands, its log and what it keeps itself among them."""
    found = []
    for path in server.folder.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):  # the server writes, and takes away, as it likes
            if word in path.read_bytes():
                found.append(path)
    return found


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
