"""The tools that an agent's middleware brings along: for its own user and agent, in the mode of the run."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.store.base import BaseStore
from langgraph.store.sqlite import SqliteStore

from graphs.middleware import PalimpsestMemory
from memory.turn import MemoryMode
from palimpsest import FactStore
from tests.laws.talk import AGENTS, DEEP_AGENTS, Talk


@pytest.fixture(params=(*AGENTS, *DEEP_AGENTS))
def door(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def told(talk: Talk, name: str, mode: MemoryMode = "normal", **arguments: Any) -> str:
    """Return what a tool tells the model that calls it."""
    talk.chat.replies = [AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "1"}]), "Done."]
    state = await talk.say("I like figs.", mode=mode)
    return next(str(message.text) for message in reversed(state["messages"]) if isinstance(message, ToolMessage))


def facts(talk: Talk, user: str = "ada", agent_name: str = "support") -> list[str]:
    return [fact.content for fact in FactStore(talk.store, user, agent_name=agent_name).list()]


async def test_the_model_remembers_for_the_middlewares_user_and_agent(door: str) -> None:
    talk = Talk(door, user="ada", agent_name="support")
    await told(talk, "remember", content="Likes figs", category="preference")
    assert facts(talk) == ["Likes figs"]
    assert facts(talk, "ada", "default") == []
    assert "Likes figs" in await told(talk, "search_memory", query="figs")
    (fact,) = FactStore(talk.store, "ada", agent_name="support").list()
    await told(talk, "forget", fact_id=fact.id)
    assert facts(talk) == []


@pytest.mark.parametrize("mode", ["read_only", "incognito"])
async def test_a_tool_obeys_the_mode_of_its_run(door: str, mode: MemoryMode) -> None:
    talk = Talk(door, user="ada", agent_name="support")
    await told(talk, "remember", mode, content="Likes figs", category="preference")
    assert facts(talk) == []


async def test_a_tool_works_on_a_store_without_an_event_loop(tmp_path: Path) -> None:
    with SqliteStore.from_conn_string(str(tmp_path / "store.sqlite")) as store:
        store.setup()
        kept: BaseStore = store
        talk = Talk("agent sync", store=kept, user="ada", agent_name="support")
        await told(talk, "remember", content="Likes figs", category="preference")
        assert facts(talk) == ["Likes figs"]


def test_an_agent_has_the_tools_that_were_chosen() -> None:
    assert [tool.name for tool in PalimpsestMemory().tools] == ["search_memory", "remember", "forget"]
    assert [tool.name for tool in PalimpsestMemory(tools=()).tools] == []
    with pytest.raises(ValueError, match="tools: there is no 'guess'; there are search_memory"):
        PalimpsestMemory(tools=["guess"])  # type: ignore[list-item]
