"""What a user waits for besides the model: turns held up by a summary, and by a store that is slow, hangs or fails.

    python -m benchmarks.waiting [--turns 200] [--scale 1.0] [--rounds 1000] [--no-summaries]

A long conversation with a fake chat model (0.3 s), a fake summary model (3 s) and 2 s of thinking between turns, at
1,600 tokens, so that a summary is due again and again. `--scale 0.1` makes all these times a tenth. First with
summaries written ahead of time, in both modes of `Context.summarize`; then without, against whose summary tokens the
others' are set; then with langmem's `SummarizationNode` and with langchain's `SummarizationMiddleware`. The bare graph
beside them has no summaries: a turn that waits there waits for a busy machine. Then the time of a turn over the bare
graph, the same model without memory, for four conditions of the store: the graphs take turns.
"""

import argparse
import asyncio
import itertools
import logging
import random
import statistics
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from benchmarks.conversations import words
from benchmarks.langmem_graph import langmem_graph
from benchmarks.measuring import progress
from benchmarks.timed import HOUR, ConditionedStore, TimedModel
from graphs.chat import build_graph
from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.context.tokens import shared_counter

CHAT_SECONDS, SUMMARY_SECONDS, THINKING_SECONDS = 0.3, 3.0, 2.0
BUDGET, SUMMARY_TOKENS, REPLY_TOKENS = 1600, 200, 200
_SHORT = 8
"""Turns of a thread in which no summary is due."""
_SLOW_ROUNDS = 20
"""A turn with a slow store takes more than a second: it takes part in every so manieth round."""

Turn = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Waited:
    """How long the turns of one conversation took, in seconds, and what its summaries cost."""

    name: str
    turns: list[float]
    summary: TimedModel

    def line(self, scale: float, without: "Waited") -> str:
        held_up = sum(seconds > (CHAT_SECONDS + SUMMARY_SECONDS / 2) * scale for seconds in self.turns)
        share = 100 * held_up / len(self.turns)
        return (
            f"{self.name:34} {held_up:4} of {len(self.turns)} turns waited ({share:4.1f} %), "
            f"{self.summary.calls:4} summary calls, {self.summary.awaited:3} of them in a turn, "
            f"{self.summary.tokens:8,} tokens in them "
            f"({self.summary.tokens / without.summary.tokens:.2f}x)"
        )


def ours(
    chat: TimedModel,
    summary: TimedModel,
    store: BaseStore | None,
    *,
    summarize: str = "before",
    share: float = 0.7,
    turns_of_thread: int | None = None,
) -> tuple[Turn, MemoryService]:
    """Return one turn of the chat graph, in one thread or in a new one after so many turns."""
    quiet = MemoryConfig(debounce_seconds=HOUR, max_wait_seconds=HOUR, prepare_summary_share=share)
    service = MemoryService(
        Settings(model="fake:model", memory=quiet), lambda _, purpose: summary if purpose == "summary" else chat
    )
    graph = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=store)
    name = _thread_names(turns_of_thread)
    context: Any = {
        "max_tokens": BUDGET,
        "max_summary_tokens": SUMMARY_TOKENS,
        "reply_tokens": REPLY_TOKENS,
        "memory_tokens": 200,
        "summarize": summarize,
    }

    async def turn(text: str) -> None:
        thread = next(name)  # a user of its own: what waits for an update grows with a user's turns
        who: RunnableConfig = {"configurable": {"thread_id": thread, "langgraph_auth_user_id": thread}}
        await graph.ainvoke({"messages": [HumanMessage(text)]}, who, context=context)

    return turn, service


def _thread_names(turns: int | None) -> Iterator[str]:
    for number in itertools.count():
        yield "waiting" if turns is None else f"waiting {number // turns}"


def bare(chat: TimedModel, *, turns_of_thread: int | None = None) -> Turn:
    """Return one turn of a graph of one node that asks the model."""

    async def call(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await chat.ainvoke(state["messages"][-20:])]}

    builder = StateGraph(MessagesState)
    builder.add_node("call_model", call)
    builder.add_edge(START, "call_model")
    return _in_threads(builder.compile(checkpointer=InMemorySaver()), turns_of_thread)


def langmem(chat: TimedModel, summary: TimedModel) -> Turn:
    """Return one turn of a graph with langmem's node before the model, as its documentation shows it."""

    async def answer(view: Sequence[AnyMessage]) -> BaseMessage:
        return await chat.ainvoke(view)

    return _in_threads(langmem_graph(summary, BUDGET - REPLY_TOKENS, SUMMARY_TOKENS, answer))


def middleware(chat: TimedModel, summary: TimedModel) -> Turn:
    """Return one turn of an agent with langchain's `SummarizationMiddleware`, keeping half as we do."""
    keep = (BUDGET - REPLY_TOKENS - SUMMARY_TOKENS) // 2
    count: Any = shared_counter()
    summarize = SummarizationMiddleware(
        model=summary, trigger=("tokens", BUDGET - REPLY_TOKENS), keep=("tokens", keep), token_counter=count
    )
    return _in_threads(create_agent(chat, tools=[], middleware=[summarize], checkpointer=InMemorySaver()))


def _in_threads(graph: Any, turns_of_thread: int | None = None) -> Turn:
    name = _thread_names(turns_of_thread)

    async def turn(text: str) -> None:
        config: RunnableConfig = {"configurable": {"thread_id": next(name)}}
        await graph.ainvoke({"messages": [HumanMessage(text, id=str(uuid.uuid4()))]}, config)

    return turn


