"""G1, G2: what the chat graph promises of its picture, its prompt, its state and its checkpoints."""

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, JsonPlusSerializer, _msgpack_ext_hook_to_json
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import interrupt

from palimpsest import Context, FactStore, RunningSummary, build_graph
from tests.laws.talk import LONG, NARROW, Talk

HOUSE = Path(__file__).parents[2]
TRANSCRIPTS = pytest.mark.parametrize("transcript", ["keep", "compact"])
NODES = (None, "inject_memory", "summarize", "call_model", "tools", "flush_memory")


@pytest.fixture
def talk() -> Talk:
    return Talk(context=replace(NARROW, memory_tokens=200))


def test_G1_the_topology_is_the_picture_in_the_readme(talk: Talk) -> None:
    drawn = talk.graph.get_graph().draw_mermaid(with_styles=False)
    shown = re.search(r"```mermaid\n(.*?)```", (HOUSE / "README.md").read_text(), re.DOTALL)
    assert shown is not None
    assert drawn.strip() == shown[1].strip()


async def test_G1_system_prompt_memory_and_summary_come_first_then_the_newest_messages_in_their_order(
    talk: Talk,
) -> None:
    await FactStore(talk.store, "ada").acreate("Likes pears", "preference", 0.9)
    for number in range(20):
        await talk.say(f"{number}:{LONG}")
    first, *rest = talk.chat.prompts[-1]
    assert isinstance(first, SystemMessage)
    places = [first.text.index(part) for part in ("assistant", "<memory>", "Likes pears", "They talked.")]
    assert places == sorted(places)
    said = [message.text for message in (await talk.values())["messages"]][:-1]
    assert [message.text for message in rest] == said[-len(rest) :]
    assert rest[-1].text.startswith("19:")


async def test_G1_a_turn_is_written_down_before_it_ends_in_five_checkpoints_at_most(talk: Talk) -> None:
    for number in range(14):
        before = len([state async for state in talk.graph.aget_state_history(talk.who())])
        state = await talk.say(f"I like thing{number}.{LONG}")
        assert f"thing{number}" in talk.stored()
        assert state["memory"]["receipt"]["queued"]
        assert len([state async for state in talk.graph.aget_state_history(talk.who())]) - before <= 5


@TRANSCRIPTS
async def test_C1_G2_messages_and_summary_are_checkpointed_as_what_they_are(transcript: Any) -> None:
    saver = InMemorySaver()
    talk = Talk(context=replace(NARROW, transcript=transcript), saver=saver)
    for number in range(20):
        await talk.say(f"{number}:{LONG}", id=f"h{number}")
    state = await talk.values()
    assert isinstance(state["context"]["running_summary"], RunningSummary)
    assert state["context"]["running_summary"].summary == "They talked."
    assert (len(state["messages"]) == 40) == (transcript == "keep")
    # Two servers read it: one with types, one that has plain JSON only.
    read = InMemorySaver(serde=JsonPlusSerializer(__unpack_ext_hook__=as_json))
    read.storage, read.writes, read.blobs = saver.storage, saver.writes, saver.blobs
    served = build_graph(service=talk.service).compile(checkpointer=read)
    written = [state async for state in talk.graph.aget_state_history(talk.who())]
    for one, other in zip(written, [state async for state in served.aget_state_history(talk.who())], strict=True):
        assert as_a_client_gets_it(other.values) == as_a_client_gets_it(one.values)


def as_json(code: int, data: bytes) -> Any:
    """Read what LangGraph serialized as the server does, in `langgraph_runtime_inmem.checkpoint.Checkpointer`."""
    if code == EXT_DELTA_SNAPSHOT:
        return _DeltaSnapshot(ormsgpack.unpackb(data, ext_hook=as_json, option=ormsgpack.OPT_NON_STR_KEYS))
    return _msgpack_ext_hook_to_json(code, data)


def as_a_client_gets_it(values: dict[str, Any]) -> dict[str, Any]:
    """Return a state with its messages dumped; those that were read as JSON may be so already."""
    held = {key: values[key] for key in values if key.endswith("messages")}
    return values | {key: [m if isinstance(m, dict) else m.model_dump() for m in each] for key, each in held.items()}


def words_of(values: dict[str, Any]) -> str:
    """Return all that a state says, summaries too."""
    context = {key: asdict(one) if key == "running_summary" else one for key, one in values.get("context", {}).items()}
    return str({**values, "context": context})


