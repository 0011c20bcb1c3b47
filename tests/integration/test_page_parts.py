"""The forms of the page's other parts: profile, switches, import, erase, and updates that failed."""

import re
from typing import Any

import pytest

from memory.control import write_time_zone
from memory.effects import arun
from memory.facts.profile import MAX_SECTION_CHARS
from memory.journal.entry import JournalEntry
from memory.journal.journal import append
from memory.message import StoredMessage
from tests.archive_lines import lines_of
from tests.memory_app import ADA, MemoryApp, pending
from tests.page_client import field

pytest.importorskip("jinja2")

HTMX = {"HX-Request": "true"}
DOCUMENT = {
    "facts": [
        {"content": "Likes figs", "category": "preference", "confidence": 0.9},
        {"content": "x", "category": "unheard of", "confidence": 0.9},
    ],
}


@pytest.fixture
def app() -> MemoryApp:
    return MemoryApp()


class Ada:
    """Ada's page, as htmx asks for it or as plain forms."""

    def __init__(self, app: MemoryApp, *, whole: bool) -> None:
        headers = {"Authorization": "Bearer x", **({} if whole else HTMX)}
        self.client = app.user("ada", **headers)
        self.client.follow_redirects = True

    async def get(self, path: str) -> str:
        answer = await self.client.get(f"/page/{path}")
        assert answer.status_code == 200, answer.text
        return answer.text

    async def post(self, path: str, status: int = 200, /, **form: str) -> str:
        answer = await self.client.post(f"/page/{path}", data=form)
        assert answer.status_code == status, answer.text
        return answer.text

    async def api(self, path: str) -> Any:
        return (await self.client.get(path)).json()


@pytest.fixture(params=[False, True], ids=["htmx", "plain form"])
def ada(app: MemoryApp, request: pytest.FixtureRequest) -> Ada:
    return Ada(app, whole=request.param)


def section(text: str, title: str) -> str:
    """Return what stands in a section's text field."""
    found = re.search(rf">{title}</label>\s*<textarea[^>]*>(.*?)</textarea>", text, re.DOTALL)
    assert found, text
    return found[1]


async def test_a_section_of_the_profile_is_written_emptied_and_checked(ada: Ada) -> None:
    said = await ada.post("profile-save", section="user.work", text="Builds <b>boats</b>")
    assert section(said, "Work") == "Builds &lt;b&gt;boats&lt;/b&gt;"
    assert (await ada.api("/profile"))["sections"] == {"user.work": "Builds <b>boats</b>"}
    assert section(await ada.post("profile-save", section="user.work", text="  "), "Work") == ""
    assert (await ada.api("/profile"))["sections"] == {}
    await ada.post("profile-save", 422, section="user.work", text="x" * (MAX_SECTION_CHARS + 1))
    await ada.post("profile-save", 404, section="user.shoes", text="x")
    assert (await ada.api("/profile"))["sections"] == {}


@pytest.mark.parametrize("name", ["learning", "use"])
async def test_each_switch_turns_by_its_own_form_and_shows_how_it_stands(ada: Ada, name: str) -> None:
    def stands(text: str) -> list[tuple[str, str]]:
        return [(name, is_on) for name, is_on in re.findall(r'id="press-(\w+)" aria-checked="(\w+)"', text)]

    other = {"learning": "use", "use": "learning"}[name]
    off = await ada.post("switch", 200, **{name: "off"})
    assert dict(stands(off)) == {name: "false", other: "true"}
    assert (await ada.api("/overview"))[name] is False
    on = await ada.post("switch", 200, **{name: "on"})
    assert dict(stands(on)) == {name: "true", other: "true"}
    assert (await ada.api("/overview"))[name] is True


async def test_a_document_that_is_pasted_is_taken_in_and_a_bad_one_is_refused(ada: Ada) -> None:
    await ada.post("import", document=lines_of(DOCUMENT))
    assert [each["content"] for each in (await ada.api("/facts"))["facts"]] == ["Likes figs"]
    assert "0 new facts; 1 were known already, 1 refused" in await ada.post("import", document=lines_of(DOCUMENT))
    for wrong in ("", "no JSON", lines_of(DOCUMENT).replace("palimpsest", "another")):
        assert "problem" in await ada.post("import", 422, document=wrong)


async def test_erasing_everything_says_what_goes_and_wants_the_word(ada: Ada) -> None:
    await ada.post("import", document=lines_of(DOCUMENT))
    text = await ada.get("erase")
    assert "<strong>1</strong> fact, <strong>0</strong> that wait for your decision, and the history" in text
    assert "<strong>0</strong> updates that are not learned yet" in text
    assert "everything" in await ada.post("erase-everything", 422, erase="all")
    assert (await ada.api("/facts"))["total"] == 1
    assert "Erased:" in await ada.post("erase-everything", erase=" Everything ")
    assert (await ada.api("/facts"))["total"] == 0


async def test_what_could_not_be_learned_is_tried_again_or_thrown_away(app: MemoryApp, ada: Ada) -> None:
    again = await pending(app, "t1", "I sail.", state="dead", attempts=8, error="ModelError")
    thrown = await pending(app, "t2", "I row.", state="dead", attempts=8, error="ModelError")
    text = await ada.get("updates")
    assert text.count("ModelError") == 2
    left = await ada.post("update-retry", key=again.key)
    assert left.count("ModelError") == 1
    sure = field(await ada.post("update-discard", 428, key=thrown.key), "sure")
    left = await ada.post("update-discard", key=thrown.key, sure=sure)
    assert "Could not be learned" not in left
    assert [each["state"] for each in (await ada.api("/updates"))["updates"]] == ["pending"]
    await ada.post("update-retry", 404, key=thrown.key)
    await ada.post("update-discard", 404, key=thrown.key, sure=sure)


async def test_the_journal_is_in_the_users_time(app: MemoryApp) -> None:
    message = StoredMessage("m1", "user", "I like figs.", "2025-10-01T22:30:00+00:00")
    await arun(app.store, append(ADA, [JournalEntry("2025-10-02", "t1", (message,), "initial")]))
    ada = Ada(app, whole=False)
    assert "22:30" in await ada.get("journal")
    await arun(app.store, write_time_zone(ADA, "Europe/Oslo"))
    shown = await ada.get("journal")
    assert "Thursday, 2 October 2025" in shown
    assert ">00:30<" in shown
    assert "UTC" not in shown
