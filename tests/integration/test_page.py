"""The page as plain forms and as htmx asks for it: facts, what is refused, and what nobody is shown without a token."""

import html
import re

import pytest

from graphs.server.page.assets import assets
from memory.facts.store import FactStore
from tests.archive_lines import JSON_LINES
from tests.memory_app import MemoryApp
from tests.page_client import HTMX, Page, field

pytest.importorskip("jinja2")


@pytest.fixture
def page() -> Page:
    return Page()


def shown(text: str) -> list[str]:
    """Return the contents of the facts that an answer shows."""
    rows = re.findall(r'<li class="fact(?! gone).*?<p class="content">(.*?)</p>', text, re.DOTALL)
    return [html.unescape(row) for row in rows]


async def test_an_address_is_a_whole_document_and_htmx_gets_a_part_of_it(page: Page) -> None:
    page.facts.create("Likes figs", "preference", 0.9)
    whole, part = await page.get("facts", whole=True), await page.get("facts")
    assert whole.startswith("<!doctype html>")
    assert "<html" not in part
    assert shown(whole) == shown(part) == ["Likes figs"]


@pytest.mark.parametrize("whole", [False, True], ids=["htmx", "plain form"])
async def test_the_list_says_what_is_switched_off(page: Page, whole: bool) -> None:
    assert "paused" not in await page.get("facts", whole=whole)
    await page.post("switch", learning="off")
    text = await page.get("facts", whole=whole)
    assert "Learning is paused" in text
    assert "half a minute" not in text
    assert "not used" not in text
    await page.post("switch", learning="on", use="off")
    text = await page.get("facts", whole=whole)
    assert "no model is shown any of this" in text
    assert "paused" not in text


async def test_a_reload_after_an_undo_without_scripts_undoes_nothing(page: Page) -> None:
    fact = page.facts.create("Likes figs", "preference", 0.9)
    at = field(await page.post("facts-delete", id=fact.id, row="yes"), "at")
    answer = await page.client.post("/page/facts-undo", data={"at": at}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "facts")
    assert shown(await page.get("facts", whole=True)) == ["Likes figs"]


async def test_what_stands_in_a_fact_is_text(page: Page) -> None:
    page.facts.create("User likes <script>alert(1)</script>\nand a second line", "context", 0.9)
    text = await page.get("facts", whole=True)
    assert "<script>alert" not in text
    assert shown(text) == ["User likes <script>alert(1)</script>\nand a second line"]


async def test_no_inline_script_runs_and_nobody_may_frame_the_page(page: Page) -> None:
    answer = await page.client.get("/page/facts")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "'unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"<script(?![^>]*\ssrc=)|\son[a-z]+=|style=", answer.text)


@pytest.mark.parametrize("whole", [False, True], ids=["htmx", "plain form"])
async def test_who_saves_what_was_changed_meanwhile_sees_both_texts_and_may_save_again(page: Page, whole: bool) -> None:
    fact = page.facts.create("Lives in Oslo", "knowledge", 0.9)
    shown_form = await page.get("fact-edit", id=fact.id)
    (seen,) = re.findall(r'name="revision" value="(\d+)"', shown_form)
    assert "changed meanwhile" not in shown_form
    page.facts.update(fact.id, content="Lives in Bergen")

    mine = {"id": fact.id, "content": "Lives in <Oslo>", "category": "context", "revision": seen}
    form = await page.post("fact-save", whole=whole, **mine)

    assert "This was changed meanwhile. It says now: “Lives in Bergen”" in form
    assert "Lives in &lt;Oslo&gt;</textarea>" in form
    assert "<option selected>context</option>" in form
    assert page.facts.get(fact.id).content == "Lives in Bergen"
    (now,) = re.findall(r'name="revision" value="(\d+)"', form)
    await page.post("fact-save", whole=whole, **{**mine, "revision": now})
    assert page.facts.get(fact.id).content == "Lives in <Oslo>"


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
    answer = await page.client.post("/page/fact-add", data={"content": " ", "category": "preference"}, headers=HTMX)
    assert (answer.status_code, answer.headers["hx-retarget"]) == (422, "#said")
    assert "content" in answer.text.casefold()
    await page.post("fact-add", status=422, content="x", category="unheard of")
    await page.post("fact-save", status=404, id="fact_00000000", content="x")
    await page.post("facts-delete", status=422, id="fact_00000000", row="yes")
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
    async with app.user(None) as nobody, app.user("ada", Authorization="Bearer x", **HTMX) as ada:
        page = await nobody.get("/page/facts")
        assert page.status_code == 200
        assert "data-login" in page.text
        assert "figs" not in page.text
        assert (await nobody.get("/static/page.css")).status_code == 200
        for name in ("facts", "fact-history?id=x", "source?thread=t"):
            part = await nobody.get(f"/page/{name}", headers=HTMX)
            assert part.status_code == 401, name
            assert "figs" not in part.text
        posted = await nobody.post("/page/facts-list", data={"text": "figs"})
        assert (posted.status_code, "Likes" in posted.text) == (401, False)
        assert "Likes figs" in (await ada.get("/page/facts")).text


async def test_links_are_relative_so_that_the_page_works_below_any_prefix(page: Page) -> None:
    text = await page.get("facts", whole=True)
    links = re.findall(r'(?:href|src|action|formaction|hx-get|hx-post)="([^"]*)"', text)
    assert len(links) > 10
    assert not [link for link in links if link.startswith("/") or "://" in link]


async def test_our_own_code_for_browsers_is_small() -> None:
    own = {name: asset for name, asset in assets().items() if name.startswith(("page.", "icon."))}
    assert {"page.css", "page.js", "icon.svg"} <= own.keys()
    assert sum(len(asset.body) for asset in own.values()) < 100_000