@pytest.mark.parametrize("how", ["at once", "one by one"])
@pytest.mark.parametrize("node", NODES)
async def test_of_a_thread_whose_messages_are_all_removed_nothing_is_left(node: str | None, how: str) -> None:
    talk = Talk(context=NARROW, memory={"enabled": False})
    talk.summaries.respond = lambda _: "They talked about quinces."
    for _ in range(15):
        await talk.say(f"I grow quinces.{LONG}")
    assert "They talked about quinces." in words_of(await talk.values())
    messages = (await talk.values())["messages"]
    ids = [REMOVE_ALL_MESSAGES] if how == "at once" else [message.id for message in messages]
    await talk.graph.aupdate_state(talk.who(), {"messages": [RemoveMessage(id=each) for each in ids]}, node)
    assert (await talk.values())["messages"] == []
    await talk.say("Hello.")
    assert "quinces" not in talk.shown() + words_of(await talk.values())


@pytest.mark.parametrize("node", NODES)
async def test_a_message_that_is_removed_or_rewritten_is_so_in_what_the_model_sees(
    talk: Talk, node: str | None
) -> None:
    await talk.say("I like plums.", id="plums")
    await talk.say("I like figs.", id="figs")
    edit = [RemoveMessage(id="plums"), HumanMessage("I like kiwis.", id="figs"), AIMessage("Noted.", id="new")]
    await talk.graph.aupdate_state(talk.who(), {"messages": edit}, node)
    await talk.say("Hello.")
    assert "I like kiwis." in talk.shown()
    assert not {"I like plums.", "I like figs."} & {message.text for message in talk.chat.prompts[-1]}


@pytest.mark.parametrize("key", ["context", "memory"])
@pytest.mark.parametrize("noise", ["text", ["list"], {"user": 1}, {"receipt": "text", "epoch": {}}])
async def test_what_a_client_sends_or_writes_into_the_state_breaks_no_turn(talk: Talk, key: str, noise: Any) -> None:
    sent: dict[str, Any] = {"messages": [HumanMessage([{"type": "text", "text": "Hello"}])]}
    sent |= {"context": noise} if key == "context" else {}
    assert (await talk.run(sent))["messages"][-1].text == "Noted."
    if key == "memory" or isinstance(noise, dict):
        await talk.graph.aupdate_state(talk.who(), {key: noise})
    state = await talk.say("Again")
    assert state["messages"][-1].text == "Noted."
    assert state["memory"]["receipt"]["queued"]


@TRANSCRIPTS
async def test_a_clients_system_messages_join_the_one_at_the_beginning(transcript: Any) -> None:
    talk = Talk(context=Context(transcript=transcript))
    for text in ("Speak like a pirate.", "Rhyme."):
        await talk.run({"messages": [SystemMessage(text), HumanMessage("Hello")]})
    prompt = talk.chat.prompts[-1]
    assert [message.type for message in prompt] == ["system", "human", "ai", "human"]
    assert "Speak like a pirate." in prompt[0].text
    assert prompt[0].text.endswith("Rhyme.")


async def test_tools_are_called_and_a_call_that_was_never_carried_out_is_sent_with_a_result() -> None:
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"rain in {city}"

    @tool
    def ask(question: str) -> str:
        """Ask a person."""
        return str(interrupt(question))

    talk = Talk(tools=[weather, ask])
    call = {"name": "weather", "args": {"city": "Bergen"}, "id": "1", "type": "tool_call"}
    talk.chat.replies = [AIMessage("", tool_calls=[call]), "Take an umbrella."]
    await talk.say("What is the weather?")
    assert talk.chat.prompts[-1][-1].text == "rain in Bergen"
    call = {"name": "ask", "args": {"question": "Really?"}, "id": "2", "type": "tool_call"}
    talk.chat.replies = [AIMessage("", tool_calls=[call])]
    await talk.say("Book it.")
    await talk.say("Never mind.")
    assert [message.type for message in talk.chat.prompts[-1]][-5:] == ["human", "ai", "tool", "ai", "human"]


class Refused(Exception):
    status_code = 400


async def test_a_model_that_fails_gives_one_clear_sentence_and_an_overflow_is_asked_again(talk: Talk) -> None:
    talk.chat.replies = [ConnectionError("nobody there")]
    with pytest.raises(RuntimeError, match="No server answers"):
        await talk.say("Hello")
    for number in range(9):
        await talk.say(f"{number}{LONG}")
    talk.chat.replies = [Refused("maximum context length is 100 tokens"), "short enough"]
    assert (await talk.say(f"last{LONG}"))["messages"][-1].text == "short enough"
    assert len(str(talk.chat.prompts[-1])) < len(str(talk.chat.prompts[-2]))


@pytest.mark.parametrize("nothing", [{}, {"messages": []}])
async def test_a_thread_without_a_message_is_refused_with_what_to_send(talk: Talk, nothing: Any) -> None:
    with pytest.raises(ValueError, match="messages must hold at least one message"):
        await talk.run(nothing)
