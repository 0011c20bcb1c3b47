"""Facts from a model over the OpenAI protocol: answers that break off, and servers that refuse schemas or bounds."""

import json
import re
from collections.abc import Iterator

import pytest

from memory.config import MemoryConfig
from memory.extraction.extraction import extract_facts
from memory.message import StoredMessage
from tests.laws.test_rules_answers import fact, model
from tests.stub_model import ChatRequest, Reply, StubModel

NOW = "2026-11-22T10:00:00+00:00"
LIKES = [StoredMessage("u1", "user", "I like figs and plums", NOW)]


@pytest.fixture
def stub() -> Iterator[StubModel]:
    with StubModel() as stub:
        yield stub


def test_an_answer_that_breaks_off_before_it_says_anything_is_a_failure(stub: StubModel) -> None:
    stub.respond = lambda _: Reply(text="", finish="length")
    with pytest.raises(Exception, match="length"):
        extract_facts(model(stub), LIKES)


def test_an_answer_is_bounded_by_what_it_may_hold(stub: StubModel) -> None:
    stub.respond = lambda _: Reply.json({"facts": [], "profile": []})
    extract_facts(model(stub), LIKES, config=MemoryConfig(max_fact_chars=80))
    (request,) = stub.requests
    facts = request.schema["schema"]["properties"]["facts"]
    assert set(request.schema["schema"]["properties"]) == {"facts", "profile", "sensitive", "secrets", "orders"}
    assert 2 <= facts["maxItems"] < 10
    assert facts["items"]["properties"]["content"]["maxLength"] == 81


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(("refused", "asked"), [("maxItems|maxLength", [True, True]), (".", [True, True, False])])
def test_a_server_that_refuses_bounds_or_schemas_is_asked_with_less(
    stub: StubModel, refused: str, asked: list[bool], status: int
) -> None:
    def respond(request: ChatRequest) -> Reply:
        if request.schema and re.search(refused, json.dumps(request.schema)):
            return Reply(text="unsupported keyword", status=status)
        return Reply.json({"facts": [fact("Likes figs")], "profile": []})

    stub.respond = respond
    found = extract_facts(model(stub), LIKES)
    assert [change.content for change in found.changes] == ["Likes figs"]
    assert [bool(request.schema) for request in stub.requests] == asked
