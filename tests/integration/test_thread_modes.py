"""Modes of a thread in the graph itself: what each lets in and out, and what a later, looser mode may learn."""

import logging
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from graphs.turn.state import InputState
from memory.config import MemoryConfig
from memory.control import write_learning
from memory.effects import arun, run
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.turn import MODES, MemoryMode
from tests.fakes import RecordingModel
from tests.stores import FaultyStore

LOCAL = Owner.of("local")
SMALL: dict[str, Any] = {"max_tokens": 900, "reply_tokens": 64, "max_summary_tokens": 64}


def summarize(messages: list[BaseMessage]) -> str:
    return "They talked of something."


class House:
    """The chat graph with one known fact, and nothing that drains what it writes down."""

    def __init__(self, store: InMemoryStore | FaultyStore | None = None) -> None:
        self.chat, self.memory = RecordingModel(), RecordingModel(respond=summarize)
        settings = Settings(single_user=True, memory=MemoryConfig(debounce_seconds=3600))
        service = MemoryService(settings, lambda _, purpose: self.chat if purpose == "chat" else self.memory)
        self.store = store or InMemoryStore()
        self.graph = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=self.store)

    async def say(
        self, text: str, mode: MemoryMode = "normal", *, by: str = "context", **choices: Any
    ) -> dict[str, Any]:
        config: RunnableConfig = {"configurable": {"thread_id": "t"}}
        if by == "metadata":
            config["metadata"] = {"memory_mode": mode}
        context = Context(memory_mode=mode if by == "context" else "normal", **choices)
        state: dict[str, Any] = await self.graph.ainvoke({"messages": [HumanMessage(text)]}, config, context=context)
        return state

    def prompt(self) -> str:
        return "\n".join(message.text for message in self.chat.prompts[-1])

    async def written_down(self) -> list[str]:
        items = await self.store.asearch(LOCAL.namespace("outbox"), limit=1000)
        return sorted(
            {message["text"] for item in items for message in item.value["messages"] if message["role"] == "user"}
        )


@pytest.fixture
async def house() -> House:
    house = House()
    await FactStore(house.store, "local").acreate("Likes pears", "preference", 0.9)
    return house


@pytest.mark.parametrize("by", ["context", "metadata"])
@pytest.mark.parametrize("mode", MODES)
async def test_a_mode_says_what_is_read_and_what_is_learned(house: House, mode: MemoryMode, by: str) -> None:
    state = await house.say("I like plums.", mode, by=by)
    assert ("Likes pears" in house.prompt()) == (mode != "incognito")
    assert await house.written_down() == (["I like plums."] if mode == "normal" else [])
    assert (state["memory"]["receipt"]["queued"] is not None) == (mode == "normal")
    assert bool(state["memory"]["receipt"]["facts"]) == (mode != "incognito")


async def test_a_question_that_a_client_sends_as_incognito_is_answered_without_memory(house: House) -> None:
    asked = HumanMessage("What do I like?", additional_kwargs={"memory_mode": "incognito"})
    await house.graph.ainvoke({"messages": [asked]}, {"configurable": {"thread_id": "t"}})
    assert "Likes pears" not in house.prompt()
    assert await house.written_down() == []


@pytest.mark.parametrize("transcript", ["keep", "compact"])
@pytest.mark.parametrize("mode", ["read_only", "incognito"])
async def test_what_was_said_is_marked_and_not_learned_by_a_later_turn(
    house: House, mode: MemoryMode, transcript: str
) -> None:
    await house.say("I like plums.", mode, transcript=transcript)
    state = await house.say("I like figs.")
    marks = [message.additional_kwargs.get("memory_mode") for message in state["messages"]]
    assert marks == [mode, mode, None, None]
    assert await house.written_down() == ["I like figs."]


@pytest.mark.parametrize("mode", ["read_only", "incognito"])
async def test_what_was_said_is_not_learned_by_a_later_cut(house: House, mode: MemoryMode) -> None:
    for number in range(3):
        await house.say(f"secret {number} " + "word " * 60, mode, **SMALL)
    for number in range(12):
        await house.say(f"open {number} " + "word " * 60, **SMALL)
    written = await house.written_down()
    assert len(written) == 12
    assert not [text for text in written if text.startswith("secret")]
    assert "They talked of something." in house.prompt()


