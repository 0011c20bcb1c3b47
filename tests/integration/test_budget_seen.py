"""What a person sees of a budget that is used up, and how they give a fact its last day: API and command line."""

from pathlib import Path

import pytest

from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.door import run
from memory.updates.budget import spend
from tests.command_line import AsAda, Typed
from tests.memory_app import ADA, MemoryApp, add

DAY = 86_400.0
CONFIG = MemoryConfig(budget_calls=3, time_zone="Europe/Oslo")


def used(app: MemoryApp, calls: int) -> None:
    """Let a process use so many calls."""
    for _ in range(calls):
        run(app.store, spend(ADA, CONFIG, app.clock()))


async def test_the_overview_says_what_is_used_and_when_it_goes_on() -> None:
    app = MemoryApp(Settings(memory=CONFIG))
    async with app.user("ada") as ada, app.user("bob") as bob:
        used(app, 1)
        budget = (await ada.get("/overview")).json()["budget"]
        assert (budget["calls"], budget["max_calls"]) == (1, 3)
        assert budget["used_up"] is False
        used(app, 2)
        budget = (await ada.get("/overview")).json()["budget"]
        assert (budget["calls"], budget["used_up"]) == (3, True)
        assert budget["until"] == "2025-10-09T22:00:00+00:00", "midnight in Oslo"
        assert (await bob.get("/overview")).json()["budget"]["calls"] == 0
        app.clock.advance(DAY)
        assert (await ada.get("/overview")).json()["budget"]["calls"] == 0


async def test_the_last_day_of_a_fact_is_set_changed_and_taken_back_by_request() -> None:
    async with MemoryApp().user("ada") as ada:
        fact = await add(ada, "Is in Paris", "context", expires_at="2026-12")
        assert fact["valid_to"] == "2026-12"
        path = f"/facts/{fact['id']}"
        assert (await ada.patch(path, json={"expires_at": "2027"})).json()["valid_to"] == "2027"
        assert (await ada.patch(path, json={"pinned": True})).json()["valid_to"] == "2027"
        assert (await ada.patch(path, json={"expires_at": ""})).json()["valid_to"] == ""
        refused = await ada.patch(path, json={"expires_at": "Friday"})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["field"] == "expires_at"
        assert "2026-05-08" in refused.json()["detail"]


def test_the_command_line_gives_a_fact_its_last_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ada = Typed(AsAda(MemoryApp().app), {"PALIMPSEST_TOKEN": "ada"})
    fact = ada.json("facts", "add", "Is in Paris", "--expires", "2026-12-31")
    assert fact["valid_to"] == "2026-12-31"
    assert ada.json("facts", "edit", fact["id"], "--expires", "")["valid_to"] == ""
    assert "expires_at: must be a day" in ada.refused("facts", "edit", fact["id"], "--expires", "soon")
