"""What an old answer is when it is sent again, by each door: to a model of any kind, and without what was thought."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from langchain.agents import create_agent
from langchain_core.language_models import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from pydantic import SecretStr

from palimpsest import (
    MemoryConfig,
    PalimpsestMemory,
    PalimpsestSummary,
    Settings,
    SummarizationNode,
    build_graph,
    configured_service,
)
from tests.fakes import RecordingModel
from tests.laws.talk import DOORS, LONG, NARROW, PATIENT, Talk
from tests.stub_model import ChatRequest, Json, Reply, StubModel

KEY = SecretStr("any")
PNG = "iVBORw0KGgoAAAANSUhEUg=="
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
ASKED: RunnableConfig = {"configurable": {"thread_id": "T", "langgraph_auth_user_id": "ada"}}
WET = {"type": "text", "text": "Bergen is wet."}
PLAN = "Hiddenplan"
CALL: Any = {"name": "weather", "args": {"city": "Bergen"}, "id": "c1", "type": "tool_call"}

# What a provider's package leaves in a thread: content, and what stands beside it.
FORMS: dict[str, tuple[list[str | Json], Json]] = {
    "Claude": (
        [
            {"type": "thinking", "thinking": PLAN, "signature": "s"},
            {"type": "redacted_thinking", "data": PLAN},
            {"type": "server_tool_use", "id": "t", "name": "web_search", "input": {"query": PLAN}},
            {"type": "web_search_tool_result", "tool_use_id": "t", "content": []},
            {**WET, "citations": [{"type": "web_search_result_location", "url": "http://x.example"}]},
        ],
        {"response_metadata": {"model_provider": "anthropic"}},
    ),
    "Gemini": (
        [
            {"type": "executable_code", "executable_code": PLAN, "language": 1},
            {"type": "code_execution_result", "code_execution_result": PLAN, "outcome": 1},
            {**WET, "extras": {"signature": "s"}},
        ],
        {"response_metadata": {"model_provider": "google_genai"}, "additional_kwargs": {"thought": PLAN}},
    ),
    "Responses API": (
        [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": PLAN}]},
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": PLAN}},
            {"type": "mcp_call", "id": "m", "name": "x", "server_label": "x", "arguments": PLAN},
            {**WET, "annotations": [{"type": "url_citation", "url": "http://x.example"}], "id": "msg_1"},
        ],
        {"response_metadata": {"model_provider": "openai", "id": "resp_1"}},
    ),
    "LangChain's v1": (
        [
            {"type": "reasoning", "reasoning": PLAN},
            {"type": "server_tool_call", "name": "web_search", "args": {"query": PLAN}, "id": "s"},
            {"type": "server_tool_result", "tool_call_id": "s", "status": "success", "output": PLAN},
            {"type": "non_standard", "value": {"type": "other", "said": PLAN}},
            {**WET, "annotations": [{"type": "citation", "url": "http://x.example"}]},
        ],
        {"response_metadata": {"model_provider": "anthropic", "output_version": "v1"}},
    ),
    "nobody tells": (
        [{"type": "thoughts", "thoughts": PLAN}, "Bergen", {"type": "text", "text": " is "}, "wet."],
        {"additional_kwargs": {"function_call": {"name": PLAN, "arguments": "{}"}}},
    ),
    "a refusal": ([{"type": "refusal", "refusal": "Bergen is wet."}], {"additional_kwargs": {"reasoning": PLAN}}),
}


def chat_completions(request: ChatRequest) -> Reply:
    """Answer as a strict server of OpenAI's protocol: what it does not know is a bad request."""
    for message in request.messages:
        if unknown := message.keys() - {"role", "content", "tool_calls", "tool_call_id"}:
            return Reply(status=400, text=f"Unknown parameter: {unknown}")
        for block in message["content"] if isinstance(message["content"], list) else []:
            allowed = {"text": {"type", "text"}, "image_url": {"type", "image_url"}}.get(block["type"], set())
            if not block.keys() <= allowed:
                return Reply(status=400, text=f"Invalid value: {block}")
    return Reply(text="And dry.")


def weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


def graph_of(stub: StubModel) -> Any:
    settings = Settings(model="openai:any", openai_base_url=stub.url, memory=MemoryConfig(enabled=False))
    service = configured_service(settings)
    return build_graph(service=service, tools=[weather]).compile(checkpointer=InMemorySaver(), store=InMemoryStore())


