"""What memory costs, counted as work and not as time: `costs.json` has what each thing may cost, and why.

Who raises a number writes beside it what is bought with it; who lowers one writes the lower one down.
"""

import asyncio
import json
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import SCHEDULED
from langgraph.store.memory import InMemoryStore

import palimpsest
from benchmarks.path import House, path_of_a_message, work_behind_ends
from palimpsest import (
    MemoryConfig,
    MemoryService,
    PalimpsestMemory,
    PalimpsestState,
    PalimpsestSummary,
    RunningSummary,
    Settings,
    SummarizationNode,
    build_graph,
    count_tokens,
)
from tests.fakes import RecordingModel
from tests.laws.talk import Talk
from tests.laws.test_rules_long import characters_read, long_text

FILE = Path(__file__).with_name("costs.json")
ROOMS = tuple(str(Path(palimpsest.__file__).parents[1] / room) for room in ("graphs", "memory", "palimpsest"))
COUNTED_ON = (3, 11)
"""Where functions and lines are counted: another Python enters and runs others, for a comprehension for example."""

MANY, FEW, LIVE = 10_000, 100, 20
HOUR = 3600.0
CONVERTED = {"_convert_to_message", "message_chunk_to_message", "model_copy"}
THREAD: RunnableConfig = {"configurable": {"thread_id": "t", "user_id": "local"}}

Costs = dict[str, float]


@dataclass(slots=True)
class Work:
    """What was done: functions of ours entered, lines of ours run, messages converted or copied by anybody."""

    functions: int = 0
    lines: int = 0
    converted: int = 0

    def enter(self, frame: FrameType, event: str, _: object) -> Any:
        self.converted += frame.f_code.co_name in CONVERTED
        if not frame.f_code.co_filename.startswith(ROOMS):
            return None
        self.functions += event == "call"
        return self.run

    def run(self, _: FrameType, event: str, __: object) -> Any:
        self.lines += event == "line"
        return self.run


@contextmanager
def counted() -> Iterator[Work]:
    """Count what is done in this thread, and in those that begin meanwhile."""
    work, before = Work(), sys.gettrace()
    threading.settrace(work.enter)
    sys.settrace(work.enter)
    try:
        yield work
    finally:
        sys.settrace(before)
        threading.settrace(before)


def talk(messages: int) -> list[BaseMessage]:
    text = "of the train to Bergen, of the weather, and of where to have breakfast there"
    return [
        AIMessage(f"{n} answers {text}", id=f"lc_run--{n:036}") if n % 2 else HumanMessage(f"{n} {text}", id=f"{n:036}")
        for n in range(messages)
    ]


def summary_of(said: list[BaseMessage]) -> RunningSummary:
    gone = [str(message.id) for message in said[:-LIVE]]
    return RunningSummary("They planned a trip.", set(gone[-32:]), gone[-1])


class Thread(list[BaseMessage]):
    """A thread that counts its messages that are read, also by what is written in C, where no line of ours runs."""

    read = 0

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        self.read += len(found) if isinstance(at, slice) else 1
        return found

    def __iter__(self) -> Iterator[BaseMessage]:
        return self._counted(super().__iter__())

    def __reversed__(self) -> Iterator[BaseMessage]:
        return self._counted(super().__reversed__())

    def _counted(self, messages: Iterator[BaseMessage]) -> Iterator[BaseMessage]:
        for message in messages:
            self.read += 1
            yield message


class Sizes(JsonPlusSerializer):
    """Counts the bytes of all that is written to checkpoints."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=[RunningSummary])
        self.written = 0

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, stored = super().dumps_typed(obj)
        self.written += len(stored)
        return kind, stored


class Marks(InMemorySaver):
    """Counts the bytes of what is stored beside checkpoints though no task of a graph has written it."""

    written = 0

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        if any(channel == SCHEDULED for channel, _ in writes):
            self.written += len(task_id) + sum(len(self.serde.dumps_typed(value)[1]) for _, value in writes)
        await super().aput_writes(config, writes, task_id, task_path)


@tool
async def look() -> str:
    """Look."""
    return "seen"


@dataclass
class Agent:
    """An agent with memory that has a thread: the chat graph, or one of `create_agent` with the middleware."""

    name: str
    sizes: Sizes = field(default_factory=Sizes)

    def __post_init__(self) -> None:
        model = RecordingModel()
        waits = MemoryConfig(debounce_seconds=HOUR, max_wait_seconds=HOUR)
        service = MemoryService(Settings(single_user=True, memory=waits), lambda *_: model)
        kept: dict[str, Any] = {"checkpointer": InMemorySaver(serde=self.sizes), "store": InMemoryStore()}
        if self.name == "graph":
            self.graph: Any = build_graph(service=service).compile(**kept)
            self.summary, self.last = "context", "flush_memory"
        else:
            memory = PalimpsestMemory(service=service)
            summary = PalimpsestSummary(model, trigger=("tokens", 10_000), memory=memory)
            options: dict[str, Any] = {"middleware": [memory, summary], "state_schema": PalimpsestState}
            self.graph = create_agent(model, **options, **kept)
            self.summary, self.last = "palimpsest_summary", "PalimpsestMemory.after_agent"

    async def has_said(self, messages: int) -> None:
        """Have a thread of so many messages, all but the newest of them summarized, and a few turns in it."""
        said = talk(messages)
        state = {"messages": said, self.summary: {"running_summary": summary_of(said)}}
        await self.graph.aupdate_state(THREAD, state, as_node=self.last)
        for number in range(2):  # what is loaded and computed once is no part of a turn
            await self.turn(f"Hello {number}.")

    async def turn(self, text: str = "I like figs.") -> None:
        await self.graph.ainvoke({"messages": [HumanMessage(text)]}, THREAD)
        await work_behind_ends()


def undecided(messages: int) -> tuple[SummarizationNode, dict[str, Any]]:
    """Return a node, and a state of which it finds that nothing needs to be summarized."""
    said = talk(messages)
    state = {"messages": said, "context": {"running_summary": summary_of(said)}}
    return SummarizationNode(model=RecordingModel(), max_tokens=100_000), state


def decision(messages: int) -> Work:
    """Count a decision that nothing needs to be summarized."""
    node, state = undecided(messages)
    node.invoke(state)
    with counted() as work:
        node.invoke(state)
    return work


def read_for_a_decision(messages: int) -> int:
    """Count the messages of the thread that such a decision reads."""
    node, state = undecided(messages)
    thread = Thread(state["messages"])
    node.invoke({**state, "messages": thread})
    return thread.read


async def turn(name: str, messages: int) -> Work:
    """Count a turn of a thread."""
    agent = Agent(name)
    await agent.has_said(messages)
    with counted() as work:
        await agent.turn()
    return work


def compared(what: str, few: Work, many: Work) -> Costs:
    more = MANY - FEW
    return {
        f"functions that {what} enters, {FEW} messages": few.functions,
        f"functions that {what} enters, {MANY:,} messages": many.functions,
        f"lines that {what} runs for each summarized message": (many.lines - few.lines) / more,
        f"messages that {what} converts or copies, {MANY:,} messages": many.converted,
    }


async def bytes_of_a_turn() -> float:
    agent, turns = Agent("graph"), 20  # of which one writes the whole thread
    await agent.has_said(1_000)
    before = agent.sizes.written
    for number in range(turns):
        await agent.turn(f"I like number {number}.")
    return (agent.sizes.written - before) / turns


async def of_a_tool_call() -> tuple[int, int, int]:
    """Count the checkpoints of a turn, those that a tool round adds to it, and the bytes of the call's mark."""
    kept = Marks()
    agent = Talk(saver=kept, tools=[look])

    async def checkpoints() -> int:
        return len([state async for state in agent.graph.aget_state_history(agent.who())])

    await agent.say("Hello.")
    turn = await checkpoints()
    agent.chat.replies = [AIMessage("", tool_calls=[tool_call(name="look", args={}, id="call_" + "0" * 24)])]
    await agent.say("Look.")
    return turn, await checkpoints() - 2 * turn, kept.written


