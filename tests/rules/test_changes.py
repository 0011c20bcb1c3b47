import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.config import CATEGORIES
from memory.facts.changes import ACTIONS, REASONS, Change, Extraction, Outcome, Refusal, Section, reasons

CHANGE = {"action": "new", "content": "", "category": "goal", "confidence": 1, "sources": []}

texts = st.text(max_size=20)
extractions = st.builds(
    Extraction,
    changes=st.lists(
        st.builds(
            Change,
            action=st.sampled_from(ACTIONS),
            content=texts,
            category=st.sampled_from(CATEGORIES),
            confidence=st.floats(0, 1),
            target=st.none() | texts,
            sources=st.lists(texts, max_size=3).map(tuple),
            said_at=texts,
        ),
        max_size=3,
    ).map(tuple),
    refused=st.lists(st.builds(Refusal, reason=st.sampled_from(REASONS), content=texts), max_size=3).map(tuple),
    profile=st.lists(st.builds(Section, name=texts, text=texts), max_size=2).map(tuple),
)


@given(extractions)
def test_an_extraction_comes_back_from_json_as_itself(extraction: Extraction) -> None:
    assert Extraction.from_json(json.loads(json.dumps(extraction.to_json()))) == extraction


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"changes": None, "refused": []},
        {"changes": ["x"], "refused": []},
        {"changes": [{**CHANGE, "action": "delete"}], "refused": []},
        {"changes": [{**CHANGE, "category": "hobby"}], "refused": []},
        {"changes": [], "refused": [{"reason": "mood", "content": ""}]},
    ],
)
def test_what_is_no_extraction_is_a_value_error(value: Any) -> None:
    with pytest.raises(ValueError, match="must be"):
        Extraction.from_json(value)


def test_a_log_shows_reasons_and_numbers_only() -> None:
    refused = (Refusal(reason="secret"), Refusal(reason="duplicate", content="x"), Refusal(reason="secret"))

    assert reasons(refused) == {"duplicate": 1, "secret": 2}
    assert reasons(Outcome().refused) == {}
