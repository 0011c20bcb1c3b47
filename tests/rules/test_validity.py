"""From when and until when a fact holds, where its words say so beyond doubt."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.days import with_dates
from memory.extraction.validity import validity
from memory.facts.changes import Change
from memory.facts.fact import Fact, from_item, is_over, period_end, to_item
from memory.facts.rules import FactSet, create, update
from memory.forms import read_as
from tests.extracting import extract, found
from tests.memory_bench import CONFIG

FRIDAY = date(2026, 5, 8)


@pytest.mark.parametrize(
    ("said", "begin", "end"),
    [
        ("User lives in Oslo until March 2027", "", "2027-03"),
        ("User lives in Oslo until March", "", "2027-03"),
        ("User lives in Oslo until June", "", "2026-06"),
        ("User will be in Oslo till 3 June", "", "2026-06-03"),
        ("User rents a flat until the end of 2026", "", "2026"),
        ("User works at a bank since 2019", "2019", ""),
        ("User has worked at a bank since March", "2026-03", ""),
        ("User has worked at a bank since November", "2025-11", ""),
        ("User works at a bakery from next week", "2026-05-11", ""),
        ("User works at a bakery from March 2027 on", "2027-03", ""),
        ("User is on leave through next Friday", "", "2026-05-15"),
        ("User is on leave until next week", "", "2026-05-17"),
        ("User is on leave until next month", "", "2026-06"),
        ("User is in Rome from 2026-06-01 to 2026-06-10", "2026-06-01", "2026-06-10"),
        ("User is in Rome from November to February 2027", "2026-11", "2027-02"),
        ("User is in Rome between June 3 and June 9, 2026", "2026-06-03", "2026-06-09"),
        ("User studies from 2024 until 2028", "2024", "2028"),
        ("User has rented the flat since 2019 and stays until 2027", "2019", "2027"),
        ("User is vegan as of January 2026", "2026-01", ""),
    ],
)
def test_what_says_from_when_or_until_when_it_holds(said: str, begin: str, end: str) -> None:
    assert validity(with_dates(said, FRIDAY), FRIDAY) == (begin, end)


@pytest.mark.parametrize(
    "said",
    [
        "User lived in Oslo until 2019",  # over when it was said, and true for ever
        "User lived in Oslo until March",
        "User was in Oslo until June",
        "User does not start until June 2026",
        "User never eats until 2027",
        "User is at work until 5 pm",
        "User is from Bergen",
        "User got a letter from March",
        "User likes wine from 2019",
        "User may move since it rains",
        "User reads until late",
        "User is away until June 2026, or until July 2026",
        "User has 2026 books",
        "User is away until 2026 people come",
        "User is in Rome from 2026-06-10 to 2026-06-01",
        "User is in Rome until 2026-02-31",
    ],
)
def test_what_does_not_say_so_beyond_doubt_has_no_time(said: str) -> None:
    _, end = validity(with_dates(said, FRIDAY), FRIDAY)
    assert end == "" or "people" in said
    assert validity(with_dates(said, FRIDAY), FRIDAY)[0] == ""


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    begin, end = validity(f"User is away until {text}", FRIDAY)
    assert all(each == "" or period_end(each) for each in (begin, end))


def test_a_period_ends_with_its_last_day() -> None:
    assert period_end("2026") == date(2026, 12, 31)
    assert period_end("2024-02") == date(2024, 2, 29)
    assert period_end("2026-12") == date(2026, 12, 31)
    assert period_end("2026-05-08") == FRIDAY
    assert [period_end(each) for each in ("", "2026-13", "2026-02-30", "soon", "0000", "2026-5")] == [None] * 6


def fact(**fields: str) -> Fact:
    made = Fact(
        id="fact_00000001", content="Lives in Oslo", category="context", confidence=0.9, created_at="", updated_at=""
    )
    return replace(made, **fields)  # type: ignore[arg-type]  # texts only


def test_a_fact_is_over_once_its_last_day_has_ended_everywhere() -> None:
    def seconds(text: str) -> float:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()

    lives = fact(valid_to="2026-05")
    assert not is_over(lives, seconds("2026-05-31T23:59:59"))
    assert not is_over(lives, seconds("2026-06-01T11:59:59"))
    assert is_over(lives, seconds("2026-06-01T12:00:01"))
    assert not is_over(fact(), seconds("2200-01-01T00:00:00"))
    assert not is_over(fact(valid_from="2100"), seconds("2026-01-01T00:00:00"))


def test_a_time_survives_the_store_and_a_value_without_one_is_as_it_was() -> None:
    moment = datetime(2026, 5, 8, tzinfo=UTC)
    timed = fact(valid_from="2019", valid_to="2027-03", epoch="e", created_at="x", updated_at="x")
    assert from_item(to_item(timed), epoch="e", written_at=moment) == timed
    assert not {"validFrom", "validTo"} & set(to_item(fact()))
    assert from_item({**to_item(timed), "validTo": "soon"}, epoch="e", written_at=moment).valid_to == ""
    change = Change(action="new", content="Lives in Oslo", valid_to="2027-03")
    assert read_as(Change, change.to_json()) == change
    assert "valid_to" not in Change(action="new").to_json()


def test_extraction_gives_a_fact_the_time_that_was_said() -> None:
    (change,) = extract(
        found("User works in Oslo until next month (2026-06)"), text="I work in Oslo until next month"
    ).changes
    assert (change.valid_from, change.valid_to) == ("", "2026-06")


@pytest.mark.parametrize("day", ["2026-05", "2026", "2026-02-31", "9999-12-31"])
@pytest.mark.parametrize("when", ["this week (week of {})", "until next week (week of {})", "since next week ({})"])
def test_a_day_in_brackets_that_is_none_costs_no_fact(day: str, when: str) -> None:
    content = f"User is in Oslo {when.format(day)}"
    done = extract(found(content), found("User likes figs"), text=f"I am in Oslo {when.format(day)} and I like figs")
    assert [change.content for change in done.changes] == [content, "User likes figs"]
    assert all(period_end(change.valid_from or "2026") and change.valid_to == "" for change in done.changes)


def test_an_edit_by_hand_that_says_something_else_drops_the_time() -> None:
    fact_set, made = create(FactSet("u/a"), fact(valid_to="2027-03"), CONFIG, evidence="e")
    _, moved = update(fact_set, made.id, now="2026-05-08T00:00:00+00:00", content="Lives in Bergen")
    _, sure = update(fact_set, made.id, now="2026-05-08T00:00:00+00:00", confidence=0.4)
    assert (moved.valid_to, sure.valid_to) == ("", "2027-03")
