"""A fact rests on words that were said: they stand in the message that it cites, or in the line that it replies to."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.extraction import extract_facts
from memory.facts.changes import Extraction
from memory.message import StoredMessage
from tests.extracting import found, reasons, said
from tests.fakes import RecordingModel


def taken(*facts: dict[str, Any], messages: list[StoredMessage], again: tuple[dict[str, Any], ...] = ()) -> Extraction:
    model = RecordingModel(replies=[json.dumps({"facts": facts}), json.dumps({"facts": again})])
    return extract_facts(model, messages)


def contents(extraction: Extraction) -> list[str]:
    return [change.content for change in extraction.changes]


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("Hi! I live in\nBergen, by the  water.", "i live in Bergen"),
        ("Ich wohne in Bergen", "Ich wohne in Bergen."),
        ("I\u2019m from \u201cBergen\u201d \u2013 **Norway**", "I'm from 'Bergen' - Norway"),
        ("OK \U0001f44d", "\U0001f44d"),
        ("I live, since May, in Bergen", "I live ... in Bergen"),
        ("私はベルゲンに住んでいます", "ベルゲンに住んでいます"),
    ],
)
def test_quoted_words_stand_in_their_message_case_and_space_aside(text: str, quote: str) -> None:
    extraction = taken(found("User lives in Bergen", message=1, quote=quote), messages=[said(text)])

    assert contents(extraction) == ["User lives in Bergen"]


def test_words_that_stand_nowhere_are_asked_for_once_more_and_then_dropped() -> None:
    messages = [said("I live in Bergen", name="m1"), said("I keep bees", name="m2")]
    wrong = found("User lives in Oslo", message=1, quote="I live in Oslo")
    bees = found("User keeps bees", message=2, quote="I keep bees")
    right = found("User lives in Bergen", message=1, quote="I live in Bergen")

    assert contents(taken(wrong, bees, messages=messages, again=(right,))) == [
        "User keeps bees",
        "User lives in Bergen",
    ]
    dropped = taken(wrong, bees, messages=messages, again=(wrong,))
    assert (contents(dropped), reasons(dropped)) == (["User keeps bees"], ["not_said"])
    assert contents(taken(wrong, bees, messages=messages)) == ["User keeps bees"]


def test_a_reply_may_rest_on_the_line_before_it_and_on_no_other_of_the_assistant() -> None:
    line = said("There are a climbing course and a swimming course.", role="assistant")
    fact = found("User takes the swimming course", message=1, quote="a swimming course")

    assert contents(taken(fact, messages=[line, said("The second one, please")])) == [fact["content"]]
    later = [line, said("Hm", seen=True), said("Take your time.", role="assistant"), said("The second one, please")]
    assert reasons(taken(fact, messages=later, again=(fact,))) == ["not_said"]


def test_what_the_assistant_told_somebody_else_is_no_ground() -> None:
    messages = [
        said("I live in Oslo", role="other"),
        said("You live in Oslo, then.", role="assistant"),
        said("Yes, and I keep bees"),
    ]
    fact = found("User lives in Oslo", message=1, quote="You live in Oslo")

    assert reasons(taken(fact, messages=messages, again=(fact,))) == ["not_said"]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("I pay 15,000 a month", "User pays 15000 a month"),
        ("Call +47 912 34 567", "User's number is +4791234567"),
        ("It leaves at 6:30", "User's train leaves at 6.30"),
        ("I quit coffee yesterday", "User quit coffee on 2026-05-07"),
        ("I was born on March 4th, 1990", "User was born on 1990-03-04"),
        ("We marry on the 12th of March", "User marries on 12 March 2027"),
        ("On 2010-05-08 I paid 15000", "User paid on 2010-05-08 15,000"),
        ("I quit coffee yesterday", "User quit coffee on \uff12\uff10\uff12\uff16-05-07"),
    ],
)
def test_digits_that_were_said_and_dates_near_the_message_are_kept(text: str, content: str) -> None:
    assert contents(taken(found(content, message=1, quote=text), messages=[said(text)])) == [content]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("I have some cats", "User has 3 cats"),
        ("I pay 15 a month", "User pays 15,000 a month"),
        ("My birthday is in March", "User was born on 1990-03-04"),
        ("I was born in March 1990", "User was born on 1990-03-04"),
        ("I live in Oslo", "User's postcode is 0150"),
    ],
)
def test_a_number_or_a_date_that_nobody_said_waits_for_a_person(text: str, content: str) -> None:
    extraction = taken(found(content, message=1, quote=text), messages=[said(text)])

    assert (contents(extraction), reasons(extraction)) == ([], ["unfounded"])


def test_a_section_is_lent_no_number_by_the_day_of_its_message() -> None:
    sections = [{"section": "personal", "text": f"User has {number} cats in Oslo."} for number in (5, 8)]
    for section in sections:
        model = RecordingModel(replies=[json.dumps({"facts": [], "profile": [section]})])
        extraction = extract_facts(model, [said("I have some cats in Oslo")])
        assert (extraction.profile, reasons(extraction)) == ((), ["not_said"])


@pytest.mark.parametrize(
    ("fields", "period"),
    [
        ({"valid_from": "2024", "valid_until": "2026-06"}, ("2024", "2026-06")),
        ({"valid_until": "2026-05-10"}, ("", "2026-05-10")),
        ({"valid_until": "2019"}, ("", "")),  # over when it was said: it stays true
        ({"valid_from": "2027", "valid_until": "2026-06"}, ("2027", "")),
        ({"valid_from": "soon", "valid_until": "2026-02-31"}, ("", "")),
        ({"valid_from": 7, "valid_until": None}, ("", "")),
    ],
)
def test_how_long_a_fact_holds_is_the_models_to_say_where_it_can_be(
    fields: dict[str, Any], period: tuple[str, str]
) -> None:
    (change,) = taken(found(message=1, quote="in Bergen", **fields), messages=[said("I live in Bergen")]).changes

    assert (change.valid_from, change.valid_to) == period


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_any_fact_and_any_quote_can_be_judged(content: str, quote: str, text: str) -> None:
    taken(found(content, message=1, quote=quote), messages=[said(f"I {text}")])
