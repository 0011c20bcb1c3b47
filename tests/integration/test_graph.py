"""The chat graph in process: its picture, a long thread, and what one thread tells the next."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.types import interrupt

from graphs.chat import build_graph, graph
from graphs.model_failures import ModelUnavailable
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory import RunningSummary
from memory.config import MemoryConfig
from memory.context.summarization import SUMMARY_ID
from memory.context.tokens import shared_counter
from memory.namespaces import Owner
from tests.fakes import RecordingModel

HOUSE = Path(__file__).parents[2]
FACT = {"message": 1, "action": "new", "known": 0, "content": "User is allergic to peanuts", "category": "knowledge", "confidence": 0.9}  # fmt: skip  # noqa: E501


def is_extraction(messages: list[BaseMessage]) -> bool:
    return "Answer with JSON only" in messages[0].text


class House:
    """A compiled graph with its fakes, for one deployment in single-user mode."""

    def __init__(self, store: InMemoryStore | None = None, tools: Any = (), memory: MemoryConfig | None = None) -> None:
        self.chat = RecordingModel()
        self.memory = RecordingModel(respond=self._remember)
        self.facts: list[dict[str, Any]] = []
        settings = Settings(single_user=True, memory=memory or MemoryConfig(debounce_seconds=3600))
        self.service = MemoryService(settings, lambda _, purpose: self.chat if purpose == "chat" else self.memory)
        self.store = store or InMemoryStore()
        builder = build_graph(service=self.service, tools=tools)
        self.graph = builder.compile(checkpointer=InMemorySaver(), store=self.store)

    def _remember(self, messages: list[BaseMessage]) -> str:
        return json.dumps({"facts": self.facts, "profile": []}) if is_extraction(messages) else "They talked."

    async def say(self, text: str, thread: str = "t", context: Context | None = None, **user: str) -> dict[str, Any]:
        config: RunnableConfig = {"configurable": {"thread_id": thread, **user}}
        state: dict[str, Any] = await self.graph.ainvoke({"messages": [HumanMessage(text)]}, config, context=context)
        return state

    async def settle(self, user: str = "local") -> None:
        await self.service.adrain(self.store, Owner.of(user))


@pytest.fixture
def house() -> House:
    return House()


def test_G1_the_topology_is_the_picture_in_the_readme() -> None:
    drawn = graph.get_graph().draw_mermaid(with_styles=False)
    shown = re.search(r"```mermaid\n(.*?)```", (HOUSE / "README.md").read_text(), re.DOTALL)
    assert shown is not None
    assert drawn.strip() == shown[1].strip()


async def test_G1_a_turn_is_answered_and_written_down_before_it_ends(house: House) -> None:
    state = await house.say("I am allergic to peanuts.")
    assert state["messages"][-1].text.startswith("reply to")
    (entry,) = house.store.search(Owner.of("local").namespace("outbox"))
    assert entry.value["messages"][0]["text"] == "I am allergic to peanuts."
    assert state["memory"]["receipt"]["queued"] == entry.key


async def test_C1_G2_a_long_thread_is_summarized_and_the_summary_is_checkpointed(house: House) -> None:
    context = Context(max_tokens=900, reply_tokens=64, max_summary_tokens=64)
    for number in range(12):
        state = await house.say(f"{number}: " + "word " * 60, context=context)
    summary = state["context"]["running_summary"]
    assert isinstance(summary, RunningSummary)
    assert summary.summary == "They talked."
    assert len(state["messages"]) == 24
    assert state["summarized_messages"][0].id == SUMMARY_ID
    assert len(state["summarized_messages"]) < 24
    assert house.chat.prompts[-1][-1].text.startswith("11: ")
    kinds = {item.value["kind"] for item in house.store.search(Owner.of("local").namespace("outbox"), limit=100)}
    assert kinds == {"turn", "cut"}


async def test_compact_threads_lose_what_was_summarized(house: House) -> None:
    context = Context(max_tokens=900, reply_tokens=64, max_summary_tokens=64, transcript="compact")
    for number in range(12):
        state = await house.say(f"{number}: " + "word " * 60, context=context)
    assert len(state["messages"]) < 24
    assert house.chat.prompts[-1][-1].text.startswith("11: ")
    assert "They talked." in house.chat.prompts[-1][0].text


async def test_functions_are_tools() -> None:
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"rain in {city}"

    house = House(tools=[weather])
    call = {"name": "weather", "args": {"city": "Bergen"}, "id": "1", "type": "tool_call"}
    house.chat.replies = [AIMessage("", tool_calls=[call]), "Take an umbrella."]
    await house.say("What is the weather?")
    assert house.chat.prompts[-1][-1].text == "rain in Bergen"
    assert set(house.chat.bound) == {"weather"}


@pytest.mark.parametrize("transcript", ["keep", "compact"])
async def test_what_a_client_says_under_the_id_of_summaries_is_said(transcript: Literal["keep", "compact"]) -> None:
    house = House()
    context = Context(max_tokens=900, reply_tokens=64, max_summary_tokens=64, transcript=transcript)
    said = HumanMessage("I keep bees.", id=SUMMARY_ID)
    state = await house.graph.ainvoke({"messages": [said]}, {"configurable": {"thread_id": "t"}}, context=context)
    assert house.chat.prompts[-1][-1].text == "I keep bees."
    assert state["messages"][0].id != SUMMARY_ID
    for number in range(12):
        await house.say(f"{number}: " + "word " * 60, context=context)
    assert any("I keep bees." in prompt[-1].text for prompt in house.memory.prompts)
    assert [message for message in house.chat.prompts[-1] if message.text == "I keep bees."] == []


@pytest.mark.parametrize("noise", [{"user": 1}, "text", ["list"], None])
async def test_an_input_key_context_does_not_break_the_state(house: House, noise: Any) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    blocks: list[str | dict[str, Any]] = [{"type": "text", "text": "Hello"}]
    sent: Any = {"messages": [HumanMessage(blocks)], "context": noise}
    state = await house.graph.ainvoke(sent, config)
    assert state["messages"][-1].text == "reply to Hello"
    await house.graph.aupdate_state(config, {"context": noise or {}})
    assert (await house.say("Again"))["messages"][-1].text == "reply to Again"


@pytest.mark.parametrize("noise", ["text", ["list"], {"receipt": "text"}, {"basis": 1, "epoch": {}, "learn_from": []}])
async def test_a_state_that_a_client_edited_breaks_no_turn(house: House, noise: Any) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    await house.say("Hello")
    await house.graph.aupdate_state(config, {"memory": noise})
    state = await house.say("Again")
    assert state["messages"][-1].text == "reply to Again"
    assert state["memory"]["receipt"]["queued"]


async def test_a_model_that_fails_gives_one_clear_sentence(house: House) -> None:
    house.chat.replies = [ConnectionError("nobody there")]
    with pytest.raises(RuntimeError, match="No server answers"):
        await house.say("Hello")


async def test_an_overflow_is_asked_again_with_a_smaller_view(house: House) -> None:
    class Refused(Exception):
        status_code = 400

    for number in range(3):
        await house.say(f"{number} " + "word " * 50)
    house.chat.replies = [Refused("maximum context length is 100 tokens"), "short enough"]
    state = await house.say("last " + "word " * 50)
    assert state["messages"][-1].text == "short enough"


@pytest.mark.parametrize("transcript", ["keep", "compact"])
async def test_a_clients_system_message_joins_the_one_at_the_beginning(
    house: House, transcript: Literal["keep", "compact"]
) -> None:
    sent: Any = {"messages": [SystemMessage("Speak like a pirate."), HumanMessage("Hello")]}
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    await house.graph.ainvoke(sent, config, context=Context(transcript=transcript))
    (prompt,) = house.chat.prompts
    assert [message.type for message in prompt] == ["system", "human"]
    assert "Speak like a pirate." in prompt[0].text


@pytest.mark.parametrize("transcript", ["keep", "compact"])
async def test_a_clients_later_system_message_joins_them_too(
    house: House, transcript: Literal["keep", "compact"]
) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    await house.say("Hello", context=Context(transcript=transcript))
    sent: Any = {"messages": [SystemMessage("Speak like a pirate."), HumanMessage("And now?")]}
    await house.graph.ainvoke(sent, config, context=Context(transcript=transcript))
    prompt = house.chat.prompts[-1]
    assert [message.type for message in prompt] == ["system", "human", "ai", "human"]
    assert prompt[0].text.endswith("Speak like a pirate.")


@pytest.mark.parametrize("nothing", [{}, {"messages": []}])
async def test_a_thread_without_a_message_is_refused_with_what_to_send(house: House, nothing: Any) -> None:
    with pytest.raises(ValueError, match="messages must hold at least one message"):
        await house.graph.ainvoke(nothing, {"configurable": {"thread_id": "t"}})


async def test_C1_a_system_prompt_larger_than_the_budget_is_shortened(house: House) -> None:
    context = Context(max_tokens=256, system_prompt="Be kind to everyone, always. " * 100)
    await house.say("What is the question?", context=context)
    (prompt,) = house.chat.prompts
    assert shared_counter()(prompt) <= 256
    assert prompt[-1].text == "What is the question?"


async def test_a_call_that_was_never_carried_out_is_sent_with_a_result() -> None:
    @tool
    def ask(question: str) -> str:
        """Ask a person."""
        return str(interrupt(question))

    house = House(tools=[ask])
    call = {"name": "ask", "args": {"question": "Really?"}, "id": "1", "type": "tool_call"}
    house.chat.replies = [AIMessage("", tool_calls=[call])]
    await house.say("Book it.")
    await house.say("Never mind.")
    assert [message.type for message in house.chat.prompts[-1]] == ["system", "human", "ai", "tool", "ai", "human"]


async def test_a_memory_model_that_cannot_be_loaded_fails_no_turn(house: House) -> None:
    def load(_: str, purpose: str) -> RecordingModel:
        if purpose != "chat":
            raise ModelUnavailable("no key")
        return house.chat

    service = MemoryService(Settings(single_user=True, memory=MemoryConfig(debounce_seconds=3600)), load)
    graph = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=house.store)
    context = Context(max_tokens=600, max_summary_tokens=64)
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    for number in range(8):
        said: Any = {"messages": [HumanMessage(f"{number}: " + "word " * 60)]}
        state = await graph.ainvoke(said, config, context=context)
    assert state["messages"][-1].text.startswith("reply to 7")
    assert set(state["context"]) == {"not_summarized", "left_out"}


class SlowToWrite(InMemoryStore):
    """A store whose writes to the outbox take a while, as behind another process's lock."""

    async def abatch(self, ops: Any) -> Any:
        listed = list(ops)
        if any(isinstance(op, PutOp) and op.namespace[-1] == "outbox" for op in listed):
            await asyncio.sleep(0.05)
        return await super().abatch(listed)


async def test_a_slow_write_is_waited_for_and_never_taken_back_half_done() -> None:
    house = House(store=SlowToWrite())

    def slowly(_: list[BaseMessage]) -> str:
        for left in house.service.deadlines._left.values():
            left["read"] = 0.0  # reading took all that it may
        return "Noted."

    house.chat.respond = slowly
    state = await house.say("I am allergic to peanuts.")
    (entry,) = house.store.search(Owner.of("local").namespace("outbox"))
    assert state["memory"]["receipt"]["queued"] == entry.key
