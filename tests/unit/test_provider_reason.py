"""What a provider said of a call that it refused: status, code, parameter; never the user's words, nor a key."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from graphs.process.failures import explain
from memory.context.summarization import asummarize_messages, summarize_messages
from memory.extraction.extraction import aextract_facts, extract_facts
from memory.model_calls import origin, provider_reason
from tests.fakes import RecordingModel


class Refused(Exception):
    """An error as providers' packages raise it."""

    def __init__(self, body: Any, status: int = 400) -> None:
        super().__init__("secret words of the prompt")
        self.body, self.status_code = body, status


@pytest.mark.parametrize("wrap", [lambda body: body, lambda body: {"error": body}], ids=["bare", "wrapped"])
def test_status_code_and_parameter_are_told_and_no_sentence(wrap: Any) -> None:
    body = {"message": "Zoë says no", "code": "unsupported_parameter", "param": "messages.[0].content", "type": "bad"}
    reason = "status 400, code unsupported_parameter, parameter messages.[0].content"
    assert provider_reason(Refused(wrap(body))) == reason
    assert provider_reason(Refused(wrap({"message": "no", "type": "stub"}))) == "status 400, code stub"
    sentence = str(explain(Refused(wrap(body)), "openai:m"))
    assert sentence.endswith(f" The provider says: {reason}.")
    assert "Zoë" not in sentence


@pytest.mark.parametrize("said", ["sk-proj-" + "a1" * 40, "sk-ab***9xyz", "my quokka", "Zoë", ["a"]])
def test_what_is_no_name_is_not_told(said: object) -> None:
    assert provider_reason(Refused({"code": said, "param": said})) == "status 400"


@pytest.mark.parametrize("body", [None, "text", {"message": None}, {"error": "text"}, {"message": ["a"]}, {}])
def test_an_answer_of_another_shape_tells_its_status_only(body: object) -> None:
    assert provider_reason(Refused(body, 418)) == "status 418"
    assert "provider says" not in str(explain(Refused(body, 418), "openai:m"))


def test_the_log_names_the_line() -> None:
    with pytest.raises(Refused) as caught:
        raise Refused({}) from KeyError("secret")
    assert origin(caught.value).startswith("Refused from KeyError at ")
    assert "secret" not in origin(caught.value)
    assert provider_reason(ConnectionError("secret")) == ""


SAID = [HumanMessage(f"My quokka is called Zoë. {'She likes figs. ' * 40}", id=str(n)) for n in range(4)]


async def summarize(model: RecordingModel) -> None:
    summarize_messages(SAID, running_summary=None, model=model, max_tokens=300)


async def asummarize(model: RecordingModel) -> None:
    await asummarize_messages(SAID, running_summary=None, model=model, max_tokens=300)


async def extract(model: RecordingModel) -> None:
    with pytest.raises(Refused):
        extract_facts(model, SAID)


async def aextract(model: RecordingModel) -> None:
    with pytest.raises(Refused):
        await aextract_facts(model, SAID)


@pytest.mark.parametrize(
    ("work", "call"),
    [
        (summarize, "a summary call"),
        (asummarize, "a summary call"),
        (extract, "an extraction call"),
        (aextract, "an extraction call"),
    ],
)
async def test_summaries_and_extractions_log_the_reason_too(
    work: Callable[[RecordingModel], Awaitable[None]], call: str, caplog: pytest.LogCaptureFixture
) -> None:
    sentence = "Unsupported temperature for the key sk-abc1234567890: user said quokka Zoë"
    body = {"message": sentence, "code": "unsupported_value", "param": "temperature"}
    await work(RecordingModel(respond=lambda _: Refused(body, 404)))
    (record,) = [each for each in caplog.records if each.getMessage().startswith(f"{call} failed: ")]
    assert record.levelno == logging.WARNING
    assert "status 404, code unsupported_value, parameter temperature (Refused at " in record.getMessage()
    assert not any(word in caplog.text for word in ("quokka", "Zoë", "sk-abc", "secret"))


def test_a_failure_that_no_provider_spoke_of_names_its_kind_and_line(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConnectionError):
        extract_facts(RecordingModel(respond=lambda _: ConnectionError("secret")), SAID)
    assert "an extraction call failed: the provider said nothing of it (ConnectionError at " in caplog.text
    assert "secret" not in caplog.text