@pytest.mark.parametrize("mode", ["read_only", "incognito"])
async def test_a_cut_in_a_closed_mode_writes_nothing_down(house: House, mode: MemoryMode) -> None:
    for number in range(12):
        await house.say(f"secret {number} " + "word " * 60, mode, **SMALL)
    assert "They talked of something." in house.prompt()
    assert await house.written_down() == []
    assert await house.store.asearch(LOCAL.namespace("journal")) == []


@pytest.mark.parametrize("mode", ["read_only", "incognito"])
async def test_a_cut_of_a_compact_thread_keeps_the_marks_of_its_turn_and_takes_no_message_back(
    house: House, mode: MemoryMode
) -> None:
    for number in range(6):
        await house.say(f"open {number} " + "word " * 60, **SMALL, transcript="compact")
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    asked = [HumanMessage(f"secret {number} " + "word " * 60) for number in range(8)]
    context = Context(memory_mode=mode, **SMALL, transcript="compact")
    state: Any = await house.graph.ainvoke(InputState(messages=[*asked]), config, context=context)
    kept = [(message.text[:8], message.additional_kwargs.get("memory_mode")) for message in state["messages"][1:-1]]
    assert kept[-1] == ("secret 7", mode)
    assert {mark for _, mark in kept} == {mode}
    assert len(kept) < len(asked)
    read_back = await house.graph.aget_state(config)
    assert read_back.values["messages"] == state["messages"]
    assert not [text for text in await house.written_down() if text.startswith("secret")]


async def test_memory_comes_back_after_an_incognito_turn(house: House) -> None:
    await house.say("Hello")
    await house.say("A secret", "incognito")
    assert "Likes pears" not in house.prompt()
    await house.say("Hello again")
    assert "Likes pears" in house.prompt()


async def test_paused_learning_reads_and_writes_nothing_down(house: House) -> None:
    await arun(house.store, write_learning(LOCAL, False))
    state = await house.say("I like plums.")
    assert "Likes pears" in house.prompt()
    assert state["messages"][0].additional_kwargs["memory_mode"] == "read_only"
    await arun(house.store, write_learning(LOCAL, True))
    await house.say("I like figs.")
    assert await house.written_down() == ["I like figs."]


async def test_learning_that_is_paused_while_the_model_answers_learns_nothing(house: House) -> None:
    def answer(messages: list[BaseMessage]) -> str:
        run(house.store, write_learning(LOCAL, False))
        return "Noted."

    house.chat.respond = answer
    await house.say("I like plums.")
    assert await house.written_down() == []


async def test_learning_that_is_paused_while_a_summary_is_made_journals_nothing(house: House) -> None:
    def pause(messages: list[BaseMessage]) -> str:
        run(house.store, write_learning(LOCAL, False))
        return summarize(messages)

    house.memory.respond = pause
    for number in range(12):
        await house.say(f"open {number} " + "word " * 60, **SMALL)
    assert "They talked of something." in house.prompt()
    items = await house.store.asearch(LOCAL.namespace("outbox"), limit=1000)
    assert {item.value["kind"] for item in items} == {"turn"}


async def test_while_the_store_cannot_tell_nothing_is_used_and_nothing_is_marked_for_good(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = FaultyStore()
    store.fault = lambda _: OSError("disk full")
    house = House(store)
    state = await house.say("I like plums.")
    assert state["messages"][-1].text.startswith("reply to")
    assert "memory_mode" not in state["messages"][0].additional_kwargs
    assert state["memory"]["receipt"]["facts"] == []
    assert "without memory" in caplog.text
    assert "plums" not in caplog.text


async def test_a_turn_logs_its_mode_once_and_no_text(house: House, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await house.say("I like plums.", "read_only")
    modes = [record.getMessage() for record in caplog.records if "memory mode" in record.getMessage()]
    assert modes == ["memory mode of the turn: read_only"]
    assert "plums" not in caplog.text
    assert "pears" not in caplog.text
