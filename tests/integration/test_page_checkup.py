"""The check-up and the preview on the API and the page: each finding has a remedy, which is undone or asked for."""

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
from tests.page_client import Page, field

pytest.importorskip("jinja2")

ME = Owner.of("local")


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
    await page.post("checkup-undo", whole=whole, at=field(text, "at"))
    assert sorted(page.says()) == ["User lives in Bergen", "User lives in Oslo"]


@pytest.mark.parametrize("whole", [False, True], ids=["htmx", "plain form"])
async def test_repeats_are_merged_into_one_and_undo_parts_them(page: Page, whole: bool) -> None:
    cello, big = page.learns("User plays the cello in a choir", "User plays the cello in a big choir")
    assert await page.kinds() == ["repeat"]
    assert "takes over" in await page.get("checkup", whole=whole)
    text = await page.post("checkup-merge", whole=whole, id=big, other=cello)
    assert "Merged into one" in text
    assert (page.says(), await page.kinds()) == (["User plays the cello in a big choir"], [])
    assert page.facts.confirmations(big).count == 1
    await page.post("checkup-undo", whole=whole, at=field(text, "at"))
    assert len(page.says()) == 2
    assert page.facts.confirmations(big).count == 0
    await page.post("checkup-merge", id=big, status=422)
    await page.post("checkup-merge", id="fact_00000000", other=big, status=404)


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
    assert [fact.content for fact in page.facts.list("quarantined")] == ["The password of User is hunter2horse"]
    await page.post("checkup-erase", whole=True, id=secret, sure="yes")
    assert page.facts.list(None) == []
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
