"""A summary that is written before it is due: the cut is the same, and nobody waits for a model."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from graphs.turn.prepared import PreparedSummaries
from memory.context.effects import SoFar
from memory.context.running_summary import WrittenSummary
from memory.context.summarization import SummarizationNode
from memory.effects import in_daemon_thread
from tests.fakes import Clock, RecordingModel
from tests.summarizing import saying
from tests.threads import word_counter

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


def test_only_so_many_are_kept() -> None:
    kept, writing = PreparedSummaries(WAIT, limit=2), Writing({"summary": "s"})
    writing.may_end.set()
    for name in ("a", "b", "c"):
        kept.start(name, "one", writing, still_stands=lambda _: True)
    assert len(kept) == 2


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
