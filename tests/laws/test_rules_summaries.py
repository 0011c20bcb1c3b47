"""C1 to C8: a thread within its budget, in every state that it can reach, with the hook before the loss."""

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages

from palimpsest import (
    RunningSummary,
    SummarizationNode,
    SummarizationResult,
    asummarize_messages,
    count_tokens,
    summarize_messages,
    summarized_ids,
)
from tests.fakes import RecordingModel
from tests.laws.life import Kept, Life, broken_pairs, human, newest_user, own_ids, talk, words


def count_words(messages: Iterable[BaseMessage]) -> int:
    """Count tokens, in langmem's form: a message is four, a word one, an image ten, a call of a tool what it says."""
    total = 0
    for message in messages:
        blocks = message.content if isinstance(message.content, list) else []
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        total += 4 + len(message.text.split()) + 10 * sum("image" in str(block) for block in blocks)
        total += len(json.dumps([[call["name"], call["args"]] for call in calls]).split()) if calls else 0
    return total


def saying(*replies: Any) -> RecordingModel:
    """Return a model that gives these replies, the last one again and again."""
    waiting = list(replies or ["what was said"])
    return RecordingModel(respond=lambda _: waiting.pop(0) if len(waiting) > 1 else waiting[0])


def summarize(messages: list[BaseMessage], model: RecordingModel | None = None, **options: Any) -> SummarizationResult:
    limits: dict[str, Any] = {"running_summary": None, "max_tokens": 200, "max_summary_tokens": 40, **options}
    return summarize_messages(messages, model=model or saying(), token_counter=count_words, **limits)


@dataclass
class Thread(Kept):
    """What a program does around `summarize_messages`; a branch restores `flushed` with the messages."""

    model: RecordingModel
    max_tokens: int
    options: dict[str, Any]
    hook: Callable[[], None] = lambda: None
    cuts: int = 0
    tokens_said: int = 0

    def say(self, message: BaseMessage) -> None:
        self.tokens_said += count_words([message])
        super().say(message)

    def leave(self, gone: list[BaseMessage]) -> None:
        self.hook()
        self.flushed += [str(message.id) for message in gone]

    def summarize(self) -> list[BaseMessage]:
        before = self.context.get("running_summary")
        result = summarize(
            self.messages,
            self.model,
            running_summary=before,
            max_tokens=self.max_tokens,
            memory_flush_hook=self.leave,
            **self.options,
        )
        self.context = {"running_summary": result.running_summary}
        self.cuts += result.running_summary is not before
        return result.messages


def live(thread: Thread, seed: int, turns: int, *, is_failing: bool = False) -> None:
    def check(view: list[BaseMessage]) -> None:
        assert count_words(view) <= thread.max_tokens
        assert newest_user(thread.messages) in own_ids(view)
        assert not broken_pairs(view, thread.messages)
        assert len(thread.flushed) == len(set(thread.flushed))
        assert not own_ids(view) & set(thread.flushed)
        if not is_failing:
            assert own_ids(thread.messages) - thread.removed <= own_ids(view) | set(thread.flushed)

    life = Life(thread, Random(seed), thread.max_tokens, check)
    for _ in range(turns):
        life.turn()


limits = st.fixed_dictionaries(
    {
        "max_summary_tokens": st.integers(30, 90),
        "keep_tokens": st.none() | st.integers(1, 2500),
        "keep_messages": st.none() | st.integers(1, 30),
        "max_tokens_before_summary": st.none() | st.integers(50, 3000),
        "portion_tokens": st.none() | st.integers(40, 400),
    }
)


@settings(max_examples=12)
@given(seed=st.integers(0, 10**9), max_tokens=st.integers(200, 3000), limits=limits)
def test_C1_C2_C5_the_laws_hold_in_every_state(seed: int, max_tokens: int, limits: dict[str, Any]) -> None:
    live(Thread(saying("a summary"), max_tokens, limits), seed, 30)


def test_C1_what_leaves_a_view_for_tool_calls_that_cannot_be_shortened_is_in_the_summary() -> None:
    live(Thread(saying("a summary"), 200, {"max_summary_tokens": 90, "portion_tokens": 40}), seed=0, turns=40)


