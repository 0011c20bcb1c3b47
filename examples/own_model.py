"""Bring your own models and tools to a server, without touching `langgraph.json`.

Start the server with `PALIMPSEST_DEPLOYMENT=examples.own_model:deployment`, in the environment or in `.env`. The chat
graph, the memory API and the persistence then share the one service that is made here: what a
crash left behind is applied with these models too.
"""

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from palimpsest import Deployment, MemoryService, Settings


@tool
async def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"Rain in {city}."


def make_service(settings: Settings) -> MemoryService:
    """Return the service of the process: a large model chats, a small one writes summaries and extracts facts."""

    def load_model(name: str, purpose: str) -> BaseChatModel:
        model = name or ("house-large" if purpose == "chat" else "house-small")  # an assistant may name another
        return ChatOpenAI(model=model, base_url=settings.openai_base_url, default_headers={"X-Purpose": purpose})

    return MemoryService(settings, load_model)


deployment = Deployment(tools=[weather], make_service=make_service)
