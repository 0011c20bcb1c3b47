"""The page as addresses and plain forms: facts, what is refused, and what nobody is shown without a token."""

import html
import re

import pytest

from graphs.settings import Settings
from memory.facts.store import FactStore
from tests.archive_lines import JSON_LINES
from tests.memory_app import MemoryApp
from tests.page_client import Page, field
from tests.stores import CountingStore

pytest.importorskip("jinja2")


@pytest.fixture
def page() -> Page:
    return Page()


def shown(text: str) -> list[str]:
    """Return the contents of the facts that an answer shows."""
    rows = re.findall(r'<li class="fact(?! gone).*?<p class="content" dir="auto">(.*?)</p>', text, re.DOTALL)
    return [html.unescape(row) for row in rows]


async def test_the_list_says_what_is_switched_off(page: Page) -> None:
    assert "paused" not in await page.get("facts")
    await page.post("switch", learning="off")
    text = await page.get("facts")
    assert "Learning is paused" in text
    assert "half a minute" not in text
    assert "not used" not in text
    await page.post("switch", learning="on", use="off")
    text = await page.get("facts")
    assert "no model is shown any of this" in text
    assert "paused" not in text


async def test_every_form_leads_to_an_address_so_that_a_reload_sends_nothing_again(page: Page) -> None:
    fact = page.facts.create("Likes figs", "preference", 0.9)
    seen = {"kind": "preference", "sort": "newest", "history": fact.id}
    answer = await page.client.post("/page/facts-delete", params=seen, data={"id": fact.id}, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("facts?done=deleted&n=1&at=")
    assert answer.headers["location"].endswith("&kind=preference&sort=newest")  # what was open is gone
    shown_then = await page.get(answer.headers["location"])
    assert "1 deleted." in shown_then
    undo = {"at": field(shown_then, "at")}
    answer = await page.client.post("/page/facts-undo", params=seen, data=undo, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"].partition("&")[0]) == (303, "facts?done=restored")
    assert shown(await page.get("facts")) == ["Likes figs"]


async def test_words_that_are_searched_for_are_in_no_address(page: Page) -> None:
    page.learns("Likes figs", "Keeps bees")
    answer = await page.client.get("/page/facts", headers={"Find": "b%65es"})
    assert shown(answer.text) == ["Keeps bees"]
    links = re.findall(r'(?:href|action|formaction)="([^"]*)"', answer.text)
    assert links
    assert not [link for link in links if "bees" in link]
    # As a form they stand in its body, and what is opened then is shown whatever is found.
    text = await page.post("facts", text="bees")
    assert shown(text) == ["Keeps bees"]
    figs = page.facts.search("figs", only_asked=True)[0]
    assert "Likes figs</textarea>" in await page.post(f"facts?edit={figs.id}", text="bees")


async def test_no_inline_script_runs_and_nobody_may_frame_the_page(page: Page) -> None:
    answer = await page.client.get("/page/facts")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "'unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"<script(?![^>]*\ssrc=)|\son[a-z]+=|style=", answer.text)


async def test_chosen_facts_are_exported_as_an_import_takes_them(page: Page) -> None:
    first = page.facts.create("Likes figs", "preference", 0.9)
    page.facts.create("Lives in Bergen", "knowledge", 0.9)
    answer = await page.client.post("/page/facts-export", data={"id": first.id})
    assert "attachment" in answer.headers["content-disposition"]
    other = Page()
    imported = await other.client.post("/import", content=answer.content, headers=JSON_LINES)
    assert imported.status_code == 200, imported.text
    assert other.says() == ["Likes figs"]


async def test_what_is_wrong_is_said_where_it_can_be_seen_and_changes_nothing(page: Page) -> None:
    page.facts.create("Likes figs", "preference", 0.9)
    assert "The fact must say something." in await page.post("fact-add", status=422, content=" ", category="preference")
    assert "Category is missing: fill it in." in await page.post("fact-add", status=422, content="x")
    await page.post("fact-add", status=422, content="x", category="unheard of")
    gone = await page.post("fact-save", status=404, id="fact_00000000", content="x")
    assert "This fact is not there any more" in gone
    await page.post("facts-delete", status=422, id="fact_00000000")
    await page.post("facts-delete", status=422)
    await page.post("facts-undo", status=409, at="2001-01-01T00:00:00+00:00")
    assert page.says() == ["Likes figs"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
    ],
    ids=str,
)
async def test_forms_of_other_sites_are_refused(page: Page, headers: dict[str, str]) -> None:
    page.facts.create("Likes figs", "preference", 0.9)
    form = {"content": "Likes spam", "category": "preference"}
    assert (await page.client.post("/page/fact-add", data=form, headers=headers)).status_code == 403
    assert page.says() == ["Likes figs"]
    own = {"Origin": "http://testserver"}
    assert (await page.client.post("/page/fact-add", data=form, headers=own)).status_code == 200


async def test_with_a_login_the_page_and_its_files_hold_nothing_and_each_part_needs_the_token() -> None:
    app = MemoryApp()
    FactStore(app.store, "ada").create("Likes figs", "preference", 0.9)
    async with app.user(None) as nobody, app.user("ada", Authorization="Bearer x") as ada:
        page = await nobody.get("/page/facts")
        assert page.status_code == 200
        assert "data-login" in page.text
        assert "figs" not in page.text
        assert (await nobody.get("/static/page.css")).status_code == 200
        for name in ("facts", "bin", "journal"):
            assert "figs" not in (await nobody.get(f"/page/{name}")).text, name
        posted = await nobody.post("/page/facts", data={"text": "figs"})
        assert (posted.status_code, "Likes" in posted.text) == (401, False)
        asked = await nobody.get("/page/facts", headers={"Authorization": "Bearer another"})
        assert (asked.status_code, "Likes" in asked.text) == (401, False)
        assert "Likes figs" in (await ada.get("/page/facts")).text


async def test_links_are_relative_so_that_the_page_works_below_any_prefix(page: Page) -> None:
    text = await page.get("facts")
    links = re.findall(r'(?:href|src|action|formaction)="([^"]*)"', text)
    assert len(links) > 10
    assert not [link for link in links if link.startswith("/") or "://" in link]


async def test_a_view_reads_each_thing_once() -> None:
    store = CountingStore()
    async with MemoryApp(Settings(single_user=True), store=store).user(None) as person:
        assert (await person.get("/page/facts")).status_code == 200
    # The user's choices; the facts, with all that they said; the journal.
    assert store.batches == 3
