import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.answer import ExtractionError, parse_answer
from memory.extraction.form import Answer, FoundFact

FACT = {"content": "Lives in Oslo", "category": "knowledge", "confidence": 0.9}
WHOLE = json.dumps({"facts": [FACT], "profile": []})


@pytest.mark.parametrize(
    "raw",
    [
        WHOLE,
        f"```json\n{WHOLE}\n```",
        f"Sure! Here is what I found:\n{WHOLE}\nAnything else?",
        f"<think>Maybe {{'facts': []}}? {{</think>{WHOLE}",
        f'<think>{{"facts": [{{"content": "a draft"}}, {{"content": "another"}}]}}</think>{WHOLE}',
        f"The draft is [{{}}]</think>{WHOLE}",
        f"The draft is [{{}}]\n</think>\n\n```json\n{WHOLE}\n```",
        f"I noticed {{something}} and [1]: {WHOLE}",
        json.dumps([FACT]),
        json.dumps(FACT),
        json.dumps({"newFacts": [FACT]}),
        json.dumps({"memories": [FACT], "profile": None}),
        WHOLE.replace("}]", "},]"),
        f'{{"facts": [{json.dumps(FACT)}, {{"content": "broken of',
        f'{{"facts": [{json.dumps({**FACT, "tags": []})}, {{"cont',
        json.dumps({"facts": [FACT], "facts_to_remove": None}),
        json.dumps({"facts": [{**FACT, "tags": "x"}]}).replace('"x"', r'"\(x\)"'),
    ],
)
def test_facts_are_read_from_all_that_models_write(raw: str) -> None:
    assert parse_answer(raw).facts == (FoundFact.of(FACT),)


@pytest.mark.parametrize(
    "raw", ["{}", "[]", '{"facts": []}', '{"facts": null}', '{"facts": {}, "profile": []}', '```json\n{"facts": []}```']
)
def test_an_answer_may_hold_nothing(raw: str) -> None:
    assert parse_answer(raw) == Answer()


@pytest.mark.parametrize("raw", ["", "Nothing to remember.", "{'facts': [{", "[1, 2]", "null", "{" * 100_000])
def test_what_holds_no_facts_is_an_error_that_carries_the_answer(raw: str) -> None:
    with pytest.raises(ExtractionError) as error:
        parse_answer(raw)

    assert error.value.raw == raw
    assert "Nothing" not in str(error.value)


def test_a_broken_fact_does_not_lose_those_around_it() -> None:
    raw = f'{{"facts": [{json.dumps(FACT)}, {{"content": "bad", "confidence": 0,9}}, {json.dumps(FACT)}]}}'

    assert parse_answer(raw).facts == (FoundFact.of(FACT),) * 2


@pytest.mark.parametrize(
    "profile",
    [
        {"work": "Nurse", "personal": 7},
        [{"section": "work", "text": "Nurse"}, {"section": "work"}, "work", {"section": 1, "text": "x"}],
    ],
)
def test_sections_of_the_profile_are_read_from_both_forms(profile: object) -> None:
    assert parse_answer(json.dumps({"facts": [], "profile": profile})).profile.get("work") == "Nurse"


def test_nesting_without_end_is_no_crash() -> None:
    assert parse_answer("[" * 50_000 + WHOLE).facts == (FoundFact.of(FACT),)


@given(st.text(), st.text())
def test_no_text_around_an_answer_makes_it_fail(before: str, after: str) -> None:
    try:
        parse_answer(before + WHOLE + after)
    except ExtractionError:
        assert "<think" in before.lower() or "{" in before or "[" in before or '"' in before


@given(st.text(alphabet='{}[]",:facts profile content0159.eE-\\', max_size=200))
def test_whatever_a_model_writes_is_an_answer_or_an_extraction_error(raw: str) -> None:
    try:
        answer = parse_answer(raw)
    except ExtractionError:
        return
    assert isinstance(answer, Answer)
