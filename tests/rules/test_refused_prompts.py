"""A provider refuses a prompt for what it cannot read: what is left out then, and in later turns."""

from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

from graphs.process.failures import ModelUnavailable, refuses_content
from graphs.turn.content import (
    NOTHING,
    REFUSED_KEY,
    Refused,
    content_of,
    refused_before,
    refused_more,
    remembering,
    without_refused,
)
from graphs.turn.prompt import Prompt, ask_to_chat
from tests.threads import word_counter

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
    assert without_refused(message, frozenset({("h1", "image"), ("h2", "file")})).content == [
        TEXT,
        {"type": "text", "text": "[image left out: the model cannot read it]"},
        FILE,
    ]
    assert message.content == [TEXT, IMAGE, FILE]
    assert without_refused(message, NOTHING) is message


def test_what_nobody_knows_is_an_attachment_but_what_the_model_said_beside_its_text_is_none() -> None:
    unknown = {"type": "hologram"}
    assert content_of(asked("h", unknown)) == {("h", "attachment")}
    assert content_of(ToolMessage([unknown, IMAGE], tool_call_id="1", id="t")) == {("t", "attachment"), ("t", "image")}
    assert content_of(AIMessage([{"type": "thinking"}, IMAGE], id="a")) == {("a", "image")}


OLD: list[BaseMessage] = [asked("h1", IMAGE, FILE), AIMessage("A cat.", id="a1")]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (
            [*OLD, asked("h2", IMAGE, FILE)],
            [
                {("h2", "file")},
                {("h2", "image")},
                {("h2", "file"), ("h2", "image")},
                {("h2", "file"), ("h2", "image"), ("h1", "file"), ("h1", "image")},
            ],
        ),
        ([*OLD, asked("h2", IMAGE)], [{("h2", "image")}, {("h2", "image"), ("h1", "image"), ("h1", "file")}]),
        ([*OLD, asked("h2")], [{("h1", "image"), ("h1", "file")}]),
        ([asked("h1")], []),
    ],
)
def test_what_is_new_is_left_out_first_one_kind_after_the_other(
    messages: list[BaseMessage], expected: list[set[tuple[str, str]]]
) -> None:
    tried, refused = list[Refused](), NOTHING
    while more := refused_more(messages, refused):
        tried.append(refused := more)
    assert tried == expected


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


async def sizes_sent(error: Exception, most: int, *blocks: dict[str, Any]) -> list[tuple[int, bool]]:
    """Return for each prompt that is refused so how long it was, and whether its image was there."""
    counter, sent = word_counter(), list[tuple[int, bool]]()

    def refuse(messages: Any) -> AIMessage:
        sent.append((counter(messages), "iVBORw0KGgo=" in str(messages)))
        raise error

    talk = [message for at in range(50) for message in (HumanMessage(f"{at} says", id=f"{at}"), AIMessage("yes"))]
    prompt = Prompt(max_tokens=most, messages=[*talk, asked("h", *blocks)], counter=counter)
    with pytest.raises(ModelUnavailable):
        await ask_to_chat(cast("Any", RunnableLambda(refuse)), prompt, "m")
    return sent


async def test_C1_a_prompt_that_is_too_long_is_made_smaller_twice_and_keeps_its_content() -> None:
    (first, _), (second, _), (third, _) = await sizes_sent(Refusal(400, "maximum context length"), 300)
    assert first > second > third
    sent = await sizes_sent(Refusal(400, "maximum context length"), 6000, IMAGE)
    assert [has for _, has in sent] == [True, True, True]


async def test_a_prompt_is_sent_again_without_its_image_and_not_where_there_is_none() -> None:
    assert [has for _, has in await sizes_sent(Refusal(400, "bad request"), 3000, IMAGE)] == [True, False]
    assert len(await sizes_sent(Refusal(400, "bad request"), 300)) == 1
