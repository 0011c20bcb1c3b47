"""The chat graph's streams: both SDKs against the stream in process and against the thread's history."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypedDict

import pytest
from langchain_core.messages import BaseMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from pydantic import SecretStr

from graphs.chat import build_graph
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.streaming import StreamEvent, StreamMode, stream_run_events
from graphs.turn.context import Context
from tests.e2e.conftest import Serve
from tests.e2e.dev_server import DevServer
from tests.e2e.javascript import run_javascript
from tests.e2e.scripted import Scripted
from tests.e2e.speaking import say
from tests.e2e.support.tools import TOOLS, graph
from tests.limited import limited
from tests.limits import limits
from tests.stream_checks import History, canonical, check
from tests.stub_model import ChatRequest, Reply, StubModel

SMALL: dict[str, Any] = {"max_tokens": 900, "max_summary_tokens": 120, "memory_tokens": 200, "reply_tokens": 100}
LONG = "the ferry leaves at seven, the tent is green. " * 8


class Step(TypedDict, total=False):
    """What the user does: says or answers something, from a checkpoint that an earlier step ended in."""

    say: str
    resume: str
    back_to: int


STEPS: list[Step] = [
    {"say": "What is the weather in Bergen?"},
    {"say": "Delete it."},
    {"resume": "yes"},
    *(Step(say=f"Message {n}: {LONG}") for n in range(7)),
    {"say": "And in Oslo, the weather?", "back_to": 0},
]
SERVER_MODES = ["values", "updates", "messages-tuple", "custom", "debug", "tasks", "checkpoints"]
ALL_MODES: list[StreamMode] = ["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"]
Parts = list[tuple[str, Any]]


def answer(request: ChatRequest) -> Reply | str:
    """Call a tool where one is asked for, and say what it returned."""
    if request.messages[-1]["role"] == "tool":
        return f"It says: {request.last}"
    if "weather" in request.last:
        return Reply(tool_calls=(("weather", {"city": "Oslo" if "Oslo" in request.last else "Bergen"}),))
    if "Delete" in request.last:
        return Reply(tool_calls=(("confirm", {"question": "Really?"}),))
    return "Noted, thank you."


@pytest.fixture(scope="module")
def environment(stub: StubModel) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": stub.url,
        "OPENAI_API_KEY": "stub",
        "PALIMPSEST_SINGLE_USER": "true",
        # What is learned of one conversation would be told of in the next one's events.
        "PALIMPSEST_DEBOUNCE_SECONDS": "3600",
        # A summary that one process wrote ahead of time no other has: the next cut, and so what is told of it, would
        # depend on who is asked.
        **limits(max_wait_seconds=3600, prepare_summary_share=1 if DevServer.cluster else 0.7),
    }


@pytest.fixture(scope="module")
def server(serve: Serve, environment: dict[str, str]) -> DevServer:
    return serve("tests/e2e/support/tools.json", **environment)


@pytest.fixture
async def client(server: DevServer, model: StubModel) -> AsyncIterator[LangGraphClient]:
    model.respond = Scripted(chat=answer)
    async with get_client(url=server.url) as client:
        yield client


def given(step: Step, heads: list[str | None], checkpoint_name: str = "checkpoint_id") -> dict[str, Any]:
    """Return what a client passes for a step."""
    options: dict[str, Any] = {"input": say(step["say"])} if "say" in step else {"command": {"resume": step["resume"]}}
    return {**options, checkpoint_name: heads[step["back_to"]]} if "back_to" in step else options


async def head_of(client: LangGraphClient, thread_id: str) -> str | None:
    return (await client.threads.get_state(thread_id))["checkpoint"]["checkpoint_id"]


async def talk_in_process(environment: dict[str, str]) -> list[Parts]:
    """Return what each step streams from the graph in this process."""
    settings = limited(Settings.from_environment(environment), environment)
    model = ChatOpenAI(
        model="stub", base_url=settings.openai_base_url, api_key=SecretStr("stub"), use_responses_api=False
    )
    service = MemoryService(settings, lambda *_: model)
    local: Any = build_graph(service=service, tools=TOOLS).compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    turns: list[Parts] = []
    heads: list[str] = []
    for step in STEPS:
        back = {"checkpoint_id": heads[step["back_to"]]} if "back_to" in step else {}
        spoken: Any = say(step["say"]) if "say" in step else Command(resume=step["resume"])
        stream = local.astream(
            spoken, {"configurable": {"thread_id": "t", **back}}, context=Context(**SMALL), stream_mode=ALL_MODES
        )
        turns.append([(mode, chunk) async for mode, chunk in stream])
        state = await local.aget_state({"configurable": {"thread_id": "t"}})
        heads.append(state.config["configurable"]["checkpoint_id"])
    service.close(0)
    return turns


async def talk_in_python(client: LangGraphClient, thread_id: str, modes: Any) -> list[Parts]:
    """Return what each step streams through the Python SDK."""
    turns: list[Parts] = []
    heads: list[str | None] = []
    for step in STEPS:
        parts = client.runs.stream(thread_id, "chat", context=SMALL, stream_mode=modes, **given(step, heads))
        turns.append([(part.event, part.data) async for part in parts])
        heads.append(await head_of(client, thread_id))
    return turns


def talk_in_javascript(server: DevServer, thread_id: str, modes: Any) -> list[Parts]:
    """Return what each step streams through the JavaScript SDK."""
    steps = [{**step, "from": step.get("back_to")} for step in STEPS]
    turns = run_javascript(
        "conversation.mjs", url=server.url, threadId=thread_id, streamMode=modes, context=SMALL, steps=steps
    )
    return [[(part["event"], part["data"]) for part in parts] for parts in turns]


def message_of(message: Any) -> tuple[str, str]:
    """Return a message's type and text, whether it is an object or JSON."""
    if isinstance(message, BaseMessage):
        return message.type, message.text
    kind = {"AIMessageChunk": "AIMessageChunk"}.get(message["type"], message["type"])
    return kind, message["content"]


