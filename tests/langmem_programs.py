"""Two programs as users of langmem write them. Only where the names are imported from has changed."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langgraph.graph import START, MessagesState, StateGraph
from typing_extensions import TypedDict

from palimpsest import SummarizationNode


class State(MessagesState):
    context: dict[str, Any]


class LLMInput(TypedDict):
    summarized_messages: list[AnyMessage]
    context: dict[str, Any]


def two_keys(model: BaseChatModel) -> StateGraph[Any, Any, Any, Any]:
    """The conversation stays whole; the model is sent another list."""

    def call_model(state: LLMInput) -> dict[str, Any]:
        return {"messages": [model.invoke(state["summarized_messages"])]}

    summarize: Any = SummarizationNode(
        model=model.bind(max_tokens=64), max_tokens=200, max_tokens_before_summary=200, max_summary_tokens=64
    )
    builder: Any = StateGraph(State)
    builder.add_node(call_model)
    builder.add_node("summarize", summarize)
    builder.add_edge(START, "summarize")
    builder.add_edge("summarize", "call_model")
    return builder  # type: ignore[no-any-return]  # langgraph's types do not know a TypedDict node input


def one_key(model: BaseChatModel) -> StateGraph[Any, Any, Any, Any]:
    """The summary takes the place of the messages in the state itself."""

    def call_model(state: State) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    builder: Any = StateGraph(State)
    builder.add_node(call_model)
    builder.add_node(
        "summarize",
        SummarizationNode(
            model=model.bind(max_tokens=64),
            max_tokens=200,
            max_summary_tokens=64,
            input_messages_key="messages",
            output_messages_key="messages",
            name="summarize",
        ),
    )
    builder.add_edge(START, "summarize")
    builder.add_edge("summarize", "call_model")
    return builder  # type: ignore[no-any-return]
