"""What waits for a person, on the page and in the memory API: yes, other words, no, taken back; what is asked about."""

import html
import re
from typing import Any

import httpx
import pytest

from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.effects import StoreEffects, arun
from memory.facts.changes import Change, Extraction
from memory.facts.fact import timestamp
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.outbox.receipts import UpdateReceipt, receipt_put
from tests.memory_app import MemoryApp

pytest.importorskip("jinja2")

HTMX = {"HX-Request": "true"}
ASTHMA = "User has asthma"


class Page:
    """The page and the memory API in process, for one user."""

    def __init__(self, **memory: Any) -> None:
        self.app = MemoryApp(Settings(single_user=True, memory=MemoryConfig(**memory)))
        self.facts = FactStore(self.app.store, "local", config=MemoryConfig(**memory), clock=self.app.clock)
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app.app), base_url="http://testserver/memory", follow_redirects=True
        )

    async def get(self, path: str, *, whole: bool = False) -> str:
        answer = await self.client.get(f"/page/{path}", headers={} if whole else HTMX)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def post(self, path: str, *, whole: bool = False, status: int = 200, **form: Any) -> str:
        answer = await self.client.post(f"/page/{path}", data=form, headers={} if whole else HTMX)
        assert answer.status_code == status, answer.text
        return answer.text

    def waits(self) -> list[str]:
        return [fact.content for fact in self.facts.list("waiting")]

    def used(self) -> list[str]:
        return [fact.content for fact in self.facts.snapshot().facts]


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.mark.parametrize("whole", [False, True], ids=["htmx", "plain form"])
async def test_yes_in_other_words(page: Page, whole: bool) -> None:
    fact = page.facts.propose(ASTHMA, "knowledge", 0.9, source="conversation")
    text = await page.get("updates", whole=whole)
    assert ASTHMA in text
    assert "in 1 month" in text or "in 30 days" in text
    await page.post("held-yes", whole=whole, id=fact.id, content="User carries an inhaler")
    assert (page.used(), page.waits()) == (["User carries an inhaler"], [])


@pytest.mark.parametrize("whole", [False, True], ids=["htmx", "plain form"])
async def test_no_and_its_undo(page: Page, whole: bool) -> None:
    fact = page.facts.propose(ASTHMA, "knowledge", 0.9)
    text = await page.post("held-no", whole=whole, id=fact.id)
    assert (page.used(), page.waits()) == ([], [])
    if not whole:
        offered = re.search(r'name="fact" value="([^"]*)"', text)
        assert offered is not None
        await page.post("held-again", fact=html.unescape(offered[1]))
        assert (page.used(), page.waits()) == ([], [ASTHMA])


async def test_no_undo_makes_a_yes_of_what_a_form_says(page: Page) -> None:
    said = '{"content": "User has asthma", "category": "knowledge", "confidence": 0.9, "status": "active"}'
    await page.post("held-again", fact=said)
    assert (page.used(), page.waits()) == ([], [ASTHMA])
    for wrong in ("[1]", "no json", '{"content": ""}'):
        await page.post("held-again", fact=wrong, status=422)


async def test_what_is_decided_already_says_so(page: Page) -> None:
    fact = page.facts.create("Likes figs", "preference", 0.9)
    await page.post("held-no", id=fact.id, status=409)
    await page.post("held-yes", id="fact_00000000", status=404)
    await page.post("held-no-all", status=409)


async def test_two_hundred_wait_and_one_word_answers_all(page: Page) -> None:
    for number in range(200):
        page.facts.propose(f"User took {number} mg of a medicine called M{number}x", "knowledge", 0.9)
    text = await page.get("updates")
    assert text.count('class="held"') == 200
    assert "No to all 200" in text
    await page.post("held-no-all")
    assert page.waits() == []


async def test_the_page_chooses_what_is_asked_about(page: Page) -> None:
    await page.client.post("/page/approval-save", data={"topic": ["health", "money", "nonsense"]}, headers=HTMX)
    answer = await page.client.get("/approval")
    assert answer.json() == {"topics": ["health", "money"], "always": [], "days": 30, "most": 200, "waiting": 0}
    await page.post("approval-save")
    assert (await page.client.get("/approval")).json()["topics"] == []


async def test_what_the_server_always_asks_about_cannot_be_switched_off() -> None:
    page = Page(approval=frozenset({"people"}))
    await page.post("approval-save")
    assert (await page.client.get("/approval")).json()["always"] == ["people"]
    assert re.search(r'value="people" checked disabled', await page.get("held"))


async def test_the_api_chooses_and_decides(page: Page) -> None:
    answer = await page.client.put("/approval", json={"topics": ["health"]})
    assert answer.json()["topics"] == ["health"]
    wrong = await page.client.put("/approval", json={"topics": ["weather"]})
    assert (wrong.status_code, "topics" in wrong.text) == (422, True)
    fact = page.facts.propose(ASTHMA, "knowledge", 0.9)
    assert (await page.client.get("/overview")).json()["waiting"] == 1
    done = await page.client.patch(f"/facts/{fact.id}", json={"status": "active", "content": "User has mild asthma"})
    assert (done.status_code, page.used()) == (200, ["User has mild asthma"])
    assert ASTHMA not in [fact.content for fact in page.facts.history(fact.id)]


async def test_what_an_update_lets_wait_is_named_beside_the_chat_and_under_learned_last() -> None:
    page = Page(approval=frozenset({"health"}))
    change = Change(action="new", content=ASTHMA, confidence=0.9, sources=("m1",), said_at="2025-10-01T10:00:00+00:00")
    now = timestamp(page.app.clock())
    done = page.facts.apply(Extraction(changes=(change,)), thread_id="t", epoch="initial", now=now)
    receipt = UpdateReceipt(time=now, thread_id="t", waiting=done.waiting, epoch="initial")
    await arun(page.app.store, _written(receipt))
    text = await page.get("learned")
    assert "Waits for your yes" in text
    assert ASTHMA in text
    assert "Undo" not in text
    assert "waits for your yes" in await page.get("updates-list")


def _written(receipt: UpdateReceipt) -> StoreEffects[None]:
    yield [receipt_put(Owner.of("local"), "k", receipt)]
