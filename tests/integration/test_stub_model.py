"""The model stub is believed by `ChatOpenAI`, and can misbehave in the ways a provider does."""

import threading
from collections.abc import Iterator
from contextlib import suppress

import openai
import pytest
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr

from tests.stub_model import ChatRequest, Reply, StubModel, always


class City(BaseModel):
    """Where someone lives."""

    name: str


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"sun in {city}"


@pytest.fixture
def stub() -> Iterator[StubModel]:
    with StubModel() as stub:
        yield stub


def model(stub: StubModel, timeout: float = 120.0) -> ChatOpenAI:
    return ChatOpenAI(model="stub", base_url=stub.url, api_key=SecretStr("none"), max_retries=0, timeout=timeout)


def test_an_answer_comes_whole_or_word_by_word(stub: StubModel) -> None:
    stub.respond = always("one two  three\nfour")

    assert model(stub).invoke("hi").text == "one two  three\nfour"
    chunks = [chunk.text for chunk in model(stub).stream("hi")]
    assert "".join(chunks) == "one two  three\nfour"
    assert len([chunk for chunk in chunks if chunk]) == 4


def test_requests_are_recorded_with_what_they_carry(stub: StubModel) -> None:
    model(stub).bind_tools([weather]).invoke([("system", "Be brief."), ("human", [{"type": "text", "text": "hello"}])])

    (request,) = stub.requests
    assert (request.model, request.stream, request.tools) == ("stub", False, ["weather"])
    assert request.text == "Be brief.\nhello"
    assert request.last == "hello"
    stub.clear()
    assert stub.requests == []


@pytest.mark.parametrize("streaming", [False, True])
def test_tools_are_called(stub: StubModel, streaming: bool) -> None:
    stub.respond = always(Reply(tool_calls=(("weather", {"city": "Bergen"}), ("weather", {"city": "Oslo"}))))
    bound = model(stub).bind_tools([weather])

    if streaming:
        first, *rest = bound.stream("hi")
        calls = sum(rest, first).tool_calls
    else:
        calls = bound.invoke("hi").tool_calls

    assert [(call["name"], call["args"]["city"]) for call in calls] == [("weather", "Bergen"), ("weather", "Oslo")]


def test_structured_output_is_json(stub: StubModel) -> None:
    stub.respond = always(Reply.json({"name": "Bergen"}))

    assert model(stub).with_structured_output(City).invoke("where?") == City(name="Bergen")
    assert stub.requests[0].schema["name"] == "City"


def test_an_error_has_its_status_and_text(stub: StubModel) -> None:
    stub.respond = always(Reply(status=429, text="slow down"))

    with pytest.raises(openai.RateLimitError, match="slow down"):
        model(stub).invoke("hi")


def test_a_connection_may_be_cut_in_the_middle(stub: StubModel) -> None:
    stub.respond = always(Reply(text="one two three", cut_after=2))

    words = [chunk.text for chunk in model(stub).stream("hi")]

    assert "".join(words) == "one two "


def test_what_a_tests_own_responder_raises_is_raised_in_the_test(stub: StubModel) -> None:
    def respond(request: ChatRequest) -> Reply:
        raise KeyError(request.last)

    stub.respond = respond
    with pytest.raises(openai.BadRequestError, match="responder failed"):
        model(stub).invoke("hi")
    with pytest.raises(ExceptionGroup) as caught:
        stub.raise_failures()
    assert [repr(error) for error in caught.value.exceptions] == ["KeyError('hi')"]


def test_and_at_the_latest_when_the_stub_ends() -> None:
    stub = StubModel(lambda request: str(request.body["nothing"]))

    def ask() -> None:
        with stub, suppress(openai.BadRequestError):
            model(stub).invoke("hi")

    with pytest.raises(ExceptionGroup):
        ask()


def test_a_model_may_hang_until_its_gate_opens(stub: StubModel) -> None:
    gate = threading.Event()

    def respond(request: ChatRequest) -> Reply:
        return Reply(text="late", gate=gate if request.last == "slow" else None)

    stub.respond = respond
    with pytest.raises(openai.APITimeoutError):
        model(stub, timeout=0.2).invoke("slow")
    assert model(stub).invoke("fast").text == "late"
    gate.set()
    assert model(stub).invoke("slow").text == "late"


def test_a_request_can_be_waited_for(stub: StubModel) -> None:
    asking = threading.Thread(target=lambda: model(stub).invoke("now"))
    asking.start()
    assert stub.wait_for(lambda request: request.last == "now").last == "now"
    asking.join()

    with pytest.raises(TimeoutError, match="no such request among 1"):
        stub.wait_for(lambda request: request.last == "never", timeout=0.05)
