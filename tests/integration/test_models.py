"""Models over the wire: what is sent to an OpenAI-compatible server, and what a failed call becomes."""

import asyncio
import subprocess
import sys

import pytest
from blockbuster import blockbuster_ctx

from graphs.process.failures import explain
from graphs.process.models import load_chat_model
from graphs.settings import Settings
from tests.ports import free_port
from tests.stub_model import Reply, StubModel, always


def compatible(url: str) -> Settings:
    return Settings(model="openai:any", openai_base_url=url)


def local(url: str) -> Settings:
    return Settings(local_base_url=url)


def nobody() -> str:
    """A URL where no server listens."""
    return f"http://127.0.0.1:{free_port()}/v1"


def test_another_server_is_asked_for_chat_completions_without_a_key() -> None:
    with StubModel(always("hello")) as stub:
        answer = load_chat_model("", compatible(stub.url), purpose="chat").invoke("hi")
        assert answer.text == "hello"
        assert [request.model for request in stub.requests] == ["any"]
        assert "input" not in stub.requests[0].body  # that would be the Responses API


def test_structured_output_is_asked_for_as_a_json_schema() -> None:
    schema = {"title": "facts", "type": "object", "properties": {"fact": {"type": "string"}}}
    with StubModel(always(Reply.json({"fact": "Likes tea"}))) as stub:
        model = load_chat_model("local", local(stub.url), purpose="memory")
        assert model.with_structured_output(schema).invoke("hi") == {"fact": "Likes tea"}
        assert stub.requests[0].schema["name"] == "facts"


async def test_an_unreachable_server_says_what_to_check_and_nothing_blocks_the_loop() -> None:
    with blockbuster_ctx():
        model = await asyncio.to_thread(load_chat_model, "local", local(nobody()), purpose="chat")
        with pytest.raises(Exception, match="Connection error") as caught:
            await model.ainvoke("hi")
    assert "make dev" in str(explain(caught.value, "local"))


# A program of its own: what a loop that ended leaves open is closed with it.
_A_LOOP_FOR_EACH_TURN = """
import asyncio, sys
from graphs.process.models import ainvoke, load_chat_model
from graphs.settings import Settings

async def side_by_side(turns):
    model = load_chat_model("", Settings(model="openai:any", openai_base_url=sys.argv[1]), purpose="chat")
    return [answer.text for answer in await asyncio.gather(*(ainvoke(model, "hi") for _ in range(turns)))]

for turns in (1, 1, 3, 1, 1):
    print(*asyncio.run(side_by_side(turns)))
"""


def test_a_program_that_has_an_event_loop_for_each_turn_is_answered_in_each() -> None:
    """Providers' packages share connections between event loops; those of a loop that ended cannot be used."""
    with StubModel(always("hello")) as stub:
        program = [sys.executable, "-c", _A_LOOP_FOR_EACH_TURN, stub.url]
        done = subprocess.run(program, capture_output=True, text=True, timeout=300)
        assert done.stdout.split("\n") == ["hello", "hello", "hello hello hello", "hello", "hello", ""], done.stderr
