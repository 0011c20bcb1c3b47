"""The smallest chat graph: shows what the server and its persistence do, without any memory."""

from langchain_openai import ChatOpenAI
from langgraph.graph import MessagesState, StateGraph


async def answer(state: MessagesState) -> MessagesState:
    model = ChatOpenAI(model="stub", max_retries=0)  # base URL and key come from the server's environment
    return {"messages": [await model.ainvoke(state["messages"])]}


graph = StateGraph(MessagesState).add_node(answer).set_entry_point("answer").compile()
