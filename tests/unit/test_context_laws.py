"""The budget's laws over long lives of a thread: they hold in every state that can be reached."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from memory.context.tokenizer import Tokenizer
from memory.context.tokens import TokenCounter
from tests.fakes import RecordingModel
from tests.threads import Life, Thread, broken_pairs, newest_user, own_ids, start


def check(thread: Thread, view: list[BaseMessage], failing: bool = False) -> None:
    assert thread.counter(view) <= thread.max_tokens
    assert newest_user(thread.messages) in own_ids(view)
    assert not broken_pairs(view, thread.messages)
    assert len(thread.flushed) == len(set(thread.flushed))
    assert not own_ids(view) & set(thread.flushed)
    if not failing:
        assert own_ids(thread.messages) - thread.removed <= own_ids(view) | set(thread.flushed)


def live(thread: Thread, seed: int, turns: int, failing: bool = False) -> None:
    life = Life(thread, Random(seed), thread.max_tokens, lambda view: check(thread, view, failing))
    for _ in range(turns):
        life.turn()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    max_tokens=st.integers(200, 3000),
    share=st.integers(30, 90),
    compact=st.booleans(),
    keep=st.none() | st.integers(1, 2500),
    number=st.none() | st.integers(1, 30),
    early=st.none() | st.integers(50, 3000),
    portion=st.none() | st.integers(40, 400),
)
def test_C1_C2_C5_the_laws_hold_in_every_state(
    seed: int,
    max_tokens: int,
    share: int,
    compact: bool,
    keep: int | None,
    number: int | None,
    early: int | None,
    portion: int | None,
) -> None:
    thread = start(
        max_tokens,
        compact=compact,
        max_summary_tokens=share,
        keep_tokens=keep,
        keep_messages=number,
        max_tokens_before_summary=early,
        portion_tokens=portion,
    )
    live(thread, seed, 40)


def test_C1_what_leaves_a_view_for_tool_calls_that_cannot_be_shortened_is_in_the_summary() -> None:
    live(start(200, max_summary_tokens=90, portion_tokens=40), seed=0, turns=40)


@pytest.mark.parametrize("compact", [False, True])
def test_C1_the_laws_hold_over_700_turns(compact: bool) -> None:
    live(start(1500, compact=compact, max_summary_tokens=100), seed=7, turns=700)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**9), compact=st.booleans())
def test_C5_model_and_hook_that_fail_now_and_then_break_no_law(seed: int, compact: bool) -> None:
    dice = Random(seed)

    def reply(messages: list[BaseMessage]) -> str | Exception:
        return dice.choice(["a summary", "a summary", "", "<think>hm", TimeoutError("late")])  # type: ignore[return-value]

    def hook(messages: list[BaseMessage]) -> None:
        if dice.random() < 0.3:
            raise ConnectionError("queue is down")
        thread.flushed.extend(str(message.id) for message in messages)

    thread = start(800, compact=compact, max_summary_tokens=60, model=RecordingModel(respond=reply), hook=hook)
    live(thread, seed, 30, failing=True)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**9), max_tokens=st.integers(300, 3000), keep=st.none() | st.integers(50, 1000))
def test_C1_there_is_one_summary_at_most_for_each_keep_tokens_of_new_text(
    seed: int, max_tokens: int, keep: int | None
) -> None:
    thread = start(max_tokens, max_summary_tokens=60, keep_tokens=keep)
    live(thread, seed, 30)
    half = (max_tokens - 60) // 2
    assert len(thread.cuts) <= thread.tokens_said / min(keep or half, half)


def test_each_message_is_tokenized_once_over_1000_turns_with_edits_and_branches() -> None:
    texts: list[str] = []

    def counted(text: str) -> int:
        texts.append(text)
        return len(text.split())

    thread = start(4000, counter=TokenCounter(tokenizer=Tokenizer([lambda: counted])))
    life = Life(thread, Random(3), 100, unseen)
    for _ in range(1000):
        life.turn()
    assert len(thread.cuts) > 10
    assert len(texts) <= 1.05 * thread.said


def unseen(view: list[BaseMessage]) -> None:
    """What the model sees does not matter to this test."""
