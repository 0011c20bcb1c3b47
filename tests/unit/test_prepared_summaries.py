"""A summary that is written before it is due: the cut is the same, and nobody waits for a model."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graphs.turn.prepared import PreparedSummaries
from memory.context.budget import units
from memory.context.effects import SoFar
from memory.context.running_summary import WrittenSummary
from memory.context.summarization import SummarizationNode
from memory.effects import in_daemon_thread
from memory.text import digest
from tests.fakes import Clock, RecordingModel
from tests.summarizing import human, saying, talk
from tests.threads import Life, broken_pairs, newest_user, own_ids, start, word_counter, words

SHARE = 0.7
WAIT = 30.0


def node_of(model: RecordingModel, prepared: object = None, **options: Any) -> SummarizationNode:
    return SummarizationNode(
        model=model,
        max_tokens=options.pop("max_tokens", 200),
        max_summary_tokens=options.pop("max_summary_tokens", 40),
        token_counter=word_counter(),
        prepared_summary=lambda: prepared,  # type: ignore[arg-type, return-value]
        **options,
    )


def state_of(messages: list[BaseMessage], **context: Any) -> dict[str, Any]:
    return {"messages": messages, "context": context}


def prepare(node: SummarizationNode, state: dict[str, Any], share: float = SHARE) -> WrittenSummary | None:
    leaving = node.leaves_soon(state, share)
    return node.prepare(state, leaving) if leaving else None


def prepared(messages: list[BaseMessage], share: float = SHARE, **options: Any) -> WrittenSummary:
    written = prepare(node_of(saying("what was said before"), **options), state_of(messages), share)
    assert written is not None
    return written


def test_a_summary_that_was_written_ahead_is_used_and_no_model_is_asked() -> None:
    model, flushed = saying(), list[list[str]]()
    written = prepared(talk(4))
    node = node_of(model, written, memory_flush_hook=lambda gone: flushed.append([str(one.id) for one in gone]))

    result = node.result(state_of(talk(6)))

    assert model.prompts == []
    assert flushed == [written["ids"]]
    assert result.cut is not None
    assert result.cut.ready
    assert result.running_summary is not None
    assert result.running_summary.summary == "what was said before"
    assert not own_ids(result.messages) & set(written["ids"])


def test_too_early_nothing_is_written() -> None:
    model = saying()
    assert prepare(node_of(model), state_of(talk(2))) is None
    assert model.prompts == []


@pytest.mark.parametrize(
    "change",
    [
        lambda messages: [human("h1", 19), *messages[1:]],
        lambda messages: messages[1:],
        lambda messages: [messages[1], messages[0], *messages[2:]],
    ],
    ids=["edited", "removed", "moved"],
)
def test_one_whose_messages_changed_is_not_used(change: Callable[[list[BaseMessage]], list[BaseMessage]]) -> None:
    model = saying()
    result = node_of(model, prepared(talk(4))).result(state_of(change(talk(7))))
    assert result.cut is not None
    assert not result.cut.ready
    assert model.prompts


def test_one_beside_which_the_rest_does_not_fit_is_not_used() -> None:
    model = saying()
    result = node_of(model, prepared(talk(4))).result(state_of([*talk(7)[:-1], human("large", 120)]))
    assert result.cut is not None
    assert not result.cut.ready


@pytest.mark.parametrize("record", [None, {}, {"ids": "h1"}, {"ids": ["h1"], "summary": "x", "of": "else"}, "text"])
def test_what_is_no_summary_of_these_messages_is_not_used(record: object) -> None:
    result = node_of(saying(), record).result(state_of(talk(6)))
    assert result.cut is not None
    assert not result.cut.ready


async def test_one_may_be_waited_for() -> None:
    written = prepared(talk(4))

    async def get() -> WrittenSummary:
        await asyncio.sleep(0)
        return written

    model = saying()
    node = SummarizationNode(
        model=model, max_tokens=200, max_summary_tokens=40, token_counter=word_counter(), prepared_summary=get
    )
    result = await node.aresult(state_of(talk(6)))
    assert result.cut is not None
    assert result.cut.ready
    assert node.result(state_of(talk(6))).cut == result.cut


@settings(deadline=None)
@given(
    seed=st.integers(0, 10**9),
    filled=st.integers(500, 1000),
    largest=st.integers(2, 200),
    more=st.lists(st.integers(1, 400), min_size=1, max_size=20),
    keep=st.none() | st.integers(1, 500),
    number=st.none() | st.integers(2, 12),
)
def test_what_was_prepared_is_the_beginning_of_what_leaves(
    seed: int, filled: int, largest: int, more: list[int], keep: int | None, number: int | None
) -> None:
    """Whatever is said in between, the next cut takes at least these messages."""
    options: dict[str, Any] = {"max_tokens": 1000, "max_summary_tokens": 100, "keep_tokens": keep}
    options["keep_messages"] = number
    dice, messages, tokens = Random(seed), list[BaseMessage](), 0
    while (size := dice.randrange(1, largest)) + tokens <= filled:
        messages, tokens = [*messages, human(f"h{len(messages)}", size)], tokens + size
    written = prepare(node_of(saying(), **options), state_of(messages), 0.5)
    gone: list[str] = []
    for at, size in enumerate(more):
        messages = [*messages, human(f"m{at}", size)]
        node = node_of(saying(), memory_flush_hook=lambda left: gone.extend(str(one.id) for one in left), **options)
        node.result(state_of(messages))
        if gone and written:
            assert gone[: len(written["ids"])] == written["ids"]
            return


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**9), compact=st.booleans(), share=st.floats(0.3, 1.0))
def test_the_laws_hold_whatever_was_written_ahead(seed: int, compact: bool, share: float) -> None:
    """With edits, removals and branches between: also a stale record is at most not used."""
    dice, written = Random(seed), list[WrittenSummary | None]([None])
    thread = start(600, compact=compact, max_summary_tokens=80, prepared_summary=lambda: dice.choice(written))

    def check(view: list[BaseMessage]) -> None:
        assert thread.counter(view) <= thread.max_tokens
        assert newest_user(thread.messages) in own_ids(view)
        assert not broken_pairs(view, thread.messages)
        assert len(thread.flushed) == len(set(thread.flushed))
        assert not own_ids(view) & set(thread.flushed)
        assert own_ids(thread.messages) - thread.removed <= own_ids(view) | set(thread.flushed)

    life = Life(thread, Random(seed), 600, check)
    for _ in range(40):
        life.turn()
        record = prepare(thread.node, {"messages": thread.messages, "context": thread.context}, share)
        written = [*written[-3:], record]


def test_a_long_conversation_costs_what_it_costs_without_and_hardly_waits() -> None:
    def lived(ahead: bool) -> tuple[int, int, int]:
        newest: list[WrittenSummary | None] = [None]
        base: object = None
        model = saying("summary " + " ".join(f"w{at}" for at in range(30)))
        thread = start(1000, model=model, max_summary_tokens=80, prepared_summary=lambda: newest[0])
        dice = Random(5)
        for at in range(300):
            thread.say(HumanMessage(" ".join(["word"] * dice.randrange(5, 60)), id=f"h{at}"))
            thread.summarize()
            thread.say(human(f"a{at}", dice.randrange(5, 60)))
            if ahead and (newest[0] is None or base is not thread.context.get("running_summary")):
                base = thread.context.get("running_summary")
                newest[0] = prepare(thread.node, {"messages": thread.messages, "context": thread.context})
        tokens = sum(len(message.text.split()) for prompt in model.prompts for message in prompt)
        return tokens, len(thread.cuts), sum(cut.ready for cut in thread.cuts)

    (tokens, cuts, ready), (tokens_before, cuts_before, _) = lived(True), lived(False)
    assert cuts_before > 10
    assert cuts <= cuts_before * 1.1
    assert tokens <= tokens_before * 1.1
    assert ready >= cuts * 0.95


class Writing:
    """A summary whose writing ends when the test says so."""

    def __init__(self, written: WrittenSummary | None = None, error: Exception | None = None) -> None:
        self.calls, self.may_end = 0, threading.Event()
        self._written, self._error = written, error

    def __call__(self, *_: object) -> WrittenSummary | None:
        self.calls += 1
        assert self.may_end.wait(WAIT)
        if self._error:
            raise self._error
        return self._written


def begin(kept: PreparedSummaries, writing: Writing, made_for: str = "one", stands: bool = True, **more: Any) -> None:
    kept.start("thread", made_for, writing, still_stands=lambda _: stands, **more)


async def test_one_state_is_prepared_once_and_an_answer_under_way_is_waited_for() -> None:
    kept, writing = PreparedSummaries(WAIT), Writing({"summary": "s"})
    for _ in range(3):
        begin(kept, writing)
    getting = asyncio.create_task(kept.get("thread", "one"))
    await asyncio.sleep(0)
    assert not getting.done()
    writing.may_end.set()
    assert await getting == {"summary": "s"}
    begin(kept, writing)
    assert await kept.get("thread", "one") == {"summary": "s"}
    assert writing.calls == 1


async def test_one_that_takes_its_time_is_waited_for_no_longer_than_it_has_been_under_way() -> None:
    clock, writing = Clock(), Writing({"summary": "s"})
    kept = PreparedSummaries(WAIT, patience=0.01, clock=clock)
    begin(kept, writing)
    assert await kept.get("thread", "one") is None  # the turn asks for its own
    clock.advance(WAIT)
    getting = asyncio.create_task(kept.get("thread", "one"))
    await asyncio.sleep(0)
    writing.may_end.set()
    assert await getting == {"summary": "s"}
    assert writing.calls == 1


async def test_a_cancelled_turn_does_not_cancel_what_is_written() -> None:
    kept, writing = PreparedSummaries(WAIT), Writing({"summary": "s"})
    begin(kept, writing)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(kept.get("thread", "one"), 0.01)
    writing.may_end.set()
    assert await kept.get("thread", "one") == {"summary": "s"}


async def test_one_that_fails_while_a_turn_waits_for_it_fails_the_summary_of_that_turn_only() -> None:
    kept, writing = PreparedSummaries(WAIT), Writing(error=ValueError("empty"))
    begin(kept, writing)
    getting = asyncio.create_task(kept.get("thread", "one"))
    await asyncio.sleep(0)
    writing.may_end.set()
    with pytest.raises(ValueError, match="empty"):
        await getting
    assert await kept.get("thread", "one") is None


def test_where_no_prepared_summary_comes_the_view_fits_and_no_model_is_asked() -> None:
    def fails() -> None:
        raise TimeoutError("late")

    model = saying()
    node = SummarizationNode(
        model=model, max_tokens=200, max_summary_tokens=40, token_counter=word_counter(), prepared_summary=fails
    )
    result = node.result(state_of(talk(7)))
    assert result.failed
    assert model.prompts == []
    assert word_counter()(result.messages) <= 200


@pytest.mark.parametrize(
    "made",
    [Writing(None), Writing(error=ValueError("empty")), Writing({"summary": "stale"})],
    ids=["too early", "failed", "stale"],
)
async def test_what_came_to_nothing_is_tried_again_after_a_later_turn(made: Writing) -> None:
    kept, again = PreparedSummaries(WAIT), Writing({"summary": "s"})
    made.may_end.set()
    again.may_end.set()
    begin(kept, made)
    with suppress(ValueError):
        await kept.get("thread", "one")
    begin(kept, again, stands=False)
    assert await kept.get("thread", "one") == {"summary": "s"}


async def test_one_made_for_something_else_is_dropped() -> None:
    kept, writing = PreparedSummaries(WAIT), Writing({"summary": "s"})
    writing.may_end.set()
    begin(kept, writing)
    assert await kept.get("thread", "another") is None
    assert await kept.get("thread", "one") is None
    assert len(kept) == 0


async def test_an_erase_drops_what_was_written_of_a_thread_or_a_user() -> None:
    kept, writing = PreparedSummaries(WAIT), Writing({"summary": "s"})
    writing.may_end.set()
    for erased in ("t1", "u_ada"):
        begin(kept, writing, of=("t1", "u_ada"))
        kept.drop("u_eve")
        assert len(kept) == 1
        kept.drop(erased)
        assert len(kept) == 0


def test_only_so_many_are_kept() -> None:
    kept, writing = PreparedSummaries(WAIT, limit=2), Writing({"summary": "s"})
    writing.may_end.set()
    for name in ("a", "b", "c"):
        kept.start(name, "one", writing, still_stands=lambda _: True)
    assert len(kept) == 2


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=20), stop=st.integers(1, 9), dice=st.randoms())
def test_what_was_written_before_a_stop_is_gone_on_with_and_comes_to_the_same(
    sizes: list[int], stop: int, dice: Random
) -> None:
    messages = list[BaseMessage]()
    for at, size in enumerate(sizes):
        messages.append(human(f"h{at}", size))
        if dice.random() < 0.5:  # a call of a tool and its results are one
            calls = [{"name": "look", "args": {}, "id": f"c{at}-{call}"} for call in range(dice.randrange(1, 3))]
            messages.append(AIMessage("", tool_calls=calls, id=f"t{at}"))
            messages += [ToolMessage(words(size), tool_call_id=call["id"], id=f"r{call['id']}") for call in calls]
    model = RecordingModel(respond=lambda prompt: digest(prompt[-1].text)[:8])
    node, state = node_of(model, portion_tokens=60), state_of(messages)
    whole = node.prepare(state, messages)
    asked, groups = len(model.prompts), units(messages)

    def so_far(part: WrittenSummary) -> bool:
        told = units(messages[: len(part["ids"])])
        assert told == groups[: len(told)]
        return len(model.prompts) < asked + stop

    part = node.prepare(state, messages, so_far=so_far)
    assert node.still_stands(state, part, messages)
    assert node.prepare(state, messages, begun=part) == whole
    assert model.prompts[asked:] == model.prompts[:asked]  # nothing is asked for twice


async def test_one_that_fails_on_the_way_is_gone_on_with_after_the_next_turn_and_what_there_is_may_be_used() -> None:
    kept, begun_with = PreparedSummaries(WAIT), list[object]()
    part, ended = WrittenSummary(summary="a part"), threading.Event()

    def write(begun: WrittenSummary | None, so_far: SoFar) -> WrittenSummary | None:
        begun_with.append(begun)
        if begun is None:
            assert so_far(part)
            ended.set()
            raise TimeoutError("late")
        return {"summary": "the whole"}

    kept.start("thread", "one", write, still_stands=lambda _: True)
    with suppress(TimeoutError):
        await kept.get("thread", "one")
    assert await kept.get("thread", "one") == part
    kept.start("thread", "one", write, still_stands=lambda _: True)
    assert await kept.get("thread", "one") == {"summary": "the whole"}
    assert begun_with == [None, part]


@pytest.mark.parametrize("end", ["erased", "too late", "made for something else"])
def test_once_nobody_wants_it_the_model_is_asked_no_more(end: str) -> None:
    kept = PreparedSummaries(0.5 if end == "too late" else WAIT)
    entered, may_go_on, ended, wanted = threading.Event(), threading.Event(), threading.Event(), list[bool]()

    def write(_: WrittenSummary | None, so_far: SoFar) -> WrittenSummary | None:
        entered.set()
        assert may_go_on.wait(WAIT)
        wanted.append(so_far({"summary": "a part"}))
        ended.set()
        return None

    writing = list[Future[WrittenSummary | None]]()

    def begin(call: Callable[[], WrittenSummary | None]) -> "Future[WrittenSummary | None]":
        writing.append(in_daemon_thread(call))
        return writing[-1]

    kept._begin = begin
    kept.start("thread", "one", write, still_stands=lambda _: True, of=("t1",))
    if end == "too late":
        with pytest.raises(TimeoutError):
            writing[0].result(WAIT)
    assert entered.wait(WAIT) or end == "too late"
    if end == "erased":
        kept.drop("t1")
    elif end == "made for something else":
        kept.start("thread", "another", lambda *_: None, still_stands=lambda _: True)
    may_go_on.set()
    assert ended.wait(WAIT) or not entered.is_set()
    assert True not in wanted


def test_what_waits_for_a_place_and_is_erased_meanwhile_asks_no_model() -> None:
    kept, writing = PreparedSummaries(WAIT, limit=9), Writing()
    held = list[Callable[[], Any]]()

    def hold(call: Callable[[], Any]) -> "Future[Any]":
        held.append(call)
        return Future()

    kept._begin = hold
    begin(kept, writing, of=("t1",))
    kept.drop("t1")
    assert held[0]() is None
    assert writing.calls == 0
