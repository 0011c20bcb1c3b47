"""What a provider said of a call that it refused: code, parameter, sentence; never the user's words, nor a key."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from graphs.model_failures import explain
from memory.context.summarization import asummarize_messages, summarize_messages
from memory.extraction.extraction import aextract_facts, extract_facts
from memory.provider_reason import ProviderReason, origin, provider_reason
from tests.fakes import RecordingModel


class Refused(Exception):
    """An error as providers' packages raise it."""

    def __init__(self, body: Any, status: int = 400) -> None:
        super().__init__("secret words of the prompt")
        self.body, self.status_code = body, status


def told(message: str, *said: str, **fields: object) -> ProviderReason:
    return provider_reason(Refused({"message": message, **fields}), said)


def test_code_parameter_and_sentence_are_told() -> None:
    sentence = "Unsupported parameter: 'max_tokens' is not supported with this model."
    reason = told(sentence, "hello", code="unsupported_parameter", param="max_tokens", type="invalid_request_error")
    assert reason == ProviderReason(400, "unsupported_parameter", "max_tokens", sentence)
    assert str(reason) == f"status 400, code unsupported_parameter, parameter max_tokens, “{sentence}”"


@pytest.mark.parametrize("wrap", [lambda body: body, lambda body: {"error": body}], ids=["bare", "wrapped"])
def test_packages_keep_the_answer_in_one_of_two_shapes(wrap: Any) -> None:
    assert provider_reason(Refused(wrap({"message": "no", "type": "stub"}))).code == "stub"


def test_the_words_of_the_prompt_are_left_out() -> None:
    reason = told("Invalid value: 'my quokka is called Zoë', user said quokka", "My Quokka is called Zoë.")
    assert "quokka" not in str(reason).lower()
    assert "Zoë" not in str(reason)
    assert reason.message.startswith("Invalid value: '")


@given(st.lists(st.from_regex(r"[A-Z][a-z]{3,8}x{3}", fullmatch=True), min_size=1, max_size=6))
def test_no_rare_word_of_the_prompt_is_ever_told(words: list[str]) -> None:
    reason = told(f"We cannot read: {' '.join(words)}!", " ".join(words), code=words[0], param=words[-1])
    assert not any(word in str(reason) for word in words)


@pytest.mark.parametrize("key", ["sk-proj-abc1234567890", "sk-ab***9xyz", "Bearer 0123456789abc"])
def test_a_key_is_left_out(key: str) -> None:
    message = told(f"Incorrect API key provided: {key} See the docs.").message
    assert message == "Incorrect API key provided: … See the docs."


@pytest.mark.parametrize("body", [None, "text", {"message": None}, {"error": "text"}, {"message": ["a"]}, {}])
def test_an_answer_of_another_shape_tells_its_status_only(body: object) -> None:
    assert provider_reason(Refused(body, 418)) == ProviderReason(418)


def test_the_error_has_it_cut_short_and_the_log_names_the_line() -> None:
    reason = told("word " * 400, code="bad")
    sentence = str(explain(Refused({}), "openai:m", reason))
    assert "The provider says: status 400, code bad, “word word" in sentence
    assert len(sentence) < 320
    assert len(str(reason)) < 700
    with pytest.raises(Refused) as caught:
        raise Refused({}) from KeyError("secret")
    assert origin(caught.value).startswith("Refused from KeyError at ")
    assert "secret" not in origin(caught.value)


def test_a_reason_that_says_nothing_adds_nothing() -> None:
    assert "provider says" not in str(explain(Refused({}), "openai:m", provider_reason(ConnectionError("secret"))))


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
    assert "status 404, code unsupported_value, parameter temperature, “Unsupported temperature" in record.getMessage()
    assert not any(word in caplog.text for word in ("quokka", "Zoë", "sk-abc", "secret"))


def test_a_failure_that_no_provider_spoke_of_names_its_kind_and_line(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConnectionError):
        extract_facts(RecordingModel(respond=lambda _: ConnectionError("secret")), SAID)
    assert "an extraction call failed: the provider said nothing of it (ConnectionError at " in caplog.text
    assert "secret" not in caplog.text
