"""A user goes back, edits what they said and goes on: what the thread no longer has is not learned, all else is."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from graphs.chat import build_graph
from graphs.persistence import open_checkpointer, open_store
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from graphs.turn.state import InputState
from memory.config import MemoryConfig
from memory.effects import arun
from memory.facts.store import FactStore
from memory.namespaces import Owner
from memory.outbox.entry import Entry
from memory.outbox.outbox import read_entries
from tests.fakes import RecordingModel, learns

LOCAL = Owner.of("local")
CONTEXT = Context(max_tokens=900, max_summary_tokens=64, reply_tokens=64, memory_tokens=0)
LONG = "word " * 60

both_transcripts = pytest.mark.parametrize("transcript", ["keep", "compact"])


def answer(messages: list[BaseMessage]) -> str:
    return learns(messages) if "Messages:" in messages[-1].text else "They talked."


@dataclass
class Talk:
    """One thread of the chat graph on SQLite; nothing is learned before `learned` is called."""

    store: BaseStore
    saver: BaseCheckpointSaver[str]
    context: Context = CONTEXT

    def __post_init__(self) -> None:
        chat, memory = RecordingModel(respond=lambda _: "Noted."), RecordingModel(respond=answer)
        settings = Settings(single_user=True, trigger="run", memory=MemoryConfig(update_spacing_seconds=0))
        self.service = MemoryService(settings, lambda _, purpose: chat if purpose == "chat" else memory)
        self.graph = build_graph(service=self.service).compile(checkpointer=self.saver, store=self.store)
        self.config: RunnableConfig = {"configurable": {"thread_id": "T"}}

    async def say(self, text: str, config: RunnableConfig | None = None) -> None:
        asked = InputState(messages=[HumanMessage(text)])
        await self.graph.ainvoke(asked, config or self.config, context=self.context)

    async def before(self, text: str) -> StateSnapshot:
        """Return the checkpoint at the end of the turn before the one that began with this text."""
        ends = [state async for state in self.graph.aget_state_history(self.config) if not state.next]
        return next(state for state in ends if text not in [one.text for one in state.values["messages"]])

    async def entries(self) -> list[Entry]:
        return await arun(self.store, read_entries(LOCAL))

    async def learned(self) -> list[str]:
        await self.service.adrain(self.store, LOCAL)
        assert await self.entries() == []
        return sorted(fact.content for fact in await FactStore.of_owner(self.store, LOCAL).alist())


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(tmp_path / "store.sqlite"))
        saver = await stack.enter_async_context(open_checkpointer(tmp_path / "checkpoints.sqlite"))
        yield Talk(store, saver)


async def test_what_was_edited_away_by_a_fork_is_not_learned(talk: Talk) -> None:
    await talk.say("I like figs.")
    await talk.say("I like plums.")
    await talk.say("I like kiwis.", (await talk.before("I like plums.")).config)
    assert await talk.learned() == ["Likes figs", "Likes kiwis"]


async def test_what_was_edited_away_by_an_update_of_the_state_is_not_learned(talk: Talk) -> None:
    await talk.say("I like figs.")
    await talk.say("I like plums.")
    before = await talk.before("I like plums.")
    forked = await talk.graph.aupdate_state(before.config, {"messages": [HumanMessage("I like kiwis.")]}, as_node=START)
    await talk.graph.ainvoke(None, forked, context=talk.context)
    assert await talk.learned() == ["Likes figs", "Likes kiwis"]


async def test_the_first_message_of_a_thread_can_be_edited_away(talk: Talk) -> None:
    await talk.say("I like plums.")
    beginning = [state async for state in talk.graph.aget_state_history(talk.config)][-1]
    await talk.say("I like kiwis.", beginning.config)
    assert await talk.learned() == ["Likes kiwis"]


async def test_an_answer_that_is_made_again_keeps_its_question(talk: Talk) -> None:
    await talk.say("I like figs.")
    asked = [state async for state in talk.graph.aget_state_history(talk.config) if state.next == ("call_model",)]
    await talk.graph.ainvoke(None, asked[0].config, context=talk.context)
    told = [message.id for entry in await talk.entries() for message in entry.to_learn if message.role == "assistant"]
    state = await talk.graph.aget_state(talk.config)
    assert set(told) == {message.id for message in state.values["messages"] if isinstance(message, AIMessage)}
    assert await talk.learned() == ["Likes figs"]


async def test_what_the_user_comes_back_to_is_learned_and_what_they_left_is_not(talk: Talk) -> None:
    await talk.say("Hello.")
    await talk.say("I like figs.")
    tip = (await talk.graph.aget_state(talk.config)).config
    await talk.say("I like plums.", (await talk.before("I like figs.")).config)
    await talk.say("I like kiwis.", tip)
    assert await talk.learned() == ["Likes figs", "Likes kiwis"]


async def test_without_a_checkpointer_what_is_not_in_a_call_is_learned(talk: Talk) -> None:
    talk.graph = build_graph(service=talk.service).compile(store=talk.store)
    for number in range(3):
        await talk.say(f"I like thing{number}.")
    assert await talk.learned() == [f"Likes thing{number}" for number in range(3)]


async def test_without_a_checkpointer_what_has_left_the_window_is_learned(talk: Talk) -> None:
    graph = build_graph(service=talk.service).compile(store=talk.store)
    window: list[HumanMessage | AIMessage] = []
    for number in range(4):
        window = [*window, HumanMessage(f"I like thing{number}.")][-3:]
        result = await graph.ainvoke(InputState(messages=[*window]), talk.config)
        window.append(result["messages"][-1])
    assert await talk.learned() == [f"Likes thing{number}" for number in range(4)]


@pytest.mark.parametrize("with_memory_of_its_own", [False, True])
async def test_of_two_chats_below_one_thread_each_is_learned(talk: Talk, with_memory_of_its_own: bool) -> None:
    chat = build_graph(service=talk.service).compile(checkpointer=with_memory_of_its_own or None)
    parent = StateGraph(InputState)

    async def cook(state: InputState) -> dict[str, object]:
        await chat.ainvoke(InputState(messages=[HumanMessage("I like figs.")]))
        return {}

    async def travel(state: InputState) -> dict[str, object]:
        await chat.ainvoke(InputState(messages=[HumanMessage("I like trains.")]))
        return {}

    parent.add_node(cook)
    parent.add_node(travel)
    parent.add_edge(START, "cook")
    parent.add_edge("cook", "travel")
    graph = parent.compile(checkpointer=talk.saver, store=talk.store)
    await graph.ainvoke(InputState(messages=[]), talk.config)
    assert await talk.learned() == ["Likes figs", "Likes trains"]


async def test_what_was_learned_before_the_edit_stays(talk: Talk) -> None:
    await talk.say("I like figs.")
    await talk.say("I like plums.")
    await talk.learned()
    await talk.say("I like kiwis.", (await talk.before("I like plums.")).config)
    assert await talk.learned() == ["Likes figs", "Likes kiwis", "Likes plums"]


async def test_looking_at_an_old_checkpoint_changes_nothing(talk: Talk) -> None:
    await talk.say("I like figs.")
    await talk.say("I like plums.")
    pending = await talk.entries()
    looked_at = await talk.graph.aget_state((await talk.before("I like plums.")).config)
    assert len(looked_at.values["messages"]) == 2
    assert await talk.entries() == pending
    assert await talk.learned() == ["Likes figs", "Likes plums"]


async def test_without_a_fork_nothing_is_dropped(talk: Talk) -> None:
    for number in range(5):
        await talk.say(f"I like thing{number}.")
    assert await talk.learned() == [f"Likes thing{number}" for number in range(5)]


@both_transcripts
async def test_what_a_summary_took_is_learned_though_the_thread_goes_on(
    talk: Talk, transcript: Literal["keep", "compact"]
) -> None:
    talk.context = replace(CONTEXT, transcript=transcript)
    for number in range(40):
        await talk.say(f"{number}: I like thing{number}. {LONG}")
    assert any(entry.kind == "cut" for entry in await talk.entries())
    assert await talk.learned() == sorted(f"Likes thing{number}" for number in range(40))


@both_transcripts
async def test_after_a_summary_only_what_was_edited_away_is_not_learned(
    talk: Talk, transcript: Literal["keep", "compact"]
) -> None:
    talk.context = replace(CONTEXT, transcript=transcript)
    for number in range(40):
        await talk.say(f"{number}: I like thing{number}. {LONG}")
    await talk.say("40: I like plums.")
    await talk.say("40: I like kiwis.", (await talk.before("40: I like plums.")).config)
    assert await talk.learned() == sorted(["Likes kiwis", *(f"Likes thing{number}" for number in range(40))])


@both_transcripts
async def test_what_a_summary_takes_while_pending_updates_fail_is_learned_in_the_end(
    talk: Talk, transcript: Literal["keep", "compact"]
) -> None:
    """The cut's own update is done, and only the turns' entries are left: what they hold is still the user's."""
    talk.context = replace(CONTEXT, transcript=transcript)
    for number in range(40):
        await talk.say(f"{number}: I like thing{number}. {LONG}")
        for entry in await talk.entries():
            if entry.kind == "cut":
                await talk.store.adelete(LOCAL.namespace("outbox"), entry.key)
    assert await talk.learned() == sorted(f"Likes thing{number}" for number in range(40))


