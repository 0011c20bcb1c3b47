"""A user's budget of a day: when a day begins, what processes note together, and what waits for tomorrow."""

import asyncio
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.config import MemoryConfig
from memory.namespaces import Owner
from memory.updates.budget import day_at
from tests.laws.talk import Failing, Talk

DAY = 86_400.0


def test_the_day_begins_at_midnight_in_the_deployments_time_zone() -> None:
    oslo = MemoryConfig(time_zone="Europe/Oslo")
    late = datetime(2026, 3, 28, 23, 30, tzinfo=ZoneInfo("Europe/Oslo"))
    day, ends = day_at(late.timestamp(), oslo)
    assert (day, ends - late.timestamp()) == ("2026-03-28", 1800)
    # The day on which the clocks go forward has 23 hours.
    assert day_at(ends, oslo)[1] - ends == 23 * 3600


@given(st.floats(1.0e9, 3.0e9), st.sampled_from(["UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia"]))
def test_the_next_day_is_another_one_and_comes_within_25_hours(now: float, zone: str) -> None:
    config = MemoryConfig(time_zone=zone)
    day, ends = day_at(now, config)
    assert now < ends <= now + 25 * 3600 + 1
    assert day_at(ends, config)[0] > day


async def test_while_the_store_is_away_a_summary_asks_it_for_no_budget(caplog: pytest.LogCaptureFixture) -> None:
    talk = Talk(store=Failing(), memory={"budget_calls": 1})
    talk.store.fails = True
    talk.service.stores.doubt(talk.store, "write")
    async with asyncio.timeout(30):
        while not talk.service.stores.any_away():  # noqa: ASYNC110 (what ends it is in the library)
            await asyncio.sleep(0.01)
    model = talk.service.summary_model(lambda: (talk.store, Owner.of("ada", "default")), lambda: talk.summaries)
    assert await model.ainvoke("Hello.")
    assert await asyncio.to_thread(model.invoke, "Hello.")
    assert "what was used of a budget is not known" not in caplog.text