def gist(mode: str, chunk: Any) -> Any:
    """Return what must be the same wherever a chunk was received: all but ids, times and run metadata."""
    return _GISTS[mode](chunk)


_GISTS: dict[str, Callable[[Any], Any]] = {
    "values": lambda chunk: (sorted(chunk), [message_of(message) for message in chunk["messages"]]),
    "updates": lambda chunk: {
        node: sorted(update) if isinstance(update, dict) else len(update) for node, update in chunk.items()
    },
    "messages": lambda chunk: (chunk[1]["langgraph_node"], message_of(chunk[0])),
    "custom": lambda chunk: (chunk["name"], sorted(chunk["payload"]), chunk["payload"].get("tokens")),
    "debug": lambda chunk: (chunk["type"], chunk["step"], chunk["payload"].get("name")),
    "tasks": lambda chunk: (chunk["name"], "result" in chunk),
    "checkpoints": lambda chunk: (chunk["metadata"]["step"], chunk["metadata"]["source"], chunk["next"]),
}


def gists(turns: Sequence[Parts], mode: str) -> list[list[Any]]:
    return [[gist(mode, chunk) for part, chunk in parts if part == mode] for parts in turns]


@pytest.fixture(scope="module")
def everything(server: DevServer, stub: StubModel, environment: dict[str, str]) -> dict[str, tuple[str, list[Parts]]]:
    """The same conversation in process and through both SDKs, with all modes on, and its thread."""
    stub.respond = Scripted(chat=answer)
    return asyncio.run(talk_everywhere(server, environment))


async def talk_everywhere(server: DevServer, environment: dict[str, str]) -> dict[str, tuple[str, list[Parts]]]:
    async with get_client(url=server.url) as client:
        python = (await client.threads.create())["thread_id"]
        javascript = (await client.threads.create())["thread_id"]
        return {
            "process": ("", await talk_in_process(environment)),
            "python": (python, await talk_in_python(client, python, SERVER_MODES)),
            "javascript": (javascript, talk_in_javascript(server, javascript, SERVER_MODES)),
        }


@pytest.mark.parametrize("sdk", ["python", "javascript"])
@pytest.mark.parametrize("mode", ALL_MODES)
async def test_S1_each_mode_brings_what_it_brings_in_process(
    everything: dict[str, tuple[str, list[Parts]]], sdk: str, mode: str
) -> None:
    expected = gists(everything["process"][1], mode)
    assert sum(map(len, expected)) >= len(STEPS) - 1
    assert gists(everything[sdk][1], mode) == expected


