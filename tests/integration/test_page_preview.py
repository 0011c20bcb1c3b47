"""The preview on the API and the page: what a new conversation would be shown of memory."""

import httpx
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.context.tokens import count_tokens, shared_counter, shared_tokenizer
from memory.door import arun
from memory.facts.store import FactStore
from memory.journal.entry import JournalEntry
from memory.journal.journal import append
from memory.message import StoredMessage
from memory.namespaces import Owner
from tests.fact_sets import propose
from tests.fakes import Clock, RecordingModel
from tests.memory_app import MemoryApp
from tests.page_client import Page

pytest.importorskip("jinja2")

ME = Owner.of("local")


@pytest.fixture
def page() -> Page:
    return Page()


async def test_a_preview_tells_of_past_conversations_and_of_nothing_that_waits(page: Page) -> None:
    propose(page.facts, "User has asthma")
    text = "The harbour festival in Bergen was lovely."
    message = StoredMessage("m1", "user", text, "2025-10-01T10:00:00+00:00")
    entry = JournalEntry("2025-10-01", "t", (message,))
    await arun(page.app.store, append(ME, [entry]))
    seen = (await page.client.post("/preview", json={"message": "How was the harbour festival? And my asthma?"})).json()
    assert "asthma" not in seen["block"] + seen["recalled"]
    assert text in seen["recalled"]


async def test_a_preview_counts_exactly_from_the_first_one_on(page: Page, caplog: pytest.LogCaptureFixture) -> None:
    page.learns("User is allergic to peanuts", "User plays the cello")
    shared_tokenizer.cache_clear()  # as in a process that has counted nothing yet
    shared_counter.cache_clear()
    seen = (await page.client.post("/preview", json={"message": "What should I cook?"})).json()
    assert seen["tokens"] == count_tokens(seen["block"]) + count_tokens(seen["recalled"])
    assert "estimated" not in caplog.text


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
