"""Every form in which LangChain takes a message, at every door that takes messages."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from palimpsest import (
    ConversationContext,
    FactStore,
    MemoryUpdateQueue,
    MemoryUpdater,
    PalimpsestMemory,
    PalimpsestSummary,
    SummarizationNode,
    acount_tokens,
    count_tokens,
    extract_facts,
    summarize_messages,
    summarized_ids,
)
from tests.fakes import RecordingModel, learns
from tests.laws.talk import DEEP_AGENTS, DOORS, NARROW, Talk
from tests.threads import varied

SAID = "I like figs"

FORMS: dict[str, Callable[[str], Any]] = {
    "text": lambda text: text,
    "pair": lambda text: ("user", text),
    "mapping": lambda text: {"role": "user", "content": text},
    "typed mapping": lambda text: {"type": "human", "content": text},
    "object": HumanMessage,
    "pair of blocks": lambda text: ("user", [{"type": "text", "text": text}]),
    "mapping of blocks": lambda text: {"role": "user", "content": [{"type": "text", "text": text}]},
    "object of blocks": lambda text: HumanMessage([{"type": "text", "text": text}]),
}

Form = Callable[[str], Any]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


def long_talk(form: Form) -> list[Any]:
    """Return more than fits, of which two messages say the same."""
    return [form(SAID), *(form(varied(40, f"word{number}")) for number in range(8)), form(SAID)]


@pytest.mark.parametrize("door", [*DOORS, *DEEP_AGENTS])
@pytest.mark.parametrize("is_alone", [False, True])
async def test_a_conversation_takes_every_form(door: str, form: Form, is_alone: bool) -> None:
    if is_alone and isinstance(form(SAID), tuple):
        pytest.skip("LangGraph itself refuses a pair that stands in no list")
    said_before = RecordingModel(respond=lambda _: "They talked.")

    def around(memory: PalimpsestMemory) -> list[Any]:
        summary = PalimpsestSummary(said_before, trigger=("tokens", 900), max_summary_tokens=64, memory=memory)
        return [memory, summary]

    talk = Talk(door, context=NARROW, around=around, models={"summary": said_before})
    for number in range(6):
        text = f"{SAID} {number} {varied(150)}"
        state = await talk.run({"messages": form(text) if is_alone else [form(text)]})
        assert text in talk.shown()
        assert text in talk.stored()
    said = [message for message in state["messages"] if message.type == "human"]
    ids = [message.id for message in said]
    assert all(ids)
    assert len(ids) == len(set(ids)) == 6
    assert said_before.prompts
    assert [message.id for message in (await talk.values())["messages"] if message.type == "human"] == ids


def summary_model() -> RecordingModel:
    return RecordingModel(respond=lambda _: "They talked.")


LIMITS: dict[str, Any] = {"max_tokens": 300, "max_summary_tokens": 60}


def summarize(messages: list[Any], model: RecordingModel, before: Any) -> Any:
    node = SummarizationNode(model=model, **LIMITS)
    update = node.invoke({"messages": messages, "context": {"running_summary": before}})
    assert update["summarized_messages"][-1].text == SAID
    return update["context"]["running_summary"]


def test_a_summary_stands_for_the_same_messages_each_time(form: Form) -> None:
    model, talk = summary_model(), long_talk(form)
    running = summarize(talk, model, None)
    gone, asked = summarized_ids(talk, running), len(model.prompts)
    assert 1 < len(gone) < len(talk)
    assert summarize(talk, model, running) == running  # it fits now, and nobody is asked again
    assert len(model.prompts) == asked > 0


def test_what_was_given_stays_as_it_is() -> None:
    given = HumanMessage(SAID)
    summarize_messages([given], running_summary=None, model=summary_model(), **LIMITS)
    assert given.id is None


@pytest.mark.parametrize("is_alone", [False, True])
def test_facts_are_found_in_every_form(form: Form, is_alone: bool) -> None:
    given = form(SAID) if is_alone else [form(SAID)]
    found = extract_facts(RecordingModel(respond=learns), given)
    assert [change.content for change in found.changes] == ["Likes figs"]


def test_the_queue_takes_every_form_and_learns_a_message_once(form: Form) -> None:
    store, asked = InMemoryStore(), RecordingModel(respond=learns)
    updater = MemoryUpdater(store, lambda _: asked)
    queue = MemoryUpdateQueue(updater.process)
    queue.add(ConversationContext("t", "ada", messages=[form(SAID)]))
    queue.add(ConversationContext("t", "ada", messages=[form(SAID), form("I like pears")]))
    assert queue.close(timeout=60)
    assert {fact.content for fact in FactStore(store, "ada").list()} == {"Likes figs", "Likes pears"}
    assert [prompt[-1].text.count(SAID) for prompt in asked.prompts] == [1]


async def test_tokens_are_counted_in_every_form(form: Form) -> None:
    counted: list[BaseMessage] = [HumanMessage(SAID)]
    assert await acount_tokens([form(SAID)]) == await acount_tokens(counted) > await acount_tokens(SAID)
    assert count_tokens([form(SAID)]) == count_tokens(counted)
