"""An agent's view with a summary: the budget's laws hold whatever is due, and nothing of the thread is changed."""

import re
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from graphs.middleware import PalimpsestSummary
from tests.fakes import RecordingModel
from tests.threads import Life, Thread, broken_pairs, newest_user, own_ids, word_counter, words

WINDOW = 100_000


def model(respond: Any = lambda messages: f"summary of {len(messages[-1].text.split())} words") -> RecordingModel:
    return RecordingModel(respond=respond, profile={"max_input_tokens": WINDOW})


class AgentThread(Thread):
    """A thread whose view a `PalimpsestSummary` makes, as an agent calls it."""

    middleware: PalimpsestSummary

    def say(self, message: BaseMessage) -> None:
        if message.text.startswith("edited"):
            message = HumanMessage(f"{message.id} {message.text}", id=message.id)
        super().say(message)

    def summarize(self) -> list[BaseMessage]:
        before = list(self.messages)
        state: Any = {"messages": self.messages, "palimpsest_summary": self.context}
        update = self.middleware.before_model(state, None)
        self.context = (update or {}).get("palimpsest_summary", self.context)
        state = {"messages": self.messages, "palimpsest_summary": self.context}
        asked: list[ModelRequest[Any]] = []

        def answer(request: ModelRequest[Any]) -> ModelResponse[Any]:
            asked.append(request)
            return ModelResponse([AIMessage("ok")])

        self.middleware.wrap_model_call(ModelRequest(model=model(), messages=self.messages, state=state), answer)
        assert self.messages == before
        system = asked[0].system_message
        return [*([system] if system else []), *asked[0].messages]


def opened(trigger: Any, respond: Any = None, **options: Any) -> AgentThread:
    thread = AgentThread(word_counter(), WINDOW)

    def flush(messages: list[BaseMessage]) -> None:
        thread.flushed.extend(str(message.id) for message in messages)

    options = {"token_counter": thread.counter, "memory_flush_hook": flush, **options}
    thread.middleware = PalimpsestSummary(model(respond) if respond else model(), trigger=trigger, **options)
    return thread


def seen(view: list[BaseMessage], end: str = r"\b") -> set[str]:
    """Return the ids of the messages that are shown; joined ones keep the last id, and each begins with its own."""
    return own_ids(view).union(*(re.findall(rf"\b[ah]\d+{end}", message.text) for message in view))


def check(thread: AgentThread, view: list[BaseMessage], limit: int) -> None:
    assert thread.counter(view) <= limit
    assert newest_user(thread.messages) in own_ids(view)
    assert not broken_pairs(view, thread.messages)
    assert len(thread.flushed) == len(set(thread.flushed))
    # A message that is shortened may begin with "h5" where it was "h54": a whole id has a blank behind it.
    assert not seen(view, end="(?= )") & set(thread.flushed)
    assert own_ids(thread.messages) - thread.removed <= seen(view) | set(thread.flushed)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**9),
    tokens=st.integers(300, 3000),
    share=st.integers(30, 90),
    keep=st.tuples(st.just("tokens"), st.integers(1, 2500)) | st.tuples(st.just("messages"), st.integers(1, 30)),
)
@example(seed=45, tokens=300, share=30, keep=("messages", 1))  # shortened in the middle of its id
def test_the_laws_hold_in_every_state(seed: int, tokens: int, share: int, keep: Any) -> None:
    thread = opened(("tokens", tokens), max_summary_tokens=share, keep=keep)
    life = Life(thread, Random(seed), tokens, lambda view: check(thread, view, tokens))
    for _ in range(30):
        life.turn()


def talk(thread: AgentThread, turns: int, size: int = 20) -> list[list[BaseMessage]]:
    views = []
    for _ in range(turns):
        thread.say(HumanMessage(words(size), id=thread.identity("h")))
        views.append(thread.summarize())
        thread.say(AIMessage(words(size), id=thread.identity("a")))
    return views


def test_a_number_of_messages_is_a_trigger_of_its_own() -> None:
    thread = opened(("messages", 10), keep=("messages", 4))
    views = talk(thread, 20)
    assert thread.context["running_summary"].summary
    assert max(len(own_ids(view)) for view in views) <= 10
    assert len(own_ids(views[-1])) >= 4
    assert len(thread.messages) == 40


def test_by_default_a_summary_is_due_at_four_fifths_of_what_the_model_takes() -> None:
    thread = AgentThread(word_counter(), WINDOW)
    told = RecordingModel(respond=lambda _: "a summary", profile={"max_input_tokens": 1_000})
    thread.middleware = PalimpsestSummary(told, token_counter=thread.counter)
    longest = max(thread.counter(view) for view in talk(thread, 40))
    assert 700 < longest <= 800
    assert thread.context["running_summary"].summary


def test_where_nobody_knows_what_the_model_takes_a_summary_is_due_at_8192_tokens() -> None:
    thread = AgentThread(word_counter(), WINDOW)
    untold = RecordingModel(respond=lambda _: "a summary")
    thread.middleware = PalimpsestSummary(untold, token_counter=thread.counter, keep=("tokens", 2_000))
    longest = max(thread.counter(view) for view in talk(thread, 40, 200))
    assert 7_700 < longest <= 8_192
    assert thread.context["running_summary"].summary


def test_a_prompt_in_langchains_form_points_to_the_conversation() -> None:
    prompts: list[str] = []

    def respond(messages: list[BaseMessage]) -> str:
        prompts.append(messages[-1].text)
        return "They talked of bees."

    thread = opened(("tokens", 200), respond, max_summary_tokens=30, summary_prompt="Short, please:\n{messages}")
    talk(thread, 20)
    assert len(prompts) > 1
    assert prompts[0].endswith("</conversation>\n\nShort, please:\n[the conversation above]")
    assert "They talked of bees." in prompts[1]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"trigger": ("tokens", 0)}, "trigger must be a number"),
        ({"trigger": ("tokens", True)}, "trigger must be a number"),
        ({"trigger": ("tokens", 1.5)}, "trigger must be a number"),
        ({"trigger": ("fraction", 0.5)}, "trigger must be a number"),
        ({"trigger": {"tokens": 400}}, "trigger must be a number"),
        ({"trigger": []}, "trigger must be a number"),
        ({"trigger": 400}, "trigger must be a number"),
        ({"keep": ("messages", -1)}, "keep must be a number"),
        ({"keep": "all"}, "keep must be a number"),
        ({"max_summary_tokens": 0}, "max_summary_tokens must be at least 1"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_name(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        PalimpsestSummary(model(), **wrong)
