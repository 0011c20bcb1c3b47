"""A provider refuses a prompt for what it cannot read: what is left out then, and in later turns."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graphs.model_failures import ModelUnavailable, refuses_content
from graphs.turn.content import (
    NOTHING,
    REFUSED_KEY,
    Refused,
    content_of,
    refused_before,
    refused_more,
    remembering,
    without,
)
from graphs.turn.prompt import Attempt
from graphs.turn.view import smaller

IMAGE = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
FILE = {"type": "file", "base64": "JVBERi0=", "mime_type": "application/pdf"}
TEXT = {"type": "text", "text": "What is this?"}


def asked(name: str, *blocks: dict[str, Any]) -> HumanMessage:
    return HumanMessage([TEXT, *blocks], id=name)


class Refusal(Exception):
    def __init__(self, status: int | None, words: str) -> None:
        super().__init__(words)
        self.status_code = status


def test_a_note_stands_where_something_was_left_out() -> None:
    message = asked("h1", IMAGE, FILE)
    assert without(message, frozenset({("h1", "image"), ("h2", "file")})).content == [
        TEXT,
        {"type": "text", "text": "[image left out: the model cannot read it]"},
        FILE,
    ]
    assert message.content == [TEXT, IMAGE, FILE]
    assert without(message, NOTHING) is message


def test_what_nobody_knows_is_an_attachment_but_what_the_model_said_beside_its_text_is_none() -> None:
    unknown = {"type": "hologram"}
    assert content_of(asked("h", unknown)) == {("h", "attachment")}
    assert content_of(ToolMessage([unknown, IMAGE], tool_call_id="1", id="t")) == {("t", "attachment"), ("t", "image")}
    assert content_of(AIMessage([{"type": "thinking"}, IMAGE], id="a")) == {("a", "image")}


OLD: list[BaseMessage] = [asked("h1", IMAGE, FILE), AIMessage("A cat.", id="a1")]


@pytest.mark.parametrize(
    ("messages", "before", "reason", "expected"),
    [
        ([*OLD, asked("h2", IMAGE, FILE)], NOTHING, "no PDF, please", {("h2", "file")}),
        ([*OLD, asked("h2", IMAGE, FILE)], NOTHING, "unknown 'file', expected 'image_url'", {("h2", "file")}),
        ([*OLD, asked("h2", IMAGE, FILE)], NOTHING, "refused", {("h2", "file"), ("h2", "image")}),
        ([*OLD, asked("h2", IMAGE)], {("h2", "image")}, "image", {("h2", "image"), ("h1", "image"), ("h1", "file")}),
        ([*OLD, asked("h2")], NOTHING, "no vision", {("h1", "image"), ("h1", "file")}),
        ([*OLD, asked("h2")], {("h1", "image"), ("h1", "file")}, "no vision", None),
        ([asked("h1")], NOTHING, "refused", None),
    ],
)
def test_what_is_new_is_left_out_first_and_what_the_words_name_before_all(
    messages: list[BaseMessage], before: Refused, reason: str, expected: set[tuple[str, str]] | None
) -> None:
    assert refused_more(messages, frozenset(before), reason) == expected


def test_an_answer_remembers_for_its_model_alone() -> None:
    answer = remembering(AIMessage("yes", id="a"), "openai:blind", frozenset({("h1", "image")}))
    assert refused_before([answer], "openai:blind") == {("h1", "image")}
    assert refused_before([answer], "openai:seeing") == NOTHING
    assert remembering(answer, "openai:blind", NOTHING) is answer


@pytest.mark.parametrize("noise", [5, "text", {"model": "m"}, {"model": "m", "content": 5}, {"model": "m", "content": [5, ["a"]]}])  # fmt: skip  # noqa: E501
def test_noise_in_a_message_means_nothing(noise: object) -> None:
    assert refused_before([AIMessage("yes", additional_kwargs={REFUSED_KEY: noise})], "m") == NOTHING


@pytest.mark.parametrize(
    "error",
    [
        Refusal(400, "Invalid value: 'image'. Supported values are: 'text', 'image_url'."),
        Refusal(400, "invalid request"),
        Refusal(422, "unprocessable"),
        Refusal(404, "No endpoints found that support image input"),
        Refusal(500, "image input is not supported - hint: you may need to provide the mmproj"),
        ValueError("OpenAI Chat Completions does not support file URLs."),
    ],
)
def test_a_refused_request_may_be_refused_for_its_content(error: Exception) -> None:
    assert refuses_content(error)


@pytest.mark.parametrize(
    "error",
    [
        Refusal(401, "no key for images"),
        Refusal(429, "too many images today"),
        Refusal(500, "internal error"),
        ConnectionError("no image server"),
        TimeoutError(),
        ModelUnavailable("No model is configured"),
    ],
)
def test_another_failure_leaves_nothing_out(error: Exception) -> None:
    assert not refuses_content(error)


def test_C1_a_prompt_that_is_too_long_is_made_smaller_twice_and_keeps_its_content() -> None:
    messages = [asked("h1", IMAGE)]
    first = Attempt(1000)
    second = first.after(Refusal(400, "maximum context length"), messages)
    assert second is not None
    assert (second.room, second.refused) == (smaller(1000), NOTHING)
    third = second.after(Refusal(400, "maximum context length"), messages)
    assert third is not None
    assert third.after(Refusal(400, "maximum context length"), messages) is None
    assert third.after(Refusal(400, "no images"), messages) == Attempt(
        smaller(smaller(1000)), frozenset({("h1", "image")}), sizes=3
    )


def test_a_prompt_without_content_beside_its_text_is_not_sent_again() -> None:
    assert Attempt(1000).after(Refusal(400, "bad request"), [asked("h1")]) is None
