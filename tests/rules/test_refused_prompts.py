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
    refused_before,
    refused_more,
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
    assert without_refused(message, frozenset({"h1", "h2"})).content == [
        TEXT,
        {"type": "text", "text": "[image left out: the model cannot read it]"},
        {"type": "text", "text": "[file left out: the model cannot read it]"},
    ]
    assert message.content == [TEXT, IMAGE, FILE]
    assert without_refused(message, NOTHING) is message


def test_what_nobody_knows_is_an_attachment_but_what_the_model_said_beside_its_text_is_none() -> None:
    unknown = {"type": "hologram"}
    attachment, image = (
        {"type": "text", "text": f"[{kind} left out: the model cannot read it]"} for kind in ("attachment", "image")
    )
    every = frozenset("hta")
    assert without_refused(asked("h", unknown), every).content == [TEXT, attachment]
    told = without_refused(ToolMessage([unknown, IMAGE], tool_call_id="1", id="t"), every)
    assert told.content == [attachment, image]
    assert without_refused(AIMessage([{"type": "thinking"}, IMAGE], id="a"), every).content == [
        {"type": "thinking"},
        image,
    ]


OLD: list[BaseMessage] = [asked("h1", IMAGE, FILE), AIMessage("A cat.", id="a1")]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([*OLD, asked("h2", IMAGE, FILE)], [{"h2"}, {"h2", "h1"}]),
        ([*OLD, asked("h2", IMAGE), asked("h3", FILE)], [{"h2", "h3"}, {"h2", "h3", "h1"}]),
        ([*OLD, asked("h2")], [{"h1"}]),
        ([asked("h1")], []),
    ],
)
def test_what_is_new_is_left_out_first(messages: list[BaseMessage], expected: list[set[str]]) -> None:
    tried, refused = list[Refused](), NOTHING
    while more := refused_more(messages, refused):
        tried.append(refused := more)
    assert tried == expected


async def test_an_answer_remembers_for_its_model_alone() -> None:
    def blind(messages: Any) -> AIMessage:
        if "iVBORw0KGgo=" in str(messages):
            raise Refusal(400, "bad request")
        return AIMessage("yes", id="a")

    async def answered(*blocks: dict[str, Any]) -> AIMessage:
        prompt = Prompt(max_tokens=3000, messages=[asked("h1", *blocks)], counter=word_counter())
        return (await ask_to_chat(cast("Any", RunnableLambda(blind)), prompt, "openai:blind"))[0]

    answer = await answered(IMAGE)
    assert refused_before([answer], "openai:blind") == {"h1"}
    assert refused_before([answer], "openai:seeing") == NOTHING
    assert not (await answered()).additional_kwargs


@pytest.mark.parametrize("noise", [5, "text", {"model": "m"}, {"m": 5}, {"m": "h"}])  # fmt: skip
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