def agent_with(middleware: Callable[[], Any]) -> Callable[[StubModel], Any]:
    def made(stub: StubModel) -> Any:
        model = ChatOpenAI(model="any", base_url=stub.url, api_key=KEY, use_responses_api=False, max_retries=0)
        return create_agent(model, tools=[weather], middleware=[middleware()], checkpointer=InMemorySaver())

    return made


def memory() -> PalimpsestMemory:
    return PalimpsestMemory(service=configured_service(Settings(memory=MemoryConfig(**PATIENT))))


def summary() -> PalimpsestSummary:
    return PalimpsestSummary(RecordingModel(respond=lambda _: "They talked."))


ASKS = pytest.mark.parametrize(
    "made",
    [graph_of, agent_with(memory), agent_with(summary)],
    ids=["graph", "memory", "summary"],
)


async def sent(made: Callable[[StubModel], Any], *thread: Any) -> list[Json]:
    """Say something in a thread that was held elsewhere; return what the server was sent of it."""
    with StubModel(chat_completions) as stub:
        state = await made(stub).ainvoke({"messages": [*thread, HumanMessage("And Oslo?")]}, ASKED)
        assert state["messages"][-1].text == "And dry."
        assert [*state["messages"][: len(thread)]] == [*thread]
        return [message for message in stub.requests[-1].messages if message["role"] != "system"][:-1]


@ASKS
async def test_a_thread_goes_on_with_a_model_of_another_kind_which_is_sent_what_was_said(
    made: Callable[[StubModel], Any],
) -> None:
    thread = list[BaseMessage]()
    for name, (content, beside) in FORMS.items():
        thread += [HumanMessage(name, id=f"asked {name}"), AIMessage(content, id=name, **beside)]
    answered = [{"role": "assistant", "content": "Bergen is wet."}] * len(FORMS)
    assert (await sent(made, *thread))[1::2] == answered


@ASKS
async def test_it_is_sent_the_calls_of_tools_with_their_results(made: Callable[[StubModel], Any]) -> None:
    thought = {"type": "thinking", "thinking": PLAN, "signature": "s"}
    calls: list[Json] = [
        {"type": "tool_use", "id": "0", "name": "weather", "input": {"city": "Bergen"}},
        {"type": "function_call", "id": "fc_1", "call_id": "1", "name": "weather", "arguments": "{}"},
        {**CALL, "id": "2"},
    ]
    thread: list[BaseMessage] = [HumanMessage("How is Bergen?", id="asked")]
    for at, call in enumerate(calls):
        said: list[str | Json] = [thought, {"type": "text", "text": "I look."}, call]
        thread += [AIMessage(said, tool_calls=[{**CALL, "id": str(at)}], id=f"calls {at}")]
        thread += [ToolMessage("rain", tool_call_id=str(at), id=f"result {at}")]
    _, *rounds = await sent(made, *thread, AIMessage([thought, WET], id="answer"))
    answer = rounds.pop()
    assert answer["content"] == "Bergen is wet."
    for at in range(len(calls)):
        looks, result = rounds[2 * at : 2 * at + 2]
        assert looks["content"] == "I look."
        assert [(one["id"], one["function"]["name"]) for one in looks["tool_calls"]] == [(str(at), "weather")]
        assert (result["tool_call_id"], result["content"]) == (str(at), "rain")