@settings(max_examples=5)
@given(seed=st.integers(0, 10**9))
def test_C5_model_and_hook_that_fail_now_and_then_break_no_law(seed: int) -> None:
    dice = Random(seed)
    replies: list[Any] = ["a summary", "a summary", "", "<think>hm", TimeoutError("late")]

    def hook() -> None:
        if dice.random() < 0.3:
            raise ConnectionError("queue is down")

    model = RecordingModel(respond=lambda _: dice.choice(replies))
    live(Thread(model, 800, {"max_summary_tokens": 60}, hook), seed, 25, is_failing=True)


@settings(max_examples=5)
@given(seed=st.integers(0, 10**9), max_tokens=st.integers(300, 3000), keep=st.none() | st.integers(50, 1000))
def test_C1_there_is_one_summary_at_most_for_each_keep_tokens_of_new_text(
    seed: int, max_tokens: int, keep: int | None
) -> None:
    thread = Thread(saying("a summary"), max_tokens, {"max_summary_tokens": 60, "keep_tokens": keep})
    live(thread, seed, 25)
    half = (max_tokens - 60) // 2
    assert thread.cuts <= thread.tokens_said / min(keep or half, half)


def test_C3_the_first_summary_says_what_it_stands_for() -> None:
    model, gone = saying(), list[list[str]]()
    result = summarize(talk(8), model, memory_flush_hook=lambda left: gone.append([str(one.id) for one in left]))
    running = result.running_summary
    assert isinstance(running, RunningSummary)
    assert running.summary == "what was said"
    (flushed,) = gone
    assert running.summarized_message_ids == set(flushed) == summarized_ids(talk(8), running)
    assert running.last_summarized_message_id == flushed[-1]
    assert own_ids(result.messages) == own_ids(talk(8)) - set(flushed)
    assert all(f"{name} " in str(model.prompts) for name in flushed)
    assert count_words(result.messages) <= 200


def test_C4_the_next_one_extends_it_by_what_is_new_alone() -> None:
    model = saying("first", "second")
    first = summarize(talk(8), model).running_summary
    assert first is not None
    gone: list[str] = []
    result = summarize(
        talk(14),
        model,
        running_summary=first,
        memory_flush_hook=lambda left: gone.extend(str(one.id) for one in left),
    )
    second = result.running_summary
    assert second is not None
    assert second.summary == "second"
    assert not first.summarized_message_ids & set(gone)
    assert summarized_ids(talk(14), second) == first.summarized_message_ids | set(gone)
    assert second.last_summarized_message_id == gone[-1]
    asked = str(model.prompts[-1])
    assert "first" in asked
    assert not [name for name in first.summarized_message_ids if f"{name} word" in asked]


@pytest.mark.parametrize("reply", ["", "<think>hm", ConnectionError("down")])
def test_an_empty_or_failed_summary_changes_nothing(reply: Any) -> None:
    gone: list[BaseMessage] = []
    first = summarize(talk(8)).running_summary
    for running in (None, first):
        result = summarize(talk(20), saying(reply), running_summary=running, memory_flush_hook=gone.extend)
        assert result.running_summary is running
        assert count_words(result.messages) <= 200
    assert gone == []


@pytest.mark.parametrize("failing", ["model", "hook"])
def test_what_failed_is_asked_for_once_a_turn_and_works_later(failing: str) -> None:
    works, flushed = False, list[str]()

    def hook(gone: list[BaseMessage]) -> None:
        if failing == "hook" and not works:
            raise ConnectionError("down")
        flushed.extend(str(message.id) for message in gone)

    model = saying(ConnectionError("down") if failing == "model" else "what was said")
    node = SummarizationNode(
        model=model, max_tokens=200, max_summary_tokens=40, token_counter=count_words, memory_flush_hook=hook
    )
    state: dict[str, Any] = {"messages": talk(8), "context": {"theirs": 1}}
    for turn in range(4):
        works = turn == 3
        model.respond = (lambda _: "what was said") if works else model.respond
        state["messages"] = add_messages(state["messages"], human(f"q{turn}"))
        for step in range(3):  # the node runs before each call of a tool
            asked = len(model.prompts)
            state |= {key: value for key, value in node.invoke(state).items() if key != "messages"}
            assert count_words(state["summarized_messages"]) <= 200
            assert step == 0 or works or len(model.prompts) == asked
            call = {"name": "look", "args": {}, "id": f"{turn}-{step}"}
            asks = AIMessage("", tool_calls=[call], id=f"a{turn}-{step}")
            found = ToolMessage(words(10), tool_call_id=call["id"], id=f"t{turn}-{step}")
            state["messages"] = [*state["messages"], asks, found]
    assert state["context"]["running_summary"].summary == "what was said"
    assert set(state["context"]) == {"theirs", "running_summary"}
    assert len(flushed) == len(set(flushed)) > 0


