"""Where the user is: who says so, and what it changes. A day there begins at their midnight, not at that of UTC."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore

from memory.control import change_control
from memory.door import run
from memory.journal.journal import read_journal
from memory.namespaces import Owner
from memory.updates.conversation import ConversationContext
from memory.updates.updater import MemoryUpdater
from tests.fakes import RecordingModel

ADA = Owner.of("ada", "default")
AUCKLAND = "Pacific/Auckland"


def seconds(time: str) -> float:
    return datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize("wrong", ["Middle/Earth", "", "../etc/passwd", "a" * 65, 13, ["UTC"]])
async def test_a_time_zone_that_there_is_not_is_refused_by_its_field(ada: httpx.AsyncClient, wrong: Any) -> None:
    answer = await ada.put("/time_zone", json={"time_zone": wrong})
    assert answer.status_code == 422
    assert "time_zone" in answer.text
    assert (await ada.get("/overview")).json()["time_zone"] is None


@pytest.mark.parametrize("never", ["0001-01-01T00:30:00Z", "9999-12-31T23:30:00Z"])
async def test_a_time_that_means_never_is_taken_in_whatever_the_zone(ada: httpx.AsyncClient, never: str) -> None:
    token = (await ada.put("/sources/chats", json={"origin": "jsonl"})).json()["token"]
    for zone in ("America/New_York", AUCKLAND):
        await ada.put("/time_zone", json={"time_zone": zone})
        said = {"id": zone, "role": "user", "text": f"I live in {zone}.", "time": never}
        talk = {"origin": "jsonl", "id": zone, "messages": [said]}
        answer = await ada.post("/sources/chats/conversations", json={"token": token, "conversations": [talk]})
        assert answer.json()["journal"] == 1
    assert [each["day"] for each in (await ada.get("/journal")).json()["entries"]] == [never[:10]] * 2


# New Zealand is 12 hours ahead of UTC, and 13 from 2026-09-27, 02:00, on.
@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("2026-09-26T11:59", "2026-09-26"),
        ("2026-09-26T12:00", "2026-09-27"),
        ("2026-09-27T10:59", "2026-09-27"),
        ("2026-09-27T11:00", "2026-09-28"),
        ("2026-12-31T11:30", "2027-01-01"),
    ],
)
def test_the_journal_has_the_days_of_the_user(written: str, day: str) -> None:
    store = InMemoryStore()
    run(store, change_control(ADA, time_zone=AUCKLAND))
    model = RecordingModel(respond=lambda _: '{"facts": []}')
    updater = MemoryUpdater(store, lambda _: model, clock=lambda: seconds(written))
    said = [HumanMessage("I moved here yesterday.", id="1")]
    assert updater.process(ConversationContext("T", "ada", messages=said, kind="cut")) is None
    (entry,) = run(store, read_journal(ADA))
    assert entry.day == day
    assert f" {day}: I moved here yesterday" in model.prompts[0][1].text