@pytest.mark.parametrize("sdk", ["python", "javascript"])
async def test_S2_values_are_the_complete_state_of_each_checkpoint(
    everything: dict[str, tuple[str, list[Parts]]], client: LangGraphClient, sdk: str
) -> None:
    thread_id, turns = everything[sdk]
    history = await History.of_server(client, thread_id, graph.nodes.keys())
    states = [canonical(known.values) for known in history.known.values()]
    values = [chunk for parts in turns for mode, chunk in parts if mode == "values" and "__interrupt__" not in chunk]
    assert all(canonical(chunk) in states for chunk in values)
    assert any({"messages", "summarized_messages", "context", "memory"} <= set(chunk) for chunk in values)


@pytest.mark.parametrize("sdk", ["python", "javascript"])
async def test_S2_updates_hold_only_what_changed(everything: dict[str, tuple[str, list[Parts]]], sdk: str) -> None:
    written = {
        "inject_memory": {"memory"},
        "summarize": {"summarized_messages", "context"},
        "call_model": {"messages"},
        "tools": {"messages"},
        "flush_memory": {"memory"},
    }
    for mode, chunk in [part for parts in everything[sdk][1] for part in parts]:
        if mode == "updates" and "__interrupt__" not in chunk:
            assert all(set(update) <= written[node] for node, update in chunk.items()), chunk


@pytest.mark.parametrize("sdk", ["process", "python", "javascript"])
async def test_S1_tokens_of_summaries_and_extractions_never_appear_in_messages(
    everything: dict[str, tuple[str, list[Parts]]], sdk: str
) -> None:
    parts = [part for turn in everything[sdk][1] for part in turn]
    assert "memory.summarized" in [chunk["name"] for mode, chunk in parts if mode == "custom"]
    streamed = [chunk for mode, chunk in parts if mode == "messages"]
    assert {metadata["langgraph_node"] for _, metadata in streamed} == {"call_model", "tools"}
    assert "They talked" not in " ".join(message_of(message)[1] for message, _ in streamed)


@pytest.mark.parametrize("sdk", ["process", "python", "javascript"])
async def test_S5_memory_tells_what_it_did_once_a_turn(
    everything: dict[str, tuple[str, list[Parts]]], sdk: str
) -> None:
    names = [[chunk["name"] for mode, chunk in parts if mode == "custom"] for parts in everything[sdk][1]]
    assert names[0] == ["memory.injected", "weather.asked", "memory.queued"]
    assert names[1] == ["memory.injected"]
    assert names[2] == ["memory.queued"]
    assert sum("memory.summarized" in turn for turn in names) >= 1
    assert all(turn.count("memory.injected") == turn.count("memory.queued") == 1 for turn in names[3:])


async def test_S4_every_event_of_the_conversation_carries_its_checkpoint_python(
    client: LangGraphClient, thread_id: str
) -> None:
    turns: list[list[StreamEvent]] = []
    heads: list[str | None] = []
    for step in STEPS:
        options: Any = {"context": SMALL, "stream_mode": ALL_MODES, **given(step, heads)}
        turns.append([event async for event in stream_run_events(client, thread_id, "chat", **options)])
        heads.append(await head_of(client, thread_id))
    await check_turns(client, thread_id, turns, heads)


async def check_turns(
    client: LangGraphClient, thread_id: str, turns: list[list[StreamEvent]], heads: list[str | None]
) -> None:
    """Assert the pairing rule for every event, and that each turn ends in the thread's head."""
    history = await History.of_server(client, thread_id, graph.nodes.keys())
    for events, ended in zip(turns, heads, strict=True):
        check(events, history)
        assert events[-1]["checkpoint"]
        assert events[-1]["checkpoint"]["id"] == ended


async def test_S4_every_event_of_the_conversation_carries_its_checkpoint_javascript(
    server: DevServer, client: LangGraphClient, thread_id: str
) -> None:
    turns: list[list[StreamEvent]] = []
    heads: list[str | None] = []
    modes = ["values", "updates", "tasks", "checkpoints", "custom", "debug"]
    for step in STEPS:
        options: dict[str, Any] = {"threadId": thread_id, "assistantId": "chat", "modes": modes, "context": SMALL}
        result = run_javascript("events.mjs", url=server.url, **options, **given(step, heads, "checkpointId"))
        assert result["error"] is None
        turns.append(result["events"])
        heads.append(await head_of(client, thread_id))
    await check_turns(client, thread_id, turns, heads)
