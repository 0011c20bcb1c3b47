"""Counting: three states of the tokenizer, one warning, one count in a message's life, nothing unbounded."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from memory.context.tokens import (
    EXACT_CHARS,
    LOW_DETAIL_TOKENS,
    MEDIA_TOKENS,
    MESSAGE_TOKENS,
    Encoder,
    TokenCounter,
    Tokenizer,
    acount_tokens,
    count_tokens,
    estimate,
    load_tiktoken,
    load_toktok,
    shared_counter,
)
from tests.threads import word_counter, words

Loader = Callable[[], Encoder]
anything = st.text(alphabet=st.characters(codec=None, exclude_categories=()))


def absent() -> Encoder:
    raise ImportError("No module named 'tiktoken'")


def unreachable() -> Encoder:
    raise ConnectionError("the ranks cannot be fetched")


def present() -> Encoder:
    return lambda text: len(text.split())


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("loaders", [[present], [absent, present], [unreachable, present]])
def test_C6_what_can_be_loaded_counts(loaders: list[Loader], caplog: pytest.LogCaptureFixture) -> None:
    tokenizer = Tokenizer(*((each, 5.0) for each in loaders))
    assert tokenizer.count("three short words") == 3
    assert tokenizer.exact
    assert warnings_of(caplog) == []


@pytest.mark.parametrize("loaders", [[], [absent], [unreachable], [unreachable, absent]])
def test_C6_without_one_it_is_a_quarter_of_the_length_after_one_warning(
    loaders: list[Loader], caplog: pytest.LogCaptureFixture
) -> None:
    tokenizer = Tokenizer(*((each, 5.0) for each in loaders))
    assert [tokenizer.count("x" * size) for size in (0, 3, 4, 4001)] == [0, 0, 1, 1000]
    assert not tokenizer.exact
    assert len(warnings_of(caplog)) == 1


def test_C6_a_network_that_never_answers_is_given_up_and_what_comes_late_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = threading.Event()

    def hanging() -> Encoder:
        answers.wait()
        return present()

    tokenizer = Tokenizer((hanging, 0.01))
    assert tokenizer.count("three short words") == estimate("three short words")
    answers.set()
    for thread in threading.enumerate():
        if thread.name == "load-tokenizer":
            thread.join()
    assert tokenizer.count("three short words") == estimate("three short words")
    assert len(warnings_of(caplog)) == 1


def test_C6_what_needs_no_network_has_the_time_that_it_takes_on_a_busy_machine(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def slow() -> Encoder:
        waiting.join(0.1)  # who does not wait for it is gone after that
        return present()

    tokenizer = Tokenizer((slow, None), (absent, 0.0))
    waiting = threading.Thread(target=tokenizer.warm_up)
    waiting.start()
    waiting.join()
    assert tokenizer.exact
    assert warnings_of(caplog) == []


async def test_C6_a_count_on_the_event_loop_that_is_an_estimate_says_so_once_and_names_what_is_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = threading.Event()

    def never() -> Encoder:
        answers.wait()
        return absent()

    tokenizer = Tokenizer((never, 5.0))
    assert [tokenizer.count("three short words") for _ in range(3)] == [estimate("three short words")] * 3
    answers.set()
    await tokenizer.awarm_up()
    assert tokenizer.count("three short words") == estimate("three short words")
    (warning,) = warnings_of(caplog)
    assert "tiktoken" in warning
    assert "acount_tokens" in warning


async def test_C6_a_count_that_is_waited_for_is_exact_from_the_first_on() -> None:
    assert await acount_tokens("three short words") == 3


def test_C6_the_warning_without_a_tokenizer_names_the_package(caplog: pytest.LogCaptureFixture) -> None:
    Tokenizer((absent, 5.0)).count("three short words")
    (warning,) = warnings_of(caplog)
    assert "tiktoken" in warning


async def test_C6_the_event_loop_never_waits_for_the_tokenizer() -> None:
    answers = threading.Event()
    loading: list[int] = []

    def slow() -> Encoder:
        loading.append(threading.get_ident())
        answers.wait()
        return present()

    tokenizer = Tokenizer((slow, 60))
    counter = TokenCounter(tokenizer=tokenizer)
    early = counter.message(HumanMessage("three short words", id="m"))
    assert early == MESSAGE_TOKENS + estimate("three short words")
    answers.set()
    await tokenizer.awarm_up()
    assert counter.message(HumanMessage("three short words", id="m")) == MESSAGE_TOKENS + 3
    assert loading != [threading.get_ident()]


def test_C6_the_tokenizer_is_loaded_once_for_all_threads() -> None:
    loads: list[str] = []

    def counted() -> Encoder:
        loads.append(threading.current_thread().name)
        return present()

    tokenizer = Tokenizer((counted, 5.0))
    threads = [threading.Thread(target=tokenizer.count, args=("a b",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == ["load-tokenizer"]


def loaded(load: Loader) -> Encoder:
    try:
        return load()
    except Exception as error:  # whatever hinders it here, the test is about what it counts
        pytest.skip(f"{load.__name__}: {type(error).__name__}")


@pytest.mark.parametrize("load", [load_toktok, load_tiktoken])
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("hello world", 2),
        ("<|endoftext|>", 7),
        ("The quick brown fox jumps over the lazy dog.", 10),
        ("漢字", 3),
    ],
)
def test_C6_known_counts_of_cl100k_base(load: Loader, text: str, tokens: int) -> None:
    assert loaded(load)(text) == tokens


@given(anything)
def test_C6_any_text_has_a_count(text: str) -> None:
    assert count_tokens(text) >= 0


@pytest.mark.parametrize("text", [" " * 1_000_000, "a" * 10_000_000, "\ud800" * 300_000, "<|endoftext|>" * 100_000])
def test_C6_pathological_text_is_bounded(text: str) -> None:
    asked: list[int] = []

    def recording() -> Encoder:
        def encode(part: str) -> int:
            asked.append(len(part))
            part.encode()
            return len(part)

        return encode

    assert Tokenizer((recording, 5.0)).count(text) == len(text)
    assert sum(asked) <= 2 * EXACT_CHARS


def test_C6_a_long_text_of_one_kind_is_estimated_within_a_hundredth() -> None:
    text = words(500_000)
    assert Tokenizer((present, 5.0)).count(text) == pytest.approx(500_000, rel=0.01)


CALL = {"name": "search", "args": {"query": words(30)}, "id": "call_1"}


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (HumanMessage("a b c"), 3),
        (HumanMessage([{"type": "text", "text": "a b c"}]), 3),
        (HumanMessage([{"type": "image_url", "image_url": {"url": "data:..."}}]), MEDIA_TOKENS),
        (HumanMessage([{"type": "image_url", "image_url": {"url": "x", "detail": "low"}}]), LOW_DETAIL_TOKENS),
        (HumanMessage([{"type": "image", "base64": "A" * 99_999, "mime_type": "image/png"}]), MEDIA_TOKENS),
        (AIMessage("", tool_calls=[CALL]), 32),
        (
            AIMessage(
                [{"type": "tool_use", "id": "call_1", "name": "search", "input": CALL["args"]}], tool_calls=[CALL]
            ),
            32,
        ),
        (ToolMessage("a b c", tool_call_id="call_1"), 4),
    ],
)
def test_C1_everything_in_a_message_counts_once(message: BaseMessage, tokens: int) -> None:
    assert word_counter().message(message) == MESSAGE_TOKENS + tokens


class Counted:
    """A counter in langmem's form that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, messages: Iterable[BaseMessage]) -> int:
        self.asked += [message.text for message in messages]
        return 1


