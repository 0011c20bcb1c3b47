"""What becomes of a memory model's answer, by the public doors, over the OpenAI protocol and by models of one's own."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tracers.context import collect_runs
from langchain_core.tracers.schemas import Run
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from palimpsest import Settings, extract_facts, load_chat_model
from tests.fakes import RecordingModel
from tests.laws.talk import Talk
from tests.stub_model import Reply, StubModel

SAID = "I like figs and plums and kiwis"


def fact(content: str) -> dict[str, Any]:
    return {"message": 1, "action": "new", "known": 0, "content": content, "category": "preference", "confidence": 0.9}


def facts(*contents: str) -> str:
    return json.dumps({"facts": [*map(fact, contents)], "profile": []})


FIGS = facts("Likes figs")


def learned(answer: str | AIMessage, text: str = SAID) -> list[str]:
    model = RecordingModel(replies=[answer])
    return [change.content for change in extract_facts(model, text).changes]


@pytest.fixture
def stub() -> Iterator[StubModel]:
    with StubModel() as stub:
        yield stub


def model(stub: StubModel, name: str = "stub") -> ChatOpenAI:
    return ChatOpenAI(model=name, base_url=stub.url, api_key=SecretStr("none"), max_retries=0, timeout=120.0)


REPEATED = facts("Likes figs", "Likes plums", *["Likes plums"] * 2_000)
LONG_FACT = "kiwis " * 20_000


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        (REPEATED[:-500], ["Likes figs", "Likes plums"]),
        (FIGS + "{" * 100_000, ["Likes figs"]),
        (f"[1] and {{2}}: {FIGS}" + "]" * 100_000, ["Likes figs"]),
        (facts("Likes figs", LONG_FACT, "Likes plums"), ["Likes figs", "Likes plums"]),
        (facts(LONG_FACT, "Likes plums"), ["Likes plums"]),
        (facts("Likes figs", LONG_FACT)[:-9], ["Likes figs"]),
        (FIGS + " " * 100_000, ["Likes figs"]),
    ],
)
async def test_of_an_answer_of_any_length_the_whole_facts_are_learned(answer: str, whole: list[str]) -> None:
    talk = Talk()
    talk.memory.replies.append(answer)
    await talk.say(SAID)
    assert await talk.learn() == whole
    assert len(talk.memory.prompts) == 1


def test_what_is_not_read_of_a_long_answer_is_counted() -> None:
    found = extract_facts(RecordingModel(replies=[REPEATED[:-500]]), SAID)
    told = REPEATED[:-500].count('"content"')
    counted = len(found.changes) + len(found.refused)
    assert 0.9 * told < counted <= told


@pytest.mark.parametrize("unread", [None, "x", 5, 10**9])
def test_what_a_model_says_of_facts_that_are_left_is_no_count(unread: object) -> None:
    found = extract_facts(RecordingModel(replies=[json.dumps({**json.loads(FIGS), "unread": unread})]), SAID)
    assert ([change.content for change in found.changes], found.refused) == (["Likes figs"], ())


@pytest.mark.parametrize(
    "thoughts",
    [
        "<think>{draft}</think>",
        "Maybe {draft}?\n</think>\n\n",
        "Maybe {draft}?</think>",
        "<think>One.</think>\nThen <thinking>{draft}</thinking>\nSo: ",
        "<THINK>{draft}</THINK>```json\n",
        "Maybe {draft}?</think> So the answer is: ",
        'Maybe {draft}?\n</think>Here is "the answer":\n',
        "You asked for {draft}. Here it is:\n",
    ],
)
@pytest.mark.parametrize("draft", [facts("Likes plums"), facts()])
@pytest.mark.parametrize("answer", [FIGS, facts("Likes figs", "Likes kiwis")[:-40]], ids=["whole", "broken off"])
def test_drafts_before_an_answer_are_no_answer(thoughts: str, draft: str, answer: str) -> None:
    assert learned(thoughts.replace("{draft}", draft) + answer) == ["Likes figs"]


def test_tags_in_what_a_fact_says_begin_no_thoughts() -> None:
    said = "I like <think> tags, </think> tags and figs"
    assert learned(facts("Likes <think> tags", "Likes </think> tags", "Likes figs"), said) == [
        "Likes <think> tags",
        "Likes </think> tags",
        "Likes figs",
    ]


@pytest.mark.parametrize(
    "answer",
    [
        AIMessage("", additional_kwargs={"reasoning_content": FIGS}),
        AIMessage("\n", additional_kwargs={"reasoning": f"```json\n{FIGS}\n```"}),
        AIMessage([{"type": "reasoning", "reasoning": FIGS}]),
        AIMessage([{"type": "thinking", "thinking": FIGS, "signature": "s"}, {"type": "text", "text": ""}]),
        AIMessage("", tool_calls=[{"name": "memory_update", "args": json.loads(FIGS), "id": "c1"}]),
    ],
)
async def test_an_answer_is_found_wherever_a_server_puts_it(answer: AIMessage) -> None:
    talk = Talk()
    talk.memory.replies.append(answer)
    await talk.say(SAID)
    assert await talk.learn() == ["Likes figs"]
    assert len(talk.memory.prompts) == 1


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_an_answer_among_the_thoughts_that_a_server_sends_is_read(stub: StubModel, field: str, streams: bool) -> None:
    stub.respond = lambda _: Reply(beside={field: FIGS})
    settings = Settings(openai_base_url=stub.url, has_openai_key=False)
    server = load_chat_model("openai:thinks", settings, purpose="memory")
    if streams:
        server = server.model_copy(update={"streaming": True})
    assert [change.content for change in extract_facts(server, SAID).changes] == ["Likes figs"]
    assert len(stub.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        AIMessage(FIGS, additional_kwargs={"reasoning_content": facts("Likes plums")}),
        AIMessage([{"type": "thinking", "thinking": facts("Likes plums")}, {"type": "text", "text": FIGS}]),
    ],
)
def test_a_draft_beside_an_answer_is_none(answer: AIMessage) -> None:
    assert learned(answer) == ["Likes figs"]


def runs_of(work: Callable[[], object]) -> list[Run]:
    with collect_runs() as collected:
        work()
    return [each for run in collected.traced_runs for each in (run, *run.child_runs)]


@pytest.mark.filterwarnings("ignore:Cannot use method")
@pytest.mark.parametrize("name", ["stub", "gpt-4"])
def test_no_parser_of_langchain_sees_an_answer(stub: StubModel, name: str) -> None:
    stub.respond = lambda request: (
        Reply(tool_calls=(("memory_update", json.loads(FIGS)),)) if request.tools else Reply(text=FIGS)
    )
    schema = {"title": "memory_update", "description": "", "type": "object", "properties": {}}
    structured = model(stub, name).with_structured_output(schema)
    assert "parser" in {run.run_type for run in runs_of(lambda: structured.invoke("hi"))}
    contents: list[str] = []

    def learn() -> None:
        contents.extend(change.content for change in extract_facts(model(stub, name), SAID).changes)

    assert {run.run_type for run in runs_of(learn)} == {"llm"}
    assert contents == ["Likes figs"]
    assert stub.requests[-1].schema or stub.requests[-1].tools


def respond_in_reasoning(messages: list[BaseMessage]) -> AIMessage:
    return AIMessage("", additional_kwargs={"reasoning_content": "They like figs. Let me think. " + FIGS})


def test_thoughts_that_come_to_no_answer_are_none() -> None:
    with pytest.raises(ValueError, match="no facts could be read"):
        extract_facts(RecordingModel(respond=respond_in_reasoning), SAID)