@ASKS
async def test_it_is_sent_the_images_of_an_answer(made: Callable[[StubModel], Any]) -> None:
    images: list[Json] = [
        {"type": "image", "base64": PNG, "mime_type": "image/png", "id": "ig_1", "index": 0},
        {"type": "image_generation_call", "id": "ig_1", "result": PNG, "status": "completed"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    ]
    _, answer = await sent(made, HumanMessage("Draw.", id="1"), AIMessage([*images, WET], id="2"))
    assert answer["content"] == [IMAGE, IMAGE, IMAGE, WET]


@ASKS
@pytest.mark.parametrize(
    "said",
    [
        f"<think>{PLAN}",
        f"<think>{PLAN}</think>",
        [{"type": "text", "text": f"<think>{PLAN}</think>", "index": 0}],
        [{"type": "thinking", "thinking": PLAN, "signature": "s"}],
    ],
)
async def test_an_answer_that_is_only_a_thought_is_not_sent(made: Callable[[StubModel], Any], said: Any) -> None:
    thread = [HumanMessage("How is Bergen?", id="1"), AIMessage(said, id="2")]
    assert await sent(made, *thread) == []
    answer = AIMessage("Wet.", id="4")
    assert [one["content"] for one in await sent(made, *thread, HumanMessage("Well?", id="3"), answer)] == [
        "How is Bergen?\n\nWell?",
        "Wet.",
    ]


class Claude(RecordingModel):
    """Answers as Claude's package does, and is known as that."""

    blocks: tuple[str, ...] = ("thinking", "tool_use")

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return LangSmithParams(ls_provider="anthropic")


@pytest.mark.parametrize("door", ["graph", "agent"])
async def test_a_model_is_sent_its_own_thoughts_as_they_were(door: str) -> None:
    thinks: list[str | Json] = [{"type": "thinking", "thinking": PLAN, "signature": "s"}, WET]
    own = {"model_provider": "anthropic"}
    claude = Claude(replies=[AIMessage(thinks, tool_calls=[CALL], response_metadata=own), "Wet."])
    talk = Talk(tools=[weather])
    talk.chat = claude
    agent = create_agent(claude, tools=[weather], middleware=[memory(), summary()])
    await (talk.graph if door == "graph" else agent).ainvoke({"messages": [HumanMessage("How is Bergen?")]}, ASKED)
    assert [one.content for one in claude.prompts[-1] if isinstance(one, AIMessage)] == [thinks]


@pytest.mark.parametrize("is_own", [True, False])
async def test_the_responses_api_is_sent_the_work_of_its_own_answers_only(is_own: bool) -> None:
    content, beside = FORMS["Responses API" if is_own else "LangChain's v1"]
    asked: list[Json] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        text = {"type": "output_text", "text": "Dry.", "annotations": []}
        message = {"type": "message", "id": "msg_2", "role": "assistant", "status": "completed", "content": [text]}
        return httpx.Response(200, json={"id": "resp_2", "object": "response", "output": [message], "model": "any"})

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    model = ChatOpenAI(model="any", api_key=KEY, use_responses_api=True, http_async_client=client)
    agent = create_agent(model, middleware=[memory()])
    await agent.ainvoke({"messages": [HumanMessage("How is Bergen?"), AIMessage(content, **beside), HumanMessage("?")]})
    kinds = [item["type"] for item in asked[-1]["input"] if item.get("role") != "user"]
    assert kinds == (["reasoning", "web_search_call", "mcp_call", "message"] if is_own else ["message"])


THOUGHTS: list[Any] = [
    f"<think>\nAre figs {PLAN}? No.\n</think>\n\nTry figs.",
    f"<thinking>{PLAN}</thinking>Try figs.",
    f"The user wants a snack, {PLAN} figs.\n</think>\n\nTry figs.",
    f"<think>{PLAN}</think>\n<think>{PLAN}</think>\nTry figs.",
    f"Try <figs>. <thinking>{PLAN}</thinking>Try figs.",
    [{"type": "text", "text": f"<think>{PLAN}</think>"}, {"type": "text", "text": "Try figs."}],
]


@pytest.mark.parametrize("door", DOORS)
async def test_what_a_model_thought_aloud_is_shown_to_no_model_again_and_stays_in_the_thread(door: str) -> None:
    talk = Talk(door)
    talk.chat.replies = [AIMessage(said) for said in THOUGHTS]
    for number in range(len(THOUGHTS)):
        await talk.say(f"I like thing{number}.")
    state = await talk.say("I like figs.")
    assert [one.content for one in state["messages"] if isinstance(one, AIMessage)][:-1] == THOUGHTS
    assert talk.shown().count("Try figs.") == len(THOUGHTS)
    await talk.learn()
    assert talk.read()["I like thing0."] == 1
    told = [str(prompt) for model in (talk.chat, talk.memory, talk.summaries) for prompt in model.prompts]
    assert PLAN not in "".join([*told, talk.stored()])
    assert "Try figs." in talk.stored()


@pytest.mark.parametrize("transcript", ["keep", "compact"])
async def test_thoughts_take_no_room_of_a_conversation_and_are_in_no_summary(transcript: Any) -> None:
    talk = Talk(context=replace(NARROW, transcript=transcript))
    talk.chat.respond = lambda _: f"<think>{PLAN * 400}</think>Noted."
    for number in range(4):
        await talk.say(f"I like thing{number}.")
    assert all(f"thing{number}" in talk.shown() for number in range(4))
    assert not talk.summaries.prompts
    for number in range(12):
        await talk.say(f"{number}:{LONG}")
    assert talk.summaries.prompts
    assert PLAN not in "".join([talk.shown(), *map(str, talk.summaries.prompts)])
    kept = [one for one in (await talk.values())["messages"] if isinstance(one, AIMessage)]
    assert all(PLAN in one.text for one in kept)


async def test_an_agents_summary_is_of_what_follows_the_thoughts() -> None:
    chat, writer = RecordingModel(respond=lambda _: f"<think>{PLAN}</think>Noted."), RecordingModel()
    own = PalimpsestSummary(writer, trigger=("messages", 4), keep=("messages", 1))
    agent = create_agent(chat, middleware=[own], checkpointer=InMemorySaver())
    for number in range(5):
        await agent.ainvoke({"messages": [HumanMessage(f"{number}:{LONG}")]}, ASKED)
    assert writer.prompts
    assert PLAN not in str([*chat.prompts, *writer.prompts])


def test_what_a_node_of_ones_own_graph_sends_has_no_thoughts() -> None:
    node = SummarizationNode(model=RecordingModel(), max_tokens=400, max_summary_tokens=64)
    said = [HumanMessage("Hello", id="1"), AIMessage(f"<think>{PLAN * 400}</think>Hi.", id="2")]
    assert [one.text for one in node.invoke({"messages": said})["summarized_messages"]] == ["Hello", "Hi."]


@pytest.mark.parametrize("door", DOORS)
async def test_tags_that_a_person_writes_or_that_stand_in_code_are_text(door: str) -> None:
    talk = Talk(door)
    code = "Write it so:\n```\n<think>my plan</think>\n```\nThe tag `</think>` ends it."
    talk.chat.replies = [code]
    await talk.say("<think>I like plums.</think> How do I write that?")
    await talk.say("I like figs.")
    assert code in talk.shown()
    assert "<think>I like plums.</think> How" in talk.shown()
    await talk.learn()
    assert talk.read()["<think>I like plums.</think> How do I write that?"] == 1


def thinking(field: str, *, is_kept: bool = True) -> Callable[[ChatRequest], Reply]:
    """Answer as DeepSeek's server does: of a tool round it wants its thoughts back."""

    def answer(request: ChatRequest) -> Reply:
        if any(message.get("tool_calls") and message.get(field) != PLAN for message in request.messages):
            return Reply(status=400, text=f"The `{field}` in the thinking mode must be passed back to the API.")
        if request.messages[-1]["role"] == "user":
            return Reply(tool_calls=(("weather", {"city": "Bergen"}),), beside={field: PLAN})
        return Reply(text="Wet.", beside={field: f"{PLAN}, done"})

    return answer


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("streams", [True, False])
async def test_a_server_is_sent_the_thoughts_of_its_tool_rounds_and_no_other_is(field: str, streams: bool) -> None:
    with StubModel(thinking(field)) as stub:
        graph = graph_of(stub)
        for question in ("How is Bergen?", "And now?"):
            asked = {"messages": [HumanMessage(question)]}
            if streams:
                assert [part async for part in graph.astream(asked, ASKED, stream_mode="messages")]
            else:
                await graph.ainvoke(asked, ASKED)
        state = await graph.aget_state(ASKED)
        assert [one.text for one in state.values["messages"] if one.type == "ai"] == ["", "Wet."] * 2
        assert PLAN not in str([message["content"] for message in stub.requests[-1].messages])
    elsewhere = [message.model_copy() for message in state.values["messages"]]
    for message in elsewhere:
        if isinstance(message, AIMessage):
            message.response_metadata = {**message.response_metadata, "model_provider": "api.example.org"}
    said = await sent(graph_of, *elsewhere)
    assert [message["content"] for message in said if message["role"] == "tool"] == ["rain in Bergen"] * 2


@pytest.mark.parametrize("arguments", [[1], 3, "x", True, None])
@pytest.mark.parametrize("mode", ["values", "messages"])
async def test_arguments_that_are_no_object_are_told_to_the_model(arguments: Any, mode: Any) -> None:
    def answer(request: ChatRequest) -> Reply:
        is_asked = request.messages[-1]["role"] == "user"
        return Reply(tool_calls=(("weather", arguments),)) if is_asked else Reply(text="Well.")

    with StubModel(answer) as stub:
        graph = graph_of(stub)
        async for _ in graph.astream({"messages": [HumanMessage("How is Oslo?")]}, ASKED, stream_mode=mode):
            pass
        _, asked, told, answered = (await graph.aget_state(ASKED)).values["messages"]
    assert told.status == "error"
    assert told.tool_call_id == asked.tool_calls[0]["id"]
    assert answered.text == "Well."
