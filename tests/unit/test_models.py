"""Models by name: what each purpose asks of them, what each can bear, and what a missing one says."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_openai import ChatOpenAI

from graphs.process.failures import ModelUnavailable, explain, is_context_overflow
from graphs.process.models import Purpose, fit_to_profile, in_background, load_chat_model, profile
from graphs.settings import LOCAL, Settings
from graphs.turn.context import Context
from tests.fakes import Refused

SERVED = Settings(local_base_url="http://127.0.0.1:9/v1")
TWICE = replace(SERVED, local_background_url="http://127.0.0.1:8/v1")
NOTHING = Settings()
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)


def local(purpose: Purpose, settings: Settings = SERVED) -> ChatOpenAI:
    model = load_chat_model(LOCAL, settings, purpose=purpose)
    assert isinstance(model, ChatOpenAI)
    return model


def body(model: ChatOpenAI) -> dict[str, Any]:
    assert model.extra_body
    return dict(model.extra_body)


def test_what_no_turn_waits_for_is_asked_of_the_server_with_a_low_priority() -> None:
    for purpose in PURPOSES:
        assert local(purpose).openai_api_base == SERVED.local_base_url
        assert local(purpose, TWICE).openai_api_base == {"memory": "http://127.0.0.1:8/v1"}.get(
            purpose, SERVED.local_base_url
        )
    ahead = in_background(local("summary", TWICE))
    assert isinstance(ahead, ChatOpenAI)
    assert ahead.openai_api_base == TWICE.local_background_url
    assert body(ahead)["id_slot"] != body(local("memory", TWICE))["id_slot"]
    assert (ahead.temperature, ahead.max_tokens) == (local("summary").temperature, local("summary").max_tokens)


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("", NOTHING, "OPENAI_API_KEY"),
        (LOCAL, NOTHING, "make dev"),
        ("openai:gpt-4.1-mini", NOTHING, "OPENAI_API_KEY"),
        ("anthropic:claude", NOTHING, "langchain-anthropic"),
        ("nowhere:model", NOTHING, "provider:model"),
    ],
)
def test_a_model_that_cannot_be_loaded_says_what_to_set(
    name: str, settings: Settings, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)  # read by the provider's package, not by ours
    with pytest.raises(ModelUnavailable, match=says) as caught:
        load_chat_model(name, settings, purpose="chat")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "OPENAI_API_KEY"),
        (403, "access"),
        (404, "PALIMPSEST_MODEL"),
        (429, "quota"),
        (408, "time"),
        (503, "again"),
    ],
)
def test_a_provider_without_typed_errors_is_understood_by_its_status(status: int, says: str) -> None:
    assert says in str(explain(Refused(status, "secret words"), "openai:m"))


@pytest.mark.parametrize("status", [400, 401, 404, 418, 500])
def test_an_explanation_names_the_model_and_never_repeats_the_providers_text(status: int) -> None:
    sentence = str(explain(Refused(status, "secret words"), "mistralai:m"))
    assert "mistralai:m" in sentence
    assert "secret" not in sentence


def test_a_lost_connection_to_the_local_model_says_how_to_start_it() -> None:
    assert "make dev" in str(explain(ConnectionRefusedError(), LOCAL))
    assert "make dev" not in str(explain(ConnectionRefusedError(), "openai:m"))


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 128000 tokens",
        "the request exceeds the available context size, try increasing it",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count exceeds the maximum number of tokens allowed",
    ],
)
def test_a_prompt_that_is_too_long_is_recognized_in_every_providers_words(message: str) -> None:
    assert is_context_overflow(Refused(400, message))
    assert "max_tokens" in str(explain(Refused(400, message), "openai:m"))


@pytest.mark.parametrize(("message", "status"), [("invalid tool schema", 400), ("context length", 500)])
def test_other_failures_are_not_taken_for_a_long_prompt(message: str, status: int) -> None:
    assert not is_context_overflow(Refused(status, message))


@given(
    max_tokens=st.integers(600, 100_000),
    summary=st.integers(32, 590),
    memory=st.integers(0, 10_000),
    reply=st.integers(0, 10_000),
)
def test_budgets_shrink_to_what_the_model_can_bear(max_tokens: int, summary: int, memory: int, reply: int) -> None:
    chosen = Context(max_tokens=max_tokens, max_summary_tokens=summary, memory_tokens=memory, reply_tokens=reply)
    limits = profile(LOCAL, NOTHING)
    assert limits
    fitted = fit_to_profile(chosen, limits)
    for name in ("max_tokens", "max_summary_tokens", "memory_tokens", "reply_tokens"):
        assert getattr(fitted, name) == min(getattr(chosen, name), getattr(limits, name))
    assert fitted.delta_tokens == limits.delta_tokens
    assert fit_to_profile(Context(delta_tokens=8), limits).delta_tokens == 8
    assert fit_to_profile(fitted, limits) == fitted
    assert fit_to_profile(chosen, None) == chosen


@pytest.mark.parametrize("chosen", [None, "before", "after"])
def test_where_nobody_chose_no_turn_of_the_local_model_waits_for_a_summary(chosen: Any) -> None:
    limits = profile(LOCAL, NOTHING)
    assert fit_to_profile(Context(), limits).summarize == "after"
    assert fit_to_profile(Context(summarize=chosen), limits).summarize == (chosen or "after")
    assert fit_to_profile(Context(summarize=chosen), None).summarize == chosen


def test_a_providers_model_has_no_limits_of_ours() -> None:
    assert profile("openai:gpt-4.1-mini", SERVED) is None
    assert profile("", Settings(model=LOCAL)) is not None
