"""langmem's summaries as its documentation shows them: its node before the model."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from memory.context.tokens import shared_counter


def langmem_graph(
    summary: BaseChatModel,
    limit: int,
    summary_tokens: int,
    answer: Callable[[Sequence[AnyMessage]], Awaitable[BaseMessage]],
) -> Any:
    """Return the compiled graph; langmem has to be installed.

    Args:
        summary: Writes its summaries.
        limit: Tokens that the model is sent at most.
        summary_tokens: Tokens of a summary at most.
        answer: Asks the model, given what it may see.
    """
    from langmem.short_term import RunningSummary, SummarizationNode

    class Summarized(MessagesState):
        context: dict[str, RunningSummary]

    class View(TypedDict):
        summarized_messages: list[AnyMessage]
        context: dict[str, RunningSummary]

    async def call(state: View) -> dict[str, Any]:
        return {"messages": [await answer(state["summarized_messages"])]}

    node = SummarizationNode(
        model=summary,
        max_tokens=limit,
        max_tokens_before_summary=limit,
        max_summary_tokens=summary_tokens,
        token_counter=shared_counter(),
    )
    builder = StateGraph(Summarized)
    builder.add_node("summarize", node)
    builder.add_node("call_model", call)
    builder.add_edge(START, "summarize")
    builder.add_edge("summarize", "call_model")
    return builder.compile(checkpointer=InMemorySaver())
