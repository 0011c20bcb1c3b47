"""What a user waits for besides the model: turns held up by a summary, and by a store that is slow, hangs or fails.

    python -m benchmarks.waiting [--turns 200] [--scale 1.0] [--no-summaries]

A long conversation with a fake chat model (0.3 s), a fake summary model (3 s) and 2 s of thinking between turns, at
1,600 tokens, so that a summary is due again and again. `--scale 0.1` makes all these times a tenth. First with
summaries written ahead of time, in both modes of `Context.summarize`; then without, against whose summary tokens the
others' are set; then with langmem's `SummarizationNode` and with langchain's `SummarizationMiddleware`. The bare graph
beside them has no summaries: a turn that waits there waits for a busy machine. Then the time of a turn over the bare
graph, the same model without memory, for four conditions of the store.
"""

import argparse
import asyncio
import logging
import statistics
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore
from pydantic import PrivateAttr

from benchmarks.conversations import words
from benchmarks.measuring import progress
from graphs.chat import build_graph
from graphs.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.context.tokens import shared_counter

CHAT_SECONDS, SUMMARY_SECONDS, THINKING_SECONDS = 0.3, 3.0, 2.0
BUDGET, SUMMARY_TOKENS, REPLY_TOKENS = 1600, 200, 200
HOUR = 3600.0

Turn = Callable[[str], Awaitable[None]]


class TimedModel(BaseChatModel):
    """Answers in 40 words after a fixed time, and counts the tokens that it reads and writes."""

    seconds: float
    size: int = 40
    _tokens: int = PrivateAttr(0)
    _calls: int = PrivateAttr(0)
    _awaited: int = PrivateAttr(0)

    @property
    def _llm_type(self) -> str:
        return "timed"

    @property
    def tokens(self) -> int:
        return self._tokens

    @property
    def calls(self) -> int:
        return self._calls

    @property
    def awaited(self) -> int:
        """Calls on the event loop, as turns make them: what is written ahead of time asks on a thread of its own."""
        return self._awaited

    def _answer(self, messages: list[BaseMessage]) -> ChatResult:
        self._calls += 1
        answer = AIMessage(words(self.size, -self._calls), id=str(uuid.uuid4()))
        self._tokens += shared_counter()([*messages, answer])
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        time.sleep(self.seconds)
        return self._answer(messages)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self._awaited += 1
        await asyncio.sleep(self.seconds)
        return self._answer(messages)


class ConditionedStore(InMemoryStore):
    """A store that takes its time, does not answer, or fails, from the moment it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.condition = "healthy"

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        if self.condition == "failing":
            raise OSError("the disk is gone")
        if self.condition != "healthy":
            time.sleep(0.3 if self.condition == "slow" else 60)
        return super().batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        if self.condition == "failing":
            raise OSError("the disk is gone")
        if self.condition != "healthy":
            await asyncio.sleep(0.3 if self.condition == "slow" else HOUR)
        return await super().abatch(ops)


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
    chat: TimedModel, summary: TimedModel, store: BaseStore | None, *, summarize: str = "before", share: float = 0.7
) -> tuple[Turn, MemoryService]:
    """Return one turn of the chat graph, in one thread."""
    quiet = MemoryConfig(debounce_seconds=HOUR, max_wait_seconds=HOUR, prepare_summary_share=share)
    service = MemoryService(
        Settings(model="fake:model", memory=quiet), lambda _, purpose: summary if purpose == "summary" else chat
    )
    graph = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=store)
    who: RunnableConfig = {"configurable": {"thread_id": "waiting", "langgraph_auth_user_id": "ada"}}
    context: Any = {
        "max_tokens": BUDGET,
        "max_summary_tokens": SUMMARY_TOKENS,
        "reply_tokens": REPLY_TOKENS,
        "memory_tokens": 200,
        "summarize": summarize,
    }

    async def turn(text: str) -> None:
        await graph.ainvoke({"messages": [HumanMessage(text)]}, who, context=context)

    return turn, service


def bare(chat: TimedModel) -> Turn:
    """Return one turn of a graph of one node that asks the model."""

    async def call(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await chat.ainvoke(state["messages"][-20:])]}

    builder = StateGraph(MessagesState)
    builder.add_node("call_model", call)
    builder.add_edge(START, "call_model")
    graph = builder.compile(checkpointer=InMemorySaver())
    return _in_one_thread(graph)


def langmem(chat: TimedModel, summary: TimedModel) -> Turn:
    """Return one turn of a graph with langmem's node before the model, as its documentation shows it."""
    from langmem.short_term import RunningSummary, SummarizationNode

    class Summarized(MessagesState):
        context: dict[str, RunningSummary]

    class View(TypedDict):
        summarized_messages: list[Any]
        context: dict[str, RunningSummary]

    async def call(state: View) -> dict[str, Any]:
        return {"messages": [await chat.ainvoke(state["summarized_messages"])]}

    node = SummarizationNode(
        model=summary,
        max_tokens=BUDGET - REPLY_TOKENS,
        max_tokens_before_summary=BUDGET - REPLY_TOKENS,
        max_summary_tokens=SUMMARY_TOKENS,
        token_counter=shared_counter(),
    )
    builder = StateGraph(Summarized)
    builder.add_node("summarize", node)
    builder.add_node("call_model", call)
    builder.add_edge(START, "summarize")
    builder.add_edge("summarize", "call_model")
    return _in_one_thread(builder.compile(checkpointer=InMemorySaver()))


