"""What a long thread costs in the checkpoint file, and a turn in CPU time."""

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import MessagesState, StateGraph
from langmem.short_term import SummarizationNode as LangmemNode

from benchmarks.conversations import question, speaker, summarizer
from benchmarks.measuring import Row, megabytes, progress
from graphs.chat import build_graph
from graphs.process.models import Purpose
from graphs.process.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.context.running_summary import RunningSummary

BUDGET = 8192
SUMMARY_SHARE = 256

Graph = Any

_SUMMARIES = [
    ("memory.context.running_summary", "RunningSummary"),
    ("langmem.short_term.summarization", "RunningSummary"),
]


@dataclass(frozen=True, slots=True)
class Life:
    """What a thread of so many turns left behind.

    Attributes:
        size: Bytes of the checkpoint file.
        cpu: CPU seconds of all turns.
        context: Bytes of the running summary in the last checkpoint.
    """

    size: int
    cpu: float
    context: int


def rows(turns: int) -> list[Row]:
    """Live the same thread in each graph and return the lines of the table."""
    lives = {}
    for name, (build, context) in _GRAPHS.items():
        progress(f"{turns:,} turns of the graph {name!r}")
        lives[name] = asyncio.run(_live(build, turns, context))
    keep, compact, bare = lives["keep"], lives["compact"], lives["bare"]

    def size(measure: str, ours: Life, peer: str, goal: float | None) -> Row:
        theirs = lives[peer]
        return Row(measure, megabytes(ours.size), f"{megabytes(theirs.size)} ({peer})", ours.size / theirs.size, goal)

    per_turn = [1000 * life.cpu / turns for life in (keep, compact, bare)]
    return [
        size(f"checkpoint file after {turns:,} turns, keep", keep, "langmem, two keys", 0.35),
        size("the same", keep, "bare", None),
        size(f"checkpoint file after {turns:,} turns, compact", compact, "langmem, one key", 0.35),
        Row("running summary in the last checkpoint, keep", f"{keep.context} B", "2,048 B", keep.context / 2048, 1.0),
        Row("the same, compact", f"{compact.context} B", "2,048 B", compact.context / 2048, 1.0),
        Row(
            "CPU of a turn, keep",
            f"{per_turn[0]:.1f} ms",
            f"{per_turn[2]:.1f} ms (bare)",
            per_turn[0] / per_turn[2],
            2.5,
        ),
        Row(
            "CPU of a turn, compact",
            f"{per_turn[1]:.1f} ms",
            f"{per_turn[2]:.1f} ms (bare)",
            per_turn[1] / per_turn[2],
            2.5,
        ),
    ]


async def _live(build: Callable[[], Graph], turns: int, context: Context | None) -> Life:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoints.sqlite"
        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            saver.serde = JsonPlusSerializer(allowed_msgpack_modules=_SUMMARIES)
            return await _talk(build().compile(checkpointer=saver), saver, path, turns, context)


async def _talk(graph: Graph, saver: AsyncSqliteSaver, path: Path, turns: int, context: Context | None) -> Life:
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    start = time.process_time()
    for turn in range(turns):
        await graph.ainvoke({"messages": [question(turn)]}, config, context=context)
    cpu = time.process_time() - start
    values = (await graph.aget_state(config)).values
    summary = values.get("context", {}).get("running_summary")
    stored = len(saver.serde.dumps_typed(summary)[1]) if isinstance(summary, RunningSummary) else 0
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (pages,), (page,) = file.execute("PRAGMA page_count").fetchone(), file.execute("PRAGMA page_size").fetchone()
    return Life(pages * page, cpu, stored)


def _answering() -> Callable[[Any], Awaitable[dict[str, list[AnyMessage]]]]:
    model = speaker()

    async def call_model(state: Any) -> dict[str, list[AnyMessage]]:
        return {"messages": [await model.ainvoke(state.get("summarized_messages") or state["messages"])]}

    return call_model


def _bare() -> Graph:
    builder: Any = StateGraph(MessagesState)
    return builder.add_node("call_model", _answering()).set_entry_point("call_model")


class _LangmemState(MessagesState):
    summarized_messages: list[AnyMessage]
    context: dict[str, Any]


def _langmem(output: str) -> Graph:
    node = LangmemNode(
        model=summarizer(), max_tokens=BUDGET - 1024, max_summary_tokens=SUMMARY_SHARE, output_messages_key=output
    )
    builder: Any = StateGraph(_LangmemState)
    builder.add_node("summarize", node).add_node("call_model", _answering())
    return builder.set_entry_point("summarize").add_edge("summarize", "call_model")


def _ours() -> Graph:
    chat, memory = speaker(), summarizer()

    def load(_: str, purpose: Purpose) -> BaseChatModel:
        return chat if purpose == "chat" else memory

    return build_graph(service=MemoryService(Settings(single_user=True), load))


_GRAPHS: dict[str, tuple[Callable[[], Graph], Context | None]] = {
    "bare": (_bare, None),
    "langmem, two keys": (lambda: _langmem("summarized_messages"), None),
    "langmem, one key": (lambda: _langmem("messages"), None),
    "keep": (_ours, Context(max_tokens=BUDGET, max_summary_tokens=SUMMARY_SHARE)),
    "compact": (_ours, Context(max_tokens=BUDGET, max_summary_tokens=SUMMARY_SHARE, transcript="compact")),
}
