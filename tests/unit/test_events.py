"""The payloads of memory's own events: versioned, closed, documented."""

import json

import pytest
from pydantic import ValidationError

from graphs.process.events import MEMORY_EVENTS, MemoryQueued, MemoryUpdated, RefusedFacts, memory_event_schemas


def test_S5_every_memory_event_has_a_name_a_version_and_a_schema() -> None:
    schemas = memory_event_schemas()
    assert list(schemas) == [
        "memory.injected",
        "memory.summarized",
        "memory.left_out",
        "memory.queued",
        "memory.updated",
    ]
    for event in MEMORY_EVENTS:
        schema = json.loads(json.dumps(schemas[event.name]))
        assert schema["properties"]["v"]["const"] == 1
        assert schema["additionalProperties"] is False


def test_S5_a_payload_is_plain_json_and_comes_back() -> None:
    event = MemoryUpdated(
        created=("fact_00000001",),
        confirmed=(),
        superseded=(),
        refused=(RefusedFacts(reason="low confidence", n=2),),
        messages=("m1", "m2"),
    )
    payload = json.loads(json.dumps(event.model_dump(mode="json")))
    assert payload["v"] == 1
    assert payload["refused"] == [{"reason": "low confidence", "n": 2}]
    assert MemoryUpdated.model_validate(payload) == event


def test_S5_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="text"):
        MemoryQueued.model_validate({"entry": "e", "due": "now", "text": "secret"})
