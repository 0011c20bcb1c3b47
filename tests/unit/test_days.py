from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.local.notes.days import with_dates
from memory.extraction.days import leading_stamp, stamped_day

FRIDAY = date(2026, 5, 8)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("See you next Friday!", "See you next Friday (2026-05-15)!"),
        ("next monday", "next monday (2026-05-11)"),
        ("last Friday", "last Friday (2026-05-01)"),
        ("last Thursday", "last Thursday (2026-05-07)"),
        ("this Saturday", "this Saturday (2026-05-09)"),
        ("Reads on Monday mornings, ran on Friday", "Reads on Monday mornings, ran on Friday"),
        ("last week's recap and this year\u2019s plans", "last week's recap and this year\u2019s plans"),
        ("this Friday", "this Friday (2026-05-08)"),
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


@pytest.mark.parametrize("stamp", ["[0001-01-01] ", "(31 December 9999) ", "[1899-12-31]", "(1 Jan 2101)"])
def test_a_year_that_no_chat_was_in_is_no_stamp(stamp: str) -> None:
    assert leading_stamp(f"{stamp} I met Ann yesterday, see her tomorrow") == ""


@pytest.mark.parametrize(
    "stamp",
    [
        "(1:56 pm on 8 May, 2026)",
        "[2026-05-08]",
        "[2026-05-08, 13:56]",
        "[2026-05-08T13:56:01Z]",
        "(8 May 2026)",
        "(Friday, 8th May 2026, 13:56)",
        "[May 8, 2026 at 1:56 PM]",
        "(8 may 2026)",
    ],
)
def test_a_date_that_a_text_begins_with_is_its_own(stamp: str) -> None:
    assert leading_stamp(f"  {stamp} I ran yesterday.") == stamp
    assert stamped_day(stamp) == FRIDAY


@pytest.mark.parametrize(
    "text",
    [
        "I ran yesterday.",
        "8 May 2026 was fun.",
        "On (8 May 2026) I ran.",
        "(8/5/2026) I ran.",
        "(31 June 2026) I ran.",
        "(2026-13-01) I ran.",
        "(8 May 2026) Ran yesterday. (9 May 2026) Rested.",
        "(May 2026) I ran.",
        "(the 8 May 2026 edition) I ran.",
    ],
)
def test_a_text_that_does_not_clearly_begin_with_one_date_has_none(text: str) -> None:
    assert leading_stamp(text) == ""


@pytest.mark.parametrize(
    "beginning", ["(1:56", "(1:56 pm on", "(8 May 2026", "(8 May", "[2026-05-08,", "(Friday,", "("]
)
def test_a_run_of_spaces_takes_no_time(beginning: str) -> None:
    assert leading_stamp(beginning + " " * 200_000 + "x") == ""
