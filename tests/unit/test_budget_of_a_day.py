"""A user's budget of a day: when a day begins, what processes note together, and what waits for tomorrow."""

from datetime import datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from memory.config import MemoryConfig
from memory.updates.budget import day_at

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
