"""What the chat model may call: the shipped list, and models that cannot call anything."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.process.service import MemoryService
from graphs.settings import Settings
from graphs.tools import time_tool
from graphs.turn.context import Context
from memory.control import change_control
from memory.door import arun
from memory.namespaces import Owner
from tests.fakes import RecordingModel
from tests.laws.talk import Talk

NEW_YEARS_EVE = datetime(2026, 12, 31, 11, 30, tzinfo=UTC).timestamp()
ASKS = AIMessage("", tool_calls=[{"name": "current_time", "args": {}, "id": "call"}])


async def told(context: Context | None, store: InMemoryStore | None = None) -> str:
    """Return what the model is told when it asks for the time in a turn of Ada's."""
    talk = Talk(store=store, context=context, tools=[time_tool(lambda: NEW_YEARS_EVE)])
    talk.chat.replies = [ASKS, "Happy new year!"]
    await talk.say("Is it the new year?")
    return talk.chat.prompts[-1][-1].text


async def test_the_time_is_the_users_own_then_the_assistants_then_utc() -> None:
    store = InMemoryStore()
    assert await told(None) == "Thursday, 2026-12-31 11:30 (UTC)"
    assistant = Context(time_zone="Pacific/Auckland")
    assert await told(assistant, store) == "Friday, 2027-01-01 00:30 (Pacific/Auckland)"
    await arun(store, change_control(Owner.of("ada", "default"), time_zone="America/Los_Angeles"))
    assert (
        await told(Context(time_zone="Pacific/Auckland"), store) == "Thursday, 2026-12-31 03:30 (America/Los_Angeles)"
    )


class Toolless(RecordingModel):
    """A model whose server refuses tools, as Ollama does."""

    refusal: str = "registry.ollama.ai/library/gemma3:1b does not support tools"
    status: int = 400
    told_of_tools: int = 0

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        def refuse(_: LanguageModelInput) -> AIMessage:
            self.told_of_tools += 1
            error = RuntimeError(self.refusal)
            error.status_code = self.status  # type: ignore[attr-defined]
            raise error

        return RunnableLambda(refuse)


async def talk(model: RecordingModel, settings: Settings, *texts: str) -> list[str]:
    graph = build_graph(service=MemoryService(settings, lambda *_: model)).compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    states = [await graph.ainvoke({"messages": [HumanMessage(text)]}, config) for text in texts]
    return [state["messages"][-1].text for state in states]


async def test_how_a_model_that_refused_tools_fails_without_them_is_told_as_it_is() -> None:
    def away(_: object) -> str:
        raise ConnectionError

    model = Toolless(respond=away, refusal="No endpoints found that support tool use", status=404)
    with pytest.raises(RuntimeError, match="No server answers for 'openrouter:m'"):
        await talk(model, Settings(model="openrouter:m"), "Hi!")


class WithoutTools(RecordingModel):
    """A model of one's own: LangChain's base class has no `bind_tools`."""

    told_of_tools: int = 0

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        self.told_of_tools += 1
        raise NotImplementedError


@pytest.mark.parametrize(("kind", "says"), [(Toolless, "openai:gemma3 takes no tools"), (WithoutTools, "")])
async def test_a_model_that_takes_no_tools_is_asked_without_and_told_of_none_from_then_on(
    kind: type[Toolless] | type[WithoutTools], says: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = kind(replies=["Hello.", "Yes."])
    assert await talk(model, Settings(model="openai:gemma3"), "Hi!", "Are you there?") == ["Hello.", "Yes."]
    assert model.told_of_tools == 1
    assert says in caplog.text


async def test_the_local_model_is_told_of_no_tools() -> None:
    model = RecordingModel()
    await talk(model, Settings(model="local"), "Hi!")
    assert model.bound == []
    await talk(model, Settings(model="openai:m"), "Hi!")
    assert model.bound == ["current_time"]