def middleware(chat: TimedModel, summary: TimedModel) -> Turn:
    """Return one turn of an agent with langchain's `SummarizationMiddleware`, keeping half as we do."""
    keep = (BUDGET - REPLY_TOKENS - SUMMARY_TOKENS) // 2
    count: Any = shared_counter()
    summarize = SummarizationMiddleware(
        model=summary, trigger=("tokens", BUDGET - REPLY_TOKENS), keep=("tokens", keep), token_counter=count
    )
    return _in_one_thread(create_agent(chat, tools=[], middleware=[summarize], checkpointer=InMemorySaver()))


def _in_one_thread(graph: Any) -> Turn:
    config: RunnableConfig = {"configurable": {"thread_id": "waiting"}}

    async def turn(text: str) -> None:
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


async def overheads(turns: int, hanging: int) -> None:
    """Print the time of a turn beside the bare graph's, for a store that is healthy, slow, hanging or failing.

    The ratio compares with the same chat graph without a store, which goes on without memory from the start.
    """
    reference = await conversation("bare", bare(TimedModel(seconds=0.0)), turns, 0.0, TimedModel(seconds=0.0))
    print(f"{'a turn of the bare graph':34} {_percentiles(reference.turns)}")
    turn, service = ours(TimedModel(seconds=0.0), TimedModel(seconds=0.0), None)
    await turn("Warm up.")
    without = (await conversation("without", turn, turns, 0.0, TimedModel(seconds=0.0))).turns[1:]
    print(f"{'a turn without memory':34} {_percentiles(without)}")
    await asyncio.to_thread(service.close, 0.0)
    for condition in ("healthy", "slow", "hanging", "failing"):
        progress(f"{turns} turns with a store that is {condition}")
        store = ConditionedStore()
        turn, service = ours(TimedModel(seconds=0.0), TimedModel(seconds=0.0), store)
        await turn("Warm up.")
        store.condition = condition
        waited = await conversation(
            condition, turn, hanging if condition == "hanging" else turns, 0.0, TimedModel(seconds=0.0)
        )
        rest = waited.turns[1:]
        ratio = _p99(rest) / _p99(without)
        print(
            f"{'a turn, the store ' + condition:34} first {waited.turns[0]:.3f} s; then {_percentiles(rest)}, "
            f"{ratio:.2f} times the p99 without memory"
        )
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
    parser.add_argument("--hanging", type=int, default=200, help="turns with a store that hangs")
    parser.add_argument("--no-summaries", action="store_true", help="measure the stores only")
    options = parser.parse_args()
    logging.getLogger().setLevel(logging.CRITICAL)  # what fails here is meant to
    shared_counter().tokenizer.warm_up()
    if not options.no_summaries:
        asyncio.run(summaries(options.turns, options.scale))
    asyncio.run(overheads(options.turns, options.hanging))
    return 0


if __name__ == "__main__":
    sys.exit(main())