def test_a_summary_longer_than_its_share_is_asked_for_once_more_then_cut() -> None:
    model = saying(words(90))
    result = summarize(talk(8), model)
    assert len(model.prompts) == 2
    assert result.running_summary is not None
    assert len(result.running_summary.summary.split()) <= 40
    assert count_words(result.messages) <= 200


def test_parallel_tool_calls_are_never_split() -> None:
    calls = [{"name": "look", "args": {"at": name}, "id": name} for name in ("x", "y")]
    said: list[BaseMessage] = [
        human("h1", 60),
        AIMessage("", id="a1", tool_calls=calls),
        ToolMessage(words(40), tool_call_id="x", id="t1"),
        ToolMessage(words(40), tool_call_id="y", id="t2"),
        AIMessage(words(10), id="a2"),
        human("h2", 40),
    ]
    for limit in range(60, 220, 10):
        assert broken_pairs(summarize(said, max_tokens=limit, max_summary_tokens=20).messages, said) == []


@pytest.mark.parametrize(
    "messages",
    [
        [*talk(3)[:-1], human("huge", 5000)],
        [SystemMessage(words(900), id="s"), *talk(5)],
        [*(SystemMessage(f"rule {number} {words(7)}", id=f"s{number}") for number in range(100)), *talk(3)],
    ],
    ids=["question", "system message", "system messages"],
)
def test_C1_what_is_larger_than_the_budget_is_shortened_and_says_so(
    messages: list[BaseMessage], caplog: pytest.LogCaptureFixture
) -> None:
    result = summarize(messages)
    assert newest_user(result.messages) == newest_user(messages)
    assert count_words(result.messages) <= 200
    assert any(record.levelno == logging.WARNING for record in caplog.records)
    if messages[-1].id == "huge":
        assert "left out" in result.messages[-1].text
        assert len(messages[-1].text.split()) == 5000


@pytest.mark.parametrize("lost", [1, 3], ids=["the last summarized one", "three of them"])
def test_a_summarized_message_that_is_gone_breaks_nothing_and_none_comes_back(lost: int) -> None:
    first = summarize(talk(5)).running_summary
    assert first is not None
    gone = [m.id for m in talk(5) if m.id in first.summarized_message_ids][-lost:]
    calls: list[str] = []
    for turns, max_tokens in ((6, 200), (9, 200), (9, 1000)):
        result = summarize(
            [m for m in talk(turns) if m.id not in gone],
            running_summary=first,
            max_tokens=max_tokens,
            memory_flush_hook=lambda leaving: calls.extend(str(m.id) for m in leaving),
        )
        assert not own_ids(result.messages) & first.summarized_message_ids
        assert newest_user(result.messages) == f"h{turns}"
    assert calls
    assert not set(calls) & first.summarized_message_ids


