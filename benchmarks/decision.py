"""What it costs, before each model call, to decide that nothing needs to be summarized."""

from collections.abc import Callable, Iterable
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.runtime import Runtime
from langmem.short_term import RunningSummary as LangmemSummary
from langmem.short_term import SummarizationNode as LangmemNode

from benchmarks.conversations import conversation, from_checkpoint, question, summarizer
from benchmarks.measuring import Prepared, Row, cpu_seconds, milliseconds, progress
from memory.context.running_summary import RunningSummary
from memory.context.summarization import SummarizationNode
from memory.context.tokens import MESSAGE_TOKENS, TokenCounter, count_tokens, shared_counter

MANY, FEW, LIVE = 10_000, 100, 20
ENDLESS = 10_000_000


def rows(rounds: int) -> list[Row]:
    """Measure and return the lines of the table."""
    progress(f"deciding with {MANY:,} messages, {rounds} rounds")
    seconds = cpu_seconds(_contestants(), rounds)

    def row(measure: str, ours: str, peer: str, goal: float | None) -> Row:
        ratio = seconds[ours] / seconds[peer]
        return Row(measure, milliseconds(seconds[ours]), f"{milliseconds(seconds[peer])} ({peer})", ratio, goal)

    return [
        row(f"{MANY:,} messages, none summarized, one new", "ours", "langmem, its estimate", 0.25),
        row("the same", "ours", "langmem, exact tokens", 0.25),  # both count with the same encoder
        row("the same", "ours", "langchain SummarizationMiddleware", None),
        row(f"{MANY:,} messages, {LIVE} not summarized", "ours, steady", "langmem, steady", 0.12),
        row(f"the same, against ours with {FEW}", "ours, steady", "ours, steady with 100", 3.0),
    ]


def tokenizer_calls(turns: int) -> Row:
    """Count how often a message is tokenized in a long thread whose messages come from checkpoints."""
    progress(f"counting tokenizer calls in {turns:,} turns")
    counted: list[int] = []

    def count(messages: Iterable[BaseMessage]) -> int:
        for message in messages:
            counted.append(1)
            return MESSAGE_TOKENS + count_tokens(message.text)
        return 0

    node = SummarizationNode(model=summarizer(), max_tokens=4096, token_counter=TokenCounter(count))
    messages: list[AnyMessage] = []
    state: dict[str, Any] = {"context": {}}
    for turn in range(turns):
        messages += [question(2 * turn)]
        state = node.invoke({**state, "messages": [message.model_copy() for message in messages]}) | {"x": 0}
        messages += conversation(2 * turn + 2)[-1:]
    made = len(messages)
    return Row(
        f"tokenizer calls per message, {turns:,} turns",
        f"{len(counted):,}",
        f"{made:,} messages",
        len(counted) / made,
        1.05,
    )


def _contestants() -> dict[str, Prepared]:
    fresh, many, few = conversation(MANY), conversation(MANY), conversation(FEW)
    return {
        "ours": _turn(_ours(), fresh),
        "langmem, its estimate": _turn(_langmem(), fresh),
        "langmem, exact tokens": _turn(_langmem(token_counter=_exact), fresh),
        "langchain SummarizationMiddleware": _middleware(fresh),
        "ours, steady": _turn(_ours(), many, RunningSummary),
        "ours, steady with 100": _turn(_ours(), few, RunningSummary),
        "langmem, steady": _turn(_langmem(), many, LangmemSummary),
    }


def _ours() -> SummarizationNode:
    return SummarizationNode(model=summarizer(), max_tokens=ENDLESS, token_counter=shared_counter())


def _langmem(**options: Any) -> LangmemNode:
    return LangmemNode(model=summarizer(), max_tokens=ENDLESS, **options)


def _turn(node: Any, messages: list[AnyMessage], summary: Callable[..., Any] | None = None) -> Prepared:
    """Return a contestant: the node, on messages as they come from a checkpoint, with one more than before."""
    context = {}
    if summary is not None:
        gone = [str(message.id) for message in messages[:-LIVE]]
        remembered = set(gone) if summary is LangmemSummary else set(gone[-32:])
        context = {"running_summary": summary("They planned a trip.", remembered, gone[-1])}
    turn = MANY

    def prepare() -> Callable[[], Any]:
        nonlocal turn
        turn += 1
        state = {"messages": from_checkpoint([*messages, question(turn)]), "context": context}
        return lambda: node.invoke(state)

    return prepare


def _middleware(messages: list[AnyMessage]) -> Prepared:
    middleware = SummarizationMiddleware(model=summarizer(), trigger=("tokens", ENDLESS))

    def prepare() -> Callable[[], Any]:
        state: Any = {"messages": from_checkpoint(messages)}
        return lambda: middleware.before_model(state, Runtime())

    return prepare


def _exact(messages: Iterable[Any]) -> int:
    return sum(MESSAGE_TOKENS + count_tokens(message.text) for message in messages)