def tokenizer_calls() -> float:
    asked: list[str] = []

    def count(messages: Iterable[BaseMessage]) -> int:
        asked.extend(message.text for message in messages)
        return 4 + count_tokens(asked[-1])

    node = SummarizationNode(
        model=RecordingModel(respond=lambda _: "They talked."), max_tokens=1_000, token_counter=count
    )
    said, state = talk(400), dict[str, Any]()
    for end in range(1, len(said) + 1, 2):
        messages = [message.model_copy() for message in said[:end]]  # new ones, as from a checkpoint
        state = {"context": node.invoke({**state, "messages": messages}).get("context", {})}
    return len(asked) / len(said)


async def characters_of_a_long_message() -> int:
    agent = Talk()
    with characters_read() as read:
        await agent.say(long_text("\n"))
        await agent.learn()
    return read.total()


@pytest.fixture(scope="module")
def costs() -> Costs:
    return asyncio.run(counts())


async def counts() -> Costs:
    path = await path_of_a_message(House())
    checkpoints, more, mark = await of_a_tool_call()
    found: Costs = {
        "tokenizer calls for each message of a long thread": tokenizer_calls(),
        "store batches of a turn": path.turn,
        "store batches of an update": path.update,
        "model calls of an exchange": path.model_calls,
        "characters of a message of 10 MB that are read": await characters_of_a_long_message(),
        f"messages that a decision reads, {MANY:,} messages": read_for_a_decision(MANY),
        "checkpoints of a turn": checkpoints,
        "checkpoints that a tool round adds": more,
        "bytes that the mark of a tool call adds to the checkpoints": mark,
        "bytes that a turn adds to the checkpoints of 1,000 messages": await bytes_of_a_turn(),
    }
    if sys.version_info[:2] == COUNTED_ON:
        found |= {
            "functions that a message passes": path.functions,
            "files that a message passes": path.files,
            **compared("a decision", decision(FEW), decision(MANY)),
            **compared("a turn", await turn("graph", FEW), await turn("graph", MANY)),
            **compared("an agent's turn", await turn("agent", FEW), await turn("agent", MANY)),
        }
    return found


def test_nothing_costs_more_than_is_written_down(costs: Costs) -> None:
    written = json.loads(FILE.read_text())
    counts_lines = sys.version_info[:2] == COUNTED_ON
    assert costs.keys() == {name for name, cost in written.items() if counts_lines or not cost.get("python")}
    dearer = []
    for name, now in costs.items():
        is_at, tolerance = written[name]["is"], written[name]["tolerance"]
        if now > is_at + tolerance:
            dearer.append(f"{name}: {now:g} instead of {is_at:g}, {now - is_at:g} more")
        elif now < is_at - tolerance:
            print(f"{name}: {now:g} instead of {is_at:g}; write the lower number into {FILE}")  # noqa: T201
    assert not dearer, f"{'; '.join(dearer)}. Who must raise one writes into {FILE} what is bought with it."


@pytest.mark.skipif(sys.version_info[:2] != COUNTED_ON, reason="functions and lines are counted on Python 3.11")
@pytest.mark.parametrize("what", ["a decision", "a turn", "an agent's turn"])
def test_a_long_thread_costs_what_a_short_one_does(costs: Costs, what: str) -> None:
    few, many = (costs[f"functions that {what} enters, {messages:,} messages"] for messages in (FEW, MANY))
    assert many <= 1.02 * few