@pytest.mark.parametrize(
    ("messages", "options", "said"),
    [
        (talk(1), {"max_summary_tokens": 200}, "max_summary_tokens"),
        (talk(1), {"max_summary_tokens": 256}, "max_summary_tokens"),
    ],
)
def test_what_langmem_refuses_is_refused(messages: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        summarize(messages, **options)


async def test_langmems_templates_and_counter_are_taken() -> None:
    options: dict[str, Any] = {
        "running_summary": None,
        "max_tokens": 6,
        "max_summary_tokens": 1,
        "token_counter": lambda messages: len(list(messages)),
        "initial_summary_prompt": ChatPromptTemplate.from_messages(
            [("placeholder", "{messages}"), ("user", "Sum up:")]
        ),
        "final_prompt": ChatPromptTemplate.from_messages(
            [("placeholder", "{system_message}"), ("user", "Earlier: {summary}"), ("placeholder", "{messages}")]
        ),
    }
    for is_sync in (True, False):
        model = saying()
        if is_sync:
            result = summarize_messages(talk(5), model=model, **options)
        else:
            result = await asummarize_messages(talk(5), model=model, **options)
        assert model.prompts[0][-1].text.endswith("\n\nSum up:")
        assert [m.text.split()[0] for m in model.prompts[0]][:2] == ["h1", "a1"]
        assert result.messages[0].text == "Earlier: what was said"
        assert len(result.messages) <= 6


def node(model: RecordingModel | None = None, **options: Any) -> SummarizationNode:
    limits: dict[str, Any] = {"max_tokens": 200, "max_summary_tokens": 40, "token_counter": count_words, **options}
    return SummarizationNode(model=model or saying(), **limits)


@pytest.mark.parametrize(
    "context", [None, {}, {"running_summary": None}, {"running_summary": 7}, {"theme": "dark"}, "x"]
)
def test_C7_the_node_reads_and_writes_its_keys_whatever_stands_under_context(context: Any) -> None:
    model = saying()
    update = node(model, input_messages_key="talk").invoke({"talk": talk(5), "context": context})
    assert set(update) == {"summarized_messages", "context"}
    assert update["summarized_messages"][-1] == talk(5)[-1]
    assert update["context"]["running_summary"].summary == "what was said"
    assert ("theme" in update["context"]) == (context == {"theme": "dark"})
    assert "nostream" in model.tags_seen[0]
    with pytest.raises(ValueError, match="talk"):
        node(input_messages_key="talk").invoke({"messages": talk(5)})


def test_C8_with_one_key_all_messages_are_removed_then_the_new_list_follows() -> None:
    compact, context, identity = node(output_messages_key="messages"), dict[str, Any](), set[Any]()
    messages: Any = [SystemMessage("Be brief.", id="s")]
    for turn in range(1, 30):
        messages = add_messages(messages, human(f"h{turn}", 300 if turn == 29 else 20))
        update = compact.invoke({"messages": messages, "context": context})
        first, *rest = update["messages"]
        if update.get("context", context) != context:
            assert isinstance(first, RemoveMessage)
            assert first.id == REMOVE_ALL_MESSAGES
            assert rest[-1] == messages[-1]  # what is shortened for the model stays whole in the state
        messages, context = add_messages(messages, update["messages"]), update.get("context", context)
        identity |= {m.id for m in messages if isinstance(m, SystemMessage)} - {"s"}
        messages = add_messages(messages, AIMessage(words(20), id=f"a{turn}"))
    assert [m.id for m in messages if isinstance(m, SystemMessage)] == ["s", *identity]
    assert len(identity) == 1


STORED = {"summary": "Ada", "summarized_message_ids": ["h1", "a1"], "last_summarized_message_id": "a1"}


@pytest.mark.parametrize("ids", [["h1", "a1"], ("h1", "a1"), {"h1", "a1"}])
def test_a_running_summary_comes_back_from_whatever_a_saver_made_of_it(ids: Any) -> None:
    context = {"running_summary": {**STORED, "summarized_message_ids": ids}}
    update = node().invoke({"messages": talk(3), "context": context})
    assert own_ids(update["summarized_messages"]) == {"h2", "a2", "h3"}
    assert "Ada" in update["summarized_messages"][0].text


def test_C1_what_a_thread_keeps_of_its_summary_stays_bounded() -> None:
    state: dict[str, Any] = {"messages": [], "context": {}}
    compact = node(output_messages_key="messages")
    for turn in range(400):
        state["messages"] = add_messages(state["messages"], human(f"h{turn}"))
        update = compact.invoke(state)
        state = {"messages": add_messages(state["messages"], update["messages"]), "context": update.get("context", {})}
    assert len(state["context"]["running_summary"].summarized_message_ids) <= 64


def test_C6_special_tokens_in_what_people_write_are_counted() -> None:
    assert count_tokens("") < count_tokens("two words") < count_tokens("<|endoftext|>" * 10)