async def conversation(name: str, turn: Turn, turns: int, thinking: float, summary: TimedModel) -> Waited:
    """Carry out the turns of one conversation and return how long each took."""
    taken = []
    for number in range(turns):
        started = time.perf_counter()
        await turn(words(40, number))
        taken.append(time.perf_counter() - started)
        await asyncio.sleep(thinking)
    return Waited(name, taken, summary)


WITHOUT = "Palimpsest, none ahead of time"


async def summaries(turns: int, scale: float) -> None:
    """Print how many turns wait for a summary: ours and the peers' side by side, as they mostly sleep."""
    progress(f"{turns} turns of six conversations, at {scale:g} of their time")
    own = {
        "Palimpsest, summarize: before": {"share": 0.7, "summarize": "before"},
        "Palimpsest, summarize: after": {"share": 0.7, "summarize": "after"},
        WITHOUT: {"share": 1.0, "summarize": "before"},
    }
    peers: dict[str, Callable[[TimedModel, TimedModel], Turn]] = {
        "langmem's SummarizationNode": langmem,
        "langchain's SummarizationMiddleware": middleware,
        "the bare graph": lambda chat, _: bare(chat),
    }
    work, services = [], []
    for name in (*own, *peers):
        chat, summary = TimedModel(seconds=CHAT_SECONDS * scale), TimedModel(seconds=SUMMARY_SECONDS * scale, size=110)
        if name in own:
            turn, service = ours(chat, summary, InMemoryStore(), **own[name])  # type: ignore[arg-type]
            services.append(service)
        else:
            turn = peers[name](chat, summary)
        work.append(conversation(name, turn, turns, THINKING_SECONDS * scale, summary))
    done = await asyncio.gather(*work)
    (without,) = (waited for waited in done if waited.name == WITHOUT)
    for waited in done:
        print(waited.line(scale, without))
    for service in services:
        await asyncio.to_thread(service.close, 0.0)


@dataclass(slots=True)
class _Compared:
    """A graph whose turns are timed beside those of others.

    Attributes:
        name: What it is.
        turn: One turn of it.
        every: In every how manieth round it takes part.
        first: The times of the turns until its store counted as away, in seconds.
        times: The times of the turns since.
    """

    name: str
    turn: Turn
    every: int = 1
    first: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


async def _timed(turn: Turn, number: int) -> float:
    started = time.perf_counter()
    await turn(words(40, number))
    return time.perf_counter() - started


async def overheads(rounds: int) -> None:
    """Print the time of a turn beside the bare graph's, for a store that is healthy, slow, hanging or failing.

    The ratio compares with the same chat graph without a store, which goes on without memory from the start. The
    graphs take turns, each time in another order, so that whatever else the machine does hits all alike. Each begins a
    new thread after so many turns that no summary is ever due: a store that is away would hold that back.
    """
    compared = [_Compared("a turn of the bare graph", bare(TimedModel(seconds=0.0), turns_of_thread=_SHORT))]
    opened: list[tuple[MemoryService, ConditionedStore]] = []
    for condition in ("", "healthy", "slow", "hanging", "failing"):
        store = ConditionedStore() if condition else None
        chat, summary = TimedModel(seconds=0.0), TimedModel(seconds=0.0)
        turn, service = ours(chat, summary, store, turns_of_thread=_SHORT)
        name = f"a turn, the store {condition}" if condition else "a turn without memory"
        one = _Compared(name, turn, every=_SLOW_ROUNDS if condition == "slow" else 1)
        for number in range(_SHORT):  # warm up
            await turn(words(40, number))
        if store is not None:
            store.condition = condition
            opened.append((service, store))
        while store is not None and condition in ("hanging", "failing") and not service.stores.is_away(store, "write"):
            one.first.append(await _timed(turn, len(one.first)))
        compared.append(one)
    progress(f"{rounds} rounds of {len(compared)} graphs that take turns")
    dice = random.Random(0)
    for number in range(rounds):
        for one in dice.sample(compared, len(compared)):
            if number % one.every == 0:
                one.times.append(await _timed(one.turn, number))
    without = next(one.times for one in compared if one.name == "a turn without memory")
    for one in compared:
        first = f"the first {', '.join(f'{seconds:.3f}' for seconds in one.first)} s; then " if one.first else ""
        ratio = f", {_p99(one.times) / _p99(without):.2f} times the p99 without memory"
        print(f"{one.name:34} {first}{_percentiles(one.times)}{ratio} ({len(one.times)} turns)")
    for service, store in opened:
        store.condition = "failing"  # nothing is to be waited for at the end
        await asyncio.to_thread(service.close, 0.0)


def _p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98]


def _percentiles(seconds: list[float]) -> str:
    cuts = statistics.quantiles(seconds, n=100)
    return f"p50 {1000 * cuts[49]:.1f} ms, p95 {1000 * cuts[94]:.1f} ms, p99 {1000 * cuts[98]:.1f} ms"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=1000, help="turns with each store; about five minutes")
    parser.add_argument("--no-summaries", action="store_true", help="measure the stores only")
    options = parser.parse_args()
    logging.getLogger().setLevel(logging.CRITICAL)  # what fails here is meant to
    shared_counter().tokenizer.warm_up()
    if not options.no_summaries:
        asyncio.run(summaries(options.turns, options.scale))
    asyncio.run(overheads(options.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
