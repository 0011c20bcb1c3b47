"""G1, G2: what the chat graph promises of its picture, its prompt, its state and its checkpoints."""

import asyncio
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, JsonPlusSerializer, _msgpack_ext_hook_to_json
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.memory import InMemoryStore
from langgraph.types import interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from palimpsest import Context, FactStore, RunningSummary, build_graph
from tests.fakes import RecordingModel, Refused
from tests.laws.shop import calls
from tests.laws.talk import LONG, NARROW, Talk

HOUSE = Path(__file__).parents[2]
TRANSCRIPTS = pytest.mark.parametrize("transcript", ["keep", "compact"])
WRITES = {
    "inject_memory": {"memory"},
    "summarize": {"summarized_messages", "messages", "context"},
    "call_model": {"messages"},
    "flush_memory": {"memory"},
}
NODES = (None, "inject_memory", "summarize", "call_model", "tools", "flush_memory")


@pytest.fixture
def talk() -> Talk:
    return Talk(context=replace(NARROW, memory_tokens=200))


def test_G1_the_topology_is_the_picture_in_the_papers(talk: Talk) -> None:
    drawn = talk.graph.get_graph().draw_mermaid(with_styles=False)
    for paper in ("README.md", "ARCHITECTURE.md"):
        shown = re.search(r"```mermaid\n(.*?)```", (HOUSE / paper).read_text(), re.DOTALL)
        assert shown is not None
        assert drawn.strip() == shown[1].strip()
    picture = (HOUSE / "docs" / "pictures" / "architecture.svg").read_text()
    assert [node for node in NODES if node and f">{node}<" not in picture] == []


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


async def checkpoints(talk: Talk) -> int:
    return len([kept async for kept in talk.graph.checkpointer.alist(talk.who())])


async def test_G1_a_turn_is_written_down_before_it_ends_in_five_checkpoints_at_most(talk: Talk) -> None:
    for number in range(14):
        before = await checkpoints(talk)
        state = await talk.say(f"I like thing{number}.{LONG}")
        assert f"thing{number}" in talk.stored()
        assert state["memory"]["receipt"]["queued"]
        assert await checkpoints(talk) - before <= 5


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


@TRANSCRIPTS
@pytest.mark.parametrize("how", ["at once", "one by one"])
@pytest.mark.parametrize("node", NODES)
async def test_of_a_thread_whose_messages_are_all_removed_nothing_is_left(
    node: str | None, how: str, transcript: Any
) -> None:
    talk = Talk(context=replace(NARROW, transcript=transcript), memory={"enabled": False})
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