def test_a_message_is_counted_once_however_often_it_comes_back() -> None:
    counted = Counted()
    counter = TokenCounter(counted)
    for _ in range(3):
        assert counter([HumanMessage(f"text {n}", id=str(n)) for n in range(100)]) == 100
    assert len(counted.asked) == 100
    counter.message(HumanMessage("edited", id="5"))
    assert len(counted.asked) == 101


def test_what_a_counter_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.context.tokens.CACHED_MESSAGES", 10)
    counted = Counted()
    counter = TokenCounter(counted)
    for _ in range(2):
        for n in range(20):
            counter.message(HumanMessage(str(n)))
    assert len(counted.asked) == 40


def test_the_public_counts_agree() -> None:
    assert shared_counter().message(HumanMessage("hello world")) == MESSAGE_TOKENS + count_tokens("hello world")


async def test_warming_up_twice_is_no_harm() -> None:
    tokenizer = Tokenizer((present, 5.0))
    await asyncio.gather(tokenizer.awarm_up(), tokenizer.awarm_up())
    assert tokenizer.settled


def test_C6_a_tool_call_that_a_model_garbled_counts_as_it_is_sent() -> None:
    arguments = '{"q": "' + words(500)
    call = {"name": "look", "args": arguments, "id": "c1", "error": None}
    garbled = AIMessage("", invalid_tool_calls=[call], id="a1")
    assert word_counter().message(garbled) == MESSAGE_TOKENS + 1 + len(f"look({arguments})".split())
    assert word_counter().message(AIMessage("", invalid_tool_calls=[{**call, "args": None}])) < 10


async def test_C6_no_tokenizer_is_loaded_beside_another_way_to_count(caplog: pytest.LogCaptureFixture) -> None:
    counter = TokenCounter(lambda messages: len(list(messages)), tokenizer=Tokenizer((absent, 5.0)))
    await counter.awarm_up()
    assert not counter.tokenizer.settled
    assert warnings_of(caplog) == []
    own = TokenCounter(tokenizer=Tokenizer((present, 5.0)))
    await own.awarm_up()
    assert own.tokenizer.settled
