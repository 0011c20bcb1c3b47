"""Where the user is: who says so, and what it changes. A day there begins at their midnight, not at that of UTC."""

from typing import Any

import httpx
import pytest


@pytest.mark.parametrize("wrong", ["Middle/Earth", "", "../etc/passwd", "a" * 65, 13, ["UTC"]])
async def test_a_time_zone_that_there_is_not_is_refused_by_its_field(ada: httpx.AsyncClient, wrong: Any) -> None:
    answer = await ada.put("/time_zone", json={"time_zone": wrong})
    assert answer.status_code == 422
    assert "time_zone" in answer.text
    assert (await ada.get("/overview")).json()["time_zone"] is None


@pytest.mark.parametrize("never", ["0001-01-01T00:30:00Z", "9999-12-31T23:30:00Z"])
async def test_a_time_that_means_never_is_taken_in_whatever_the_zone(ada: httpx.AsyncClient, never: str) -> None:
    token = (await ada.put("/sources/chats", json={"origin": "jsonl"})).json()["token"]
    for zone in ("America/New_York", "Pacific/Auckland"):
        await ada.put("/time_zone", json={"time_zone": zone})
        said = {"id": zone, "role": "user", "text": f"I live in {zone}.", "time": never}
        talk = {"origin": "jsonl", "id": zone, "messages": [said]}
        answer = await ada.post("/sources/chats/conversations", json={"token": token, "conversations": [talk]})
        assert answer.json()["journal"] == 1
    assert [each["day"] for each in (await ada.get("/journal")).json()["entries"]] == [never[:10]] * 2
