"""The chat graph with a tool that emits and a tool that asks the user."""

from langchain_core.tools import tool
from langgraph.types import interrupt

from graphs.chat import build_graph
from graphs.events import aemit
from graphs.streaming import stream_transformers


@tool
async def weather(city: str) -> str:
    """Tell the weather."""
    await aemit("weather.asked", {"city": city})
    return f"Rain in {city}."


@tool
async def confirm(question: str) -> str:
    """Ask the user."""
    return str(interrupt(question))


TOOLS = [weather, confirm]
graph = build_graph(tools=TOOLS).compile(name="chat")

__all__ = ["TOOLS", "graph", "stream_transformers"]