async def test_a_run_that_only_removes_messages_is_refused_and_leaves_nothing_of_them(talk: Talk) -> None:
    await talk.say("I grow quinces.")
    with pytest.raises(ValueError, match="nothing to answer"):
        await talk.run({"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]})
    assert "quinces" not in words_of(await talk.values())


async def test_an_edit_while_a_run_waits_is_what_the_model_sees_and_names_a_node_that_there_is(talk: Talk) -> None:
    asked = {"messages": [HumanMessage("Where is Oslo?", id="h1")]}
    await talk.graph.ainvoke(asked, talk.who(), interrupt_before=["call_model"])
    edit = {"messages": [HumanMessage("Where is Bergen?", id="h1"), HumanMessage("Please.", id="h2")]}
    with pytest.raises(InvalidUpdateError):
        await talk.graph.aupdate_state(talk.who(), edit, as_node="nobody")
    talk.graph.update_state(talk.who(), edit)  # without an event loop
    await talk.run(None)
    assert talk.shown().endswith("Where is Bergen?\n\nPlease.")


async def test_two_runs_that_go_on_from_one_checkpoint_both_end(talk: Talk) -> None:
    asked = {"messages": [HumanMessage("Where is Oslo?", id="h1")]}
    await talk.graph.ainvoke(asked, talk.who(), interrupt_before=["inject_memory"])
    async with asyncio.timeout(30):
        ended = await asyncio.gather(talk.run(None), talk.run(None))
    assert [state["messages"][-1].text for state in ended] == ["Noted.", "Noted."]


@TRANSCRIPTS
async def test_S2_C8_streams_have_what_changed_in_one_order_and_neither_a_summary_nor_a_removal(
    transcript: Any,
) -> None:
    talk, streamed = Talk(context=replace(NARROW, transcript=transcript)), list[Any]()
    for number in range(14):
        sent, updates, state = {"messages": [HumanMessage(f"{number}:{LONG}")]}, list[Any](), None
        modes: Any = {"context": talk.context, "stream_mode": ["updates", "messages", "values"]}
        async for mode, part in talk.graph.astream(sent, talk.who(), **modes):
            updates += part.items() if mode == "updates" else []
            streamed += [part[0]] if mode == "messages" else []
            state = part if mode == "values" else state
        assert [node for node, _ in updates] == list(WRITES)
        assert all(set(written or ()) <= WRITES[node] for node, written in updates)
        assert state == await talk.values()
    assert "They talked." in talk.shown()
    assert "".join(message.text for message in streamed) == "Noted." * 14
    assert not [message for message in streamed if isinstance(message, RemoveMessage)]


async def test_the_turn_after_an_edit_streams_its_answer_alone() -> None:
    talk, streamed = Talk(context=NARROW), list[Any]()
    for number in range(14):
        state = await talk.say(f"{number}:{LONG}")
    edit = [HumanMessage("I like kiwis.", id=state["messages"][-2].id)]
    await talk.graph.aupdate_state(talk.who(), {"messages": edit})
    sent, modes = {"messages": [HumanMessage("Hello.")]}, {"context": talk.context, "stream_mode": "messages"}
    async for message, _ in talk.graph.astream(sent, talk.who(), **modes):
        streamed.append(message)
    assert "They talked." in talk.shown()
    assert "".join(message.text for message in streamed) == "Noted."


@TRANSCRIPTS
async def test_what_a_client_says_under_the_id_of_summaries_is_said(transcript: Any) -> None:
    talk, another = Talk(context=replace(NARROW, transcript=transcript)), Talk(context=NARROW)
    for number in range(14):
        await another.say(f"{number}:{LONG}")
    (summary,) = [one.id for one in (await another.values())["summarized_messages"] if "They talked" in one.text]
    state = await talk.say("I like bees.", id=summary)
    assert talk.shown().endswith("I like bees.")
    assert state["messages"][0].id != summary
    for number in range(14):
        await talk.say(f"{number}:{LONG}")
    assert "I like bees." in str(talk.summaries.prompts)
    assert "Likes bees" in await talk.learn()


async def test_a_memory_model_that_cannot_be_loaded_fails_no_turn() -> None:
    class NoMemoryModel(Talk):
        def _model(self, _: str, purpose: str) -> RecordingModel:
            if purpose != "chat":
                raise RuntimeError("no key")
            return self.chat

    talk = NoMemoryModel(context=NARROW)
    for number in range(14):
        assert (await talk.say(f"{number}:{LONG}"))["messages"][-1].text == "Noted."
    assert f"13:{LONG}" in talk.stored()


class SlowToWrite(InMemoryStore):
    """A store that writes down what was said in a while, as behind another process's lock."""

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        listed = list(ops)
        if any(isinstance(op, PutOp) and "peanuts" in str(op.value) for op in listed):
            await asyncio.sleep(0.05)
        return await super().abatch(listed)


async def test_a_slow_write_is_waited_for() -> None:
    talk = Talk(store=SlowToWrite())
    assert (await talk.say("I am allergic to peanuts."))["memory"]["receipt"]["queued"]
    assert "peanuts" in talk.stored()


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


async def test_a_model_that_fails_gives_one_clear_sentence_and_an_overflow_is_asked_again(talk: Talk) -> None:
    talk.chat.replies = [ConnectionError("nobody there")]
    with pytest.raises(RuntimeError, match="No server answers"):
        await talk.say("Hello")
    for number in range(9):
        await talk.say(f"{number}{LONG}")
    talk.chat.replies = [Refused(400, "maximum context length is 100 tokens"), "short enough"]
    assert (await talk.say(f"last{LONG}"))["messages"][-1].text == "short enough"
    assert len(str(talk.chat.prompts[-1])) < len(str(talk.chat.prompts[-2]))


@pytest.mark.parametrize("nothing", [{}, {"messages": []}])
async def test_a_thread_without_a_message_is_refused_with_what_to_send(talk: Talk, nothing: Any) -> None:
    with pytest.raises(ValueError, match="messages must hold at least one message"):
        await talk.run(nothing)


@dataclass
class Mine:
    tenant: str = "x"


class Named(TypedDict):
    tenant: str


class Checked(BaseModel):
    tenant: str = "x"


@pytest.mark.parametrize(
    ("schema", "context"), [(Mine, Mine()), (Named, {"tenant": "x"}), (Checked, Checked()), (None, None)]
)
async def test_a_graph_above_may_have_a_context_of_its_own(talk: Talk, schema: Any, context: Any) -> None:
    below = build_graph(service=talk.service).compile()
    above = StateGraph(MessagesState, context_schema=schema).add_node("chat", below).add_edge(START, "chat")
    graph = above.compile(checkpointer=talk.saver, store=talk.store)
    talk.chat.replies = [calls(("current_time", {}))]
    state = await graph.ainvoke({"messages": [HumanMessage("I like plums.")]}, talk.who(), context=context)
    assert state["messages"][-1].text == "Noted."
    assert "I like plums." in talk.stored()
