"""The payloads of memory's own events: versioned, closed, documented."""

import json

import pytest
from pydantic import ValidationError

from graphs.process.events import MEMORY_EVENTS, MemoryQueued, memory_event_schemas


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


def test_S5_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="text"):
        MemoryQueued.model_validate({"entry": "e", "due": "now", "text": "secret"})
