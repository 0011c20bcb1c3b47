"""What chat clients do with a thread: they look for the place of an edit among the newest ten checkpoints."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.store.memory import InMemoryStore
from langgraph.types import StateSnapshot

from graphs.chat import build_graph
from graphs.persistence import open_checkpointer
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.config import MemoryConfig
from memory.facts.store import FactStore
from memory.namespaces import Owner
from tests.fakes import RecordingModel, learns

LOCAL = Owner.of("local")
READ_BY_A_CLIENT = 10
A_TURN = 5
SMALL = Context(max_tokens=900, max_summary_tokens=64, reply_tokens=64, memory_tokens=0)
LONG = "word " * 60

both_transcripts = pytest.mark.parametrize("transcript", ["keep", "compact"])


def answer(messages: list[BaseMessage]) -> str:
    return learns(messages) if "Messages:" in messages[-1].text else "They talked."


@dataclass
class Client:
    """One thread as agent-chat-ui treats it (`getMessagesMetadata` of LangGraph's JavaScript SDK)."""

    saver: BaseCheckpointSaver[Any]
    tools: tuple[Any, ...] = ()
    context: Context = field(default_factory=Context)

    def __post_init__(self) -> None:
        self.chat, self.store = RecordingModel(), InMemoryStore()
        memory = RecordingModel(respond=answer)
        settings = Settings(single_user=True, trigger="run", memory=MemoryConfig(update_spacing_seconds=0))
        self.service = MemoryService(settings, lambda _, purpose: self.chat if purpose == "chat" else memory)
        builder = build_graph(service=self.service, tools=self.tools)
        self.graph = builder.compile(checkpointer=self.saver, store=self.store)
        self.config: RunnableConfig = {"configurable": {"thread_id": "T"}}

    async def say(self, text: str, config: RunnableConfig | None = None) -> None:
        await self.graph.ainvoke({"messages": [HumanMessage(text)]}, config or self.config, context=self.context)

    async def edit(self, text: str, into: str) -> None:
        """Say something else in the place of a message, where the client finds it."""
        await self.say(into, await self._parent(text))

    async def regenerate(self, text: str) -> None:
        """Have an answer made again."""
        await self.graph.ainvoke(None, await self._parent(text), context=self.context)

    async def _parent(self, text: str) -> RunnableConfig | None:
        """Return the parent of the oldest checkpoint with a message among those that a client reads."""
        read = [state async for state in self.graph.aget_state_history(self.config, limit=READ_BY_A_CLIENT)]
        identity = next(one.id for one in read[0].values["messages"] if one.text == text)
        seen = [state for state in read if identity in [one.id for one in state.values.get("messages", [])]]
        return seen[-1].parent_config

    async def history(self) -> list[StateSnapshot]:
        return [state async for state in self.graph.aget_state_history(self.config)]

    async def said(self) -> list[str]:
        return [one.text for one in (await self.graph.aget_state(self.config)).values["messages"]]

    async def learned(self) -> list[str]:
        await self.service.adrain(self.store, LOCAL)
        return sorted(fact.content for fact in await FactStore.of_owner(self.store, LOCAL).alist())


@pytest.fixture(params=["memory", "sqlite"])
async def saver(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    async with AsyncExitStack() as stack:
        if request.param == "memory":
            yield InMemorySaver()
        else:
            yield await stack.enter_async_context(open_checkpointer(tmp_path / "checkpoints.sqlite"))


@pytest.fixture
def client(saver: BaseCheckpointSaver[Any]) -> Client:
    return Client(saver)


async def test_a_turn_writes_five_checkpoints(client: Client) -> None:
    for turn in range(3):
        await client.say(f"{turn}: I like figs.")
        assert len(await client.history()) == (turn + 1) * A_TURN


async def test_the_updates_of_a_turn_are_streamed_in_one_order(client: Client) -> None:
    for turn in range(8):
        asked: Any = {"messages": [HumanMessage(f"{turn}: {LONG}")]}
        chunks = client.graph.astream(asked, client.config, context=SMALL, stream_mode="updates")
        nodes = [name async for chunk in chunks for name in chunk]
        assert nodes == ["inject_memory", "summarize", "call_model", "flush_memory"]


@both_transcripts
async def test_a_turn_that_summarizes_writes_no_more(client: Client, transcript: Literal["keep", "compact"]) -> None:
    client.context = replace(SMALL, transcript=transcript)
    for turn in range(12):
        await client.say(f"{turn}: {LONG}")
    history = await client.history()
    assert "running_summary" in history[0].values["context"]
    assert len(history) == 12 * A_TURN


async def test_each_tool_call_adds_its_own(saver: BaseCheckpointSaver[Any]) -> None:
    @tool
    def look(city: str) -> str:
        """Look out of the window."""
        return f"rain in {city}"

    client = Client(saver, (look,))
    call = {"name": "look", "args": {"city": "Bergen"}, "id": "1", "type": "tool_call"}
    client.chat.replies = [AIMessage("", tool_calls=[call]), "Take an umbrella."]
    await client.say("What is the weather?")
    assert [state.next for state in reversed(await client.history())] == [
        ("__start__",), ("inject_memory", "summarize"), ("call_model",),
        ("tools",), ("summarize",), ("call_model",), ("flush_memory",), (),
    ]  # fmt: skip
    assert (await client.said())[-1] == "Take an umbrella."


@both_transcripts
async def test_an_edit_of_the_newest_message_replaces_it(client: Client, transcript: Any) -> None:
    client.context = Context(transcript=transcript)
    for text in ("I like figs.", "I like plums."):
        await client.say(text)
    await client.edit("I like plums.", "I like kiwis.")
    assert (await client.said())[::2] == ["I like figs.", "I like kiwis."]
    assert await client.learned() == ["Likes figs", "Likes kiwis"]


@both_transcripts
async def test_an_edit_of_the_message_before_replaces_it_and_what_followed(client: Client, transcript: Any) -> None:
    client.context = Context(transcript=transcript)
    for text in ("I like figs.", "I like plums.", "I like dates."):
        await client.say(text)
    await client.edit("I like plums.", "I like kiwis.")
    assert (await client.said())[::2] == ["I like figs.", "I like kiwis."]
    assert await client.learned() == ["Likes figs", "Likes kiwis"]


@both_transcripts
async def test_an_edit_in_a_thread_that_is_summarized_replaces_too(client: Client, transcript: Any) -> None:
    client.context = replace(SMALL, transcript=transcript)
    for turn in range(14):
        await client.say(f"{turn}: I like thing{turn}. {LONG}")
    await client.edit(f"12: I like thing12. {LONG}", "I like kiwis.")
    said = await client.said()
    assert [text for text in said if text.startswith(("12", "13"))] == []
    assert said[-2] == "I like kiwis."
    assert await client.learned() == sorted(["Likes kiwis", *(f"Likes thing{turn}" for turn in range(12))])


@pytest.mark.parametrize("again", ["first", "second"])
async def test_an_answer_that_is_made_again_answers_its_own_question(client: Client, again: str) -> None:
    client.chat.replies = ["first", "second", "another"]
    await client.say("I like figs.")
    await client.say("I like plums.")
    await client.regenerate(again)
    asked = client.chat.prompts[-1][-1].text
    assert asked == {"first": "I like figs.", "second": "I like plums."}[again]
    assert (await client.said())[-2:] == [asked, "another"]


async def before_the_model(client: Client) -> StateSnapshot:
    await client.say("Where is Oslo?")
    return next(state for state in await client.history() if state.next == ("call_model",))


async def test_an_edit_of_the_state_that_names_no_node_needs_none(client: Client) -> None:
    state = await before_the_model(client)
    edit = {"messages": [HumanMessage("Where is Bergen?", id=state.values["messages"][0].id)]}
    forked = await client.graph.aupdate_state(state.config, edit)
    await client.graph.ainvoke(None, forked)
    assert await client.said() == ["Where is Bergen?", "reply to Where is Bergen?"]


async def test_an_edit_that_names_no_node_may_be_made_without_an_event_loop() -> None:
    client = Client(InMemorySaver())
    state = await before_the_model(client)
    forked = client.graph.update_state(state.config, {"messages": [HumanMessage("And Bergen?")]})
    assert client.graph.get_state(forked).next == ("call_model",)


async def test_an_edit_for_a_node_that_does_not_exist_is_refused(client: Client) -> None:
    state = await before_the_model(client)
    with pytest.raises(InvalidUpdateError):
        await client.graph.aupdate_state(state.config, {"messages": []}, as_node="nobody")
