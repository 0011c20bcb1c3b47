"""The check-up and the preview on the API and the page: each finding has a remedy, which is undone or asked for."""

import html
import re
from typing import Any

import httpx
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.effects import arun
from memory.facts.store import FactStore
from memory.journal.entry import JournalEntry
from memory.journal.journal import append
from memory.message import StoredMessage
from memory.namespaces import Owner
from tests.fakes import Clock, RecordingModel
from tests.memory_app import MemoryApp

pytest.importorskip("jinja2")

HTMX = {"HX-Request": "true"}
ME = Owner.of("local")


class Page:
    """The page and the memory API in process, for one user."""

    def __init__(self) -> None:
        self.app = MemoryApp(Settings(single_user=True))
        self.facts = FactStore(self.app.store, "local", clock=self.app.clock)
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app.app), base_url="http://testserver/memory", follow_redirects=True
        )

    async def get(self, path: str, *, whole: bool = False) -> str:
        answer = await self.client.get(f"/page/{path}", headers={} if whole else HTMX)
        assert answer.status_code == 200, answer.text
        return html.unescape(answer.text)

    async def post(self, path: str, *, whole: bool = False, status: int = 200, **form: Any) -> str:
        answer = await self.client.post(f"/page/{path}", data=form, headers={} if whole else HTMX)
        assert answer.status_code == status, answer.text
        return html.unescape(answer.text)

    async def kinds(self) -> list[str]:
        return [each["kind"] for each in (await self.client.get("/checkup")).json()["findings"]]

    def says(self) -> list[str]:
        return sorted(fact.content for fact in self.facts.list())

    def learns(self, *contents: str) -> list[str]:
        ids = []
        for content in contents:
            ids.append(self.facts.create(content, "knowledge", 0.9).id)
            self.app.clock.advance(60)
        return ids


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.mark.parametrize("whole", [False, True], ids=["htmx", "plain form"])
async def test_of_a_contradiction_one_is_kept_and_undo_brings_the_others_back(page: Page, whole: bool) -> None:
    oslo, bergen = page.learns("User lives in Oslo", "User lives in Bergen")
    assert await page.kinds() == ["contradiction"]
    assert "cannot all be true" in await page.get("checkup", whole=whole)
    text = await page.post("checkup-keep", whole=whole, id=bergen, other=oslo)
    assert (page.says(), await page.kinds()) == (["User lives in Bergen"], [])
    at = re.search(r'name="at" value="([^"]+)"', text)
    assert at is not None
    await page.post("checkup-undo", whole=whole, at=at[1])
    assert page.says() == ["User lives in Bergen", "User lives in Oslo"]


async def test_a_stale_fact_is_still_true_or_goes(page: Page) -> None:
    figs, boat = page.learns("User likes figs", "User has a boat")
    page.app.clock.advance(200 * 86_400)
    assert await page.kinds() == ["stale", "stale"]
    await page.post("checkup-confirm", id=figs)
    assert page.facts.confirmations(figs).count == 1
    assert await page.kinds() == ["stale"]
    text = await page.post("checkup-delete", id=boat)
    assert "Undo" in text
    assert page.says() == ["User likes figs"]


async def test_a_secret_goes_for_good_and_only_after_it_was_asked_for(page: Page) -> None:
    (secret,) = page.learns("User likes figs")
    namespace = ME.namespace("facts")
    (item,) = page.app.store.search(namespace)
    page.app.store.put(namespace, item.key, {**item.value, "content": "The password of User is hunter2horse"})
    assert await page.kinds() == ["secret"]
    # Without htmx nothing asks before the form is sent: so the page does.
    asked = await page.post("checkup-erase", whole=True, id=secret)
    assert "for good" in asked
    assert page.says() == ["The password of User is hunter2horse"]
    await page.post("checkup-erase", whole=True, id=secret, sure="yes")
    assert page.says() == []
    assert "hunter2horse" not in repr([each.value for each in page.app.store.search((), limit=1000)])


async def test_what_a_new_thread_would_see(page: Page) -> None:
    page.learns("User is allergic to peanuts", "User plays the cello")
    answer = await page.client.post("/preview", json={"message": "What should I cook?"})
    seen = answer.json()
    assert "- [knowledge | 0.90] User is allergic to peanuts" in seen["block"]
    assert 0 < seen["tokens"] <= seen["budget"]
    assert "User is allergic to peanuts" in await page.post("checkup-preview", message="What should I cook?")
    await page.client.put("/use", json={"use": False})
    assert (await page.client.post("/preview", json={})).json()["used"] is False
    assert "not used" in await page.get("checkup")


async def test_a_preview_tells_of_past_conversations_and_of_nothing_that_waits(page: Page) -> None:
    page.facts.propose("User has asthma", "knowledge", 0.9)
    text = "The harbour festival in Bergen was lovely."
    message = StoredMessage("m1", "user", text, "2025-10-01T10:00:00+00:00")
    entry = JournalEntry("2025-10-01", "t", (message,), "initial")
    await arun(page.app.store, append(ME, [entry]))
    seen = (await page.client.post("/preview", json={"message": "How was the harbour festival? And my asthma?"})).json()
    assert "asthma" not in seen["block"] + seen["recalled"]
    assert text in seen["recalled"]


async def test_bad_input_names_its_field(page: Page) -> None:
    wrong = await page.client.post("/preview", json={"message": ""})
    assert (wrong.status_code, "message" in wrong.text) == (422, True)
    await page.post("checkup-confirm", id="fact_00000000", status=404)
    await page.post("checkup-keep", id="fact_00000000", other="fact_00000001", status=404)


async def test_a_preview_is_word_for_word_what_the_graph_shows_a_new_thread() -> None:
    clock, store, model = Clock(), InMemoryStore(), RecordingModel(respond=lambda _: "Noted.")
    settings = Settings(single_user=True, memory=MemoryConfig(debounce_seconds=3600))
    service = MemoryService(settings, lambda *_: model, clock=clock)
    graph = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=store)
    facts = FactStore(store, "local", clock=clock)
    for content in ("User is allergic to peanuts", "User plays the cello", "User prefers short answers"):
        facts.create(content, "preference", 0.9)
    app = MemoryApp(settings, store=store, clock=clock)
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app.app), base_url="http://testserver/memory")
    seen = (await client.post("/preview", json={"message": "What should I cook?"})).json()
    await graph.ainvoke({"messages": [HumanMessage("What should I cook?")]}, {"configurable": {"thread_id": "new"}})
    prompt = "\n".join(message.text for message in model.prompts[-1])
    assert seen["block"]
    assert seen["block"] in prompt
    assert prompt.count("<memory>") == 1
