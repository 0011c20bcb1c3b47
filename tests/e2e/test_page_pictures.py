"""Pictures of the page, as README and `docs/` show them; made whenever these tests run, kept with `--pictures`."""

from pathlib import Path
from typing import Any

import pytest

from tests.archive_lines import JSON_LINES, lines_of
from tests.e2e.browsing import WHOLE_PAGE, expect, go, say
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.scripted import Scripted
from tests.stories.serving import PROJECT
from tests.stub_model import StubModel, always

pytest.importorskip("jinja2")

pytestmark = WHOLE_PAGE

FACTS = (
    ("Cooks for four on Saturdays", "behavior", 0.7),
    ("Prefers answers in a few sentences", "preference", 0.95),
    ("Ada's birthday is on 12 May", "knowledge", 0.9),
    ("Wants to sail to Spitsbergen in 2028", "goal", 0.8),
    ("The boat is red, not blue", "correction", 1.0),
    ("Builds boats in Bergen", "context", 0.9),
)
WAITS = ("Takes a tablet against high blood pressure each morning", "Owes the bank for the new engine")
SAID = (
    ("2026-03-07", "The new keel is on. Two more weeks, and she floats.", "That is quick. Shall I note the launch?"),
    ("2026-03-09", "Remind me that the choir sings on Friday.", "Friday, the choir. I will."),
    ("2026-03-09", "Which knot did I want to learn?", "The bowline, for the mooring."),
)
SIZES = (("wide", 1280, 640), ("narrow", 360, 740))
KEPT = {
    ("Facts", "wide", "light"): "page-wide-light.png",
    ("Facts", "wide", "dark"): "page-wide-dark.png",
    ("Facts", "narrow", "light"): "page-narrow-light.png",
    ("Journal", "narrow", "dark"): "page-journal-narrow.png",
}
"""The pictures that are kept: the others are looked at, and only have to be as wide as their window."""


@pytest.fixture(scope="module")
def server(serve: Serve) -> DevServer:
    return serve(PALIMPSEST_DEBOUNCE_SECONDS="0.5")


def test_pictures_of_the_page(
    page: Any, server: DevServer, model: StubModel, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    answer = "A mild fish curry with rice, and no peanuts in it. It serves four, and most of it can be made ahead."
    model.respond = Scripted(learns={"allergic to peanuts": "Allergic to peanuts"}, chat=always(answer))
    facts = [{"content": content, "category": kind, "confidence": sure} for content, kind, sure in FACTS]
    waits = [{"content": each, "category": "knowledge", "confidence": 0.9, "status": "waiting"} for each in WAITS]
    profile = {"user.work": "Builds wooden boats with two friends.", "user.topOfMind": "The new engine."}
    document = {"facts": facts + waits, "profile": profile}
    page.request.post(f"{server.url}/memory/import", data=lines_of(document), headers=JSON_LINES)
    more = {**document, "facts": []}
    more["journal"] = [
        {"day": day, "thread_id": f"t{n}", "source": "turn", "messages": [
            {"id": f"u{n}", "role": "user", "text": said, "time": f"{day}T1{n}:05:00+00:00"},
            {"id": f"a{n}", "role": "assistant", "text": reply, "time": f"{day}T1{n}:06:00+00:00"},
        ]}
        for n, (day, said, reply) in enumerate(SAID)
    ]  # fmt: skip
    page.reload()
    say(page, "What could we cook on Saturday? I am allergic to peanuts.")
    expect(page.locator(".learned")).to_be_visible()
    page.locator(".message.assistant .drew summary").click()
    page.locator(".sources").wait_for()
    page.locator(".facts > li", has_text="peanuts").wait_for()
    page.evaluate("document.querySelector('.log').scrollTop = 10000")
    for part in ("Facts", "Profile", "Journal", "Waiting", "Preview", "Your data"):
        if part == "Profile":  # what the list of facts has no room for
            page.request.post(f"{server.url}/memory/import", data=lines_of(more), headers=JSON_LINES)
        for name, width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            go(page, part)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (part, name)
                kept = KEPT.get((part, name, scheme), "") if pytestconfig.getoption("--pictures") else ""
                own = f"{part.replace(' ', '-').lower()}-{name}-{scheme}.png"
                page.screenshot(path=PROJECT / "docs" / "pictures" / kept if kept else tmp_path / own)
    go(page, "Chat")
    page.screenshot(path=tmp_path / "chat-narrow-dark.png")
    page.get_by_text("Conversations").click()
    page.locator("#chat-threads a").wait_for()
    page.screenshot(path=tmp_path / "list-narrow-dark.png")
