from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.local.notes.days import with_dates

FRIDAY = date(2026, 5, 8)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("See you next Friday!", "See you next Friday (2026-05-15)!"),
        ("last Friday", "last Friday (2026-05-01)"),
        ("Reads on Monday mornings, ran on Friday", "Reads on Monday mornings, ran on Friday"),
        ("last week's recap and this year\u2019s plans", "last week's recap and this year\u2019s plans"),
        ("Yesterday I ran", "Yesterday (2026-05-07) I ran"),
        ("tomorrow, or the day after tomorrow", "tomorrow (2026-05-09), or the day after tomorrow (2026-05-10)"),
        ("two weeks ago", "two weeks ago (2026-04-24)"),
        ("3 days ago", "3 days ago (2026-05-05)"),
        ("in a week", "in a week (2026-05-15)"),
        ("more than in a day", "more than in a day"),
        ("last week", "last week (week of 2026-04-27)"),
        ("this weekend", "this weekend (weekend of 2026-05-09)"),
        ("last month", "last month (2026-04)"),
        ("next year", "next year (2027)"),
        ("I love Fridays and week plans", "I love Fridays and week plans"),
        ("yesterday (2026-05-07)", "yesterday (2026-05-07)"),
    ],
)
def test_what_is_relative_gets_the_day_it_means(said: str, meant: str) -> None:
    assert with_dates(said, FRIDAY) == meant


def test_months_reach_over_years() -> None:
    assert with_dates("last month", date(2026, 1, 31)) == "last month (2025-12)"
    assert with_dates("next month", date(2025, 12, 1)) == "next month (2026-01)"


@given(st.dates(date(1990, 1, 1), date(2090, 1, 1)), st.sampled_from(["last", "next", "this"]), st.integers(0, 6))
def test_a_weekday_is_always_that_weekday(said: date, which: str, weekday: int) -> None:
    names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

    meant = date.fromisoformat(with_dates(f"{which} {names[weekday]}", said).partition("(")[2].rstrip(")"))

    assert meant.weekday() == weekday
    assert {"last": meant < said, "this": said <= meant, "next": said < meant}[which]


@given(st.text(max_size=80))
def test_any_text_can_be_dated(text: str) -> None:
    assert with_dates(text, FRIDAY).startswith(text[:1])