@pytest.mark.parametrize("first", [None, "Hello."], ids=["at its beginning", "later"])
@pytest.mark.parametrize("then", [None, "I like plums."], ids=["at once", "after a further turn"])
async def test_what_was_said_in_a_run_beside_this_one_was_not_edited_away(
    talk: Talk, first: str | None, then: str | None
) -> None:
    """Two runs of a thread begin from the same checkpoint, as under a server that lets them overlap.

    The thread goes on from the one that ended last, and so does a third.
    """
    if first:
        await talk.say(first)
    asked = InputState(messages=[HumanMessage("I like pears.")])
    await talk.graph.ainvoke(asked, talk.config, context=talk.context, interrupt_before=["call_model"])
    begun = (await talk.graph.aget_state(talk.config)).config
    history = [state async for state in talk.graph.aget_state_history(talk.config)]
    start = await talk.before("I like pears.") if first else history[-1]
    await talk.say("I like figs.", start.config)
    await talk.graph.ainvoke(None, begun, context=talk.context)
    if then:
        await talk.say(then)
        state = await talk.graph.aget_state(talk.config)
        assert "I like figs." not in [message.text for message in state.values["messages"]]
    assert await talk.learned() == ["Likes figs", "Likes pears", *(["Likes plums"] if then else [])]


async def test_what_was_said_after_a_turn_began_was_not_edited_away_by_it(talk: Talk) -> None:
    """The other run of the two began a little later, and so saw what the first was asked."""
    asked = InputState(messages=[HumanMessage("I like figs.")])
    await talk.graph.ainvoke(asked, talk.config, context=talk.context, interrupt_before=["call_model"])
    begun = (await talk.graph.aget_state(talk.config)).config
    await talk.say("I like pears.")
    await talk.graph.ainvoke(None, begun, context=talk.context)
    assert await talk.learned() == ["Likes figs", "Likes pears"]
