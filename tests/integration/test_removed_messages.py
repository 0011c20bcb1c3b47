"""What a client removes or rewrites by an edit of the state is nowhere else in it, and no model is told of it again."""

from dataclasses import asdict
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.config import MemoryConfig
from tests.fakes import RecordingModel

NODES = [None, "inject_memory", "summarize", "call_model", "tools", "flush_memory"]
LONG = "word " * 60
SECRET = "quinces"


class Talk:
    """One thread whose older messages are summarized."""

    def __init__(self, **context: Any) -> None:
        self.chat = RecordingModel(respond=lambda _: "Noted.")
        background = RecordingModel(respond=lambda _: f"They talked about {SECRET}.")
        settings = Settings(single_user=True, trigger="run", memory=MemoryConfig(enabled=False))
        service = MemoryService(settings, lambda _, purpose: self.chat if purpose == "chat" else background)
        self.graph = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=InMemoryStore())
        self.config: RunnableConfig = {"configurable": {"thread_id": "T"}}
        self.context = Context(max_tokens=900, max_summary_tokens=64, reply_tokens=64, memory_tokens=0, **context)

    async def say(self, *messages: Any) -> None:
        await self.graph.ainvoke({"messages": list(messages)}, self.config, context=self.context)

    async def values(self) -> dict[str, Any]:
        return (await self.graph.aget_state(self.config)).values

    async def remove(self, how: str, node: str | None) -> None:
        messages: list[BaseMessage] = (await self.values())["messages"]
        ids = [REMOVE_ALL_MESSAGES] if how == "at once" else [str(message.id) for message in messages]
        await self.graph.aupdate_state(self.config, {"messages": [RemoveMessage(id=each) for each in ids]}, node)


async def summarized(**context: Any) -> Talk:
    talk = Talk(**context)
    for _ in range(10):
        await talk.say(HumanMessage(f"I grow {SECRET}. {LONG}"))
    assert "running_summary" in (await talk.values())["context"]
    return talk


def words_of(values: dict[str, Any]) -> str:
    """Return all that a state says, summaries too."""
    context = {key: asdict(one) if key == "running_summary" else one for key, one in values.get("context", {}).items()}
    return str({**values, "context": context})


@pytest.mark.parametrize("transcript", ["keep", "compact"])
@pytest.mark.parametrize("how", ["at once", "one by one"])
@pytest.mark.parametrize("node", NODES)
async def test_of_a_thread_whose_messages_are_all_removed_nothing_is_left(
    node: str | None, how: str, transcript: str
) -> None:
    talk = await summarized(transcript=transcript)
    await talk.remove(how, node)
    values = await talk.values()
    assert values["messages"] == []
    assert SECRET not in words_of(values)
    asked = len(talk.chat.prompts)
    await talk.say(HumanMessage("Hello."))
    assert not any(SECRET in str(request) for request in talk.chat.prompts[asked:])
    assert SECRET not in words_of(await talk.values())


@pytest.mark.parametrize("node", ["call_model", "tools"])
async def test_a_thread_without_messages_is_gone_on_with_or_says_that_there_is_nothing_to_answer(node: str) -> None:
    talk = await summarized()
    await talk.remove("at once", node)
    if node in ("call_model", "tools"):  # a tool may clear the thread: what is left of the turn is to write it down
        await talk.graph.ainvoke(None, talk.config, context=talk.context)
    else:
        with pytest.raises(ValueError, match="nothing to answer"):
            await talk.graph.ainvoke(None, talk.config, context=talk.context)
    assert SECRET not in words_of(await talk.values())


async def test_a_run_that_only_removes_messages_is_refused_and_leaves_nothing_of_them() -> None:
    talk = await summarized()
    with pytest.raises(ValueError, match="nothing to answer"):
        await talk.say(RemoveMessage(id=REMOVE_ALL_MESSAGES))
    assert SECRET not in words_of(await talk.values())


@pytest.mark.parametrize("node", NODES)
async def test_a_message_that_is_removed_or_rewritten_is_so_in_what_the_model_sees(node: str | None) -> None:
    talk = Talk()
    await talk.say(HumanMessage("I like plums.", id="plums"))
    await talk.say(HumanMessage("I like figs.", id="figs"))
    new = AIMessage("Noted.", id="new")
    edit = [RemoveMessage(id="plums"), HumanMessage("I like kiwis.", id="figs"), new]
    await talk.graph.aupdate_state(talk.config, {"messages": edit}, node)
    values = await talk.values()
    seen = [message.text for message in values["summarized_messages"]]
    assert "I like kiwis." in seen
    assert not {"I like plums.", "I like figs."} & {*seen}
    await talk.say(HumanMessage("Hello."))
    assert "I like plums." not in str(talk.chat.prompts[-1])


def test_a_synchronous_edit_does_the_same_and_what_a_client_writes_itself_counts() -> None:
    talk = Talk()

    def seen_after(**edit: list[BaseMessage]) -> list[str]:
        talk.graph.update_state(talk.config, edit, "summarize")
        return [each.text for each in talk.graph.get_state(talk.config).values["summarized_messages"]]

    plums, figs = HumanMessage("I like plums.", id="plums"), HumanMessage("I like figs.", id="figs")
    assert seen_after(messages=[plums, figs], summarized_messages=[plums, figs]) == ["I like plums.", "I like figs."]
    assert seen_after(messages=[RemoveMessage(id="plums")]) == ["I like figs."]
    own = HumanMessage("A client's own.", id="own")
    assert seen_after(messages=[RemoveMessage(id="figs")], summarized_messages=[own]) == ["I like figs.", own.text]
    assert seen_after(messages=[RemoveMessage(id=REMOVE_ALL_MESSAGES)]) == []
