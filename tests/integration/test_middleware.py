"""The middleware beside others in one agent: what langchain's agents do that could lose, repeat or show too much."""

import asyncio
import inspect
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
    ToolRetryMiddleware,
    hook_config,
)
from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.channels import DeltaChannel
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from graphs.middleware import MemoryContext, PalimpsestMemory, PalimpsestState
from graphs.model_failures import ModelUnavailable
from graphs.service import MemoryService
from graphs.settings import Settings
from memory import FactStore
from memory.config import MemoryConfig
from tests.doors import House, is_extraction, saver
from tests.fakes import RecordingModel, learns

AGENTS = ("agent", "agent sync")
CALL = {"name": "weather", "args": {"city": "Bergen"}, "id": "1", "type": "tool_call"}

Order = Callable[[PalimpsestMemory], list[Any]]


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"I like {city} rain"


@pytest.fixture(params=AGENTS)
def door(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def summarizing() -> SummarizationMiddleware[Any, Any]:
    model = RecordingModel(respond=lambda _: "I like nothing.")
    return SummarizationMiddleware(model, trigger=("messages", 4), keep=("messages", 1))


def clearing() -> ContextEditingMiddleware[Any, Any]:
    return ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=0)])


def retrying() -> ToolRetryMiddleware[Any, Any]:
    return ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)


ORDERS: dict[str, Order] = {
    "memory, summarization": lambda memory: [memory, summarizing()],
    "summarization, memory": lambda memory: [summarizing(), memory],
    "memory, context editing": lambda memory: [memory, clearing()],
    "context editing, memory": lambda memory: [clearing(), memory],
    "memory, tool retry": lambda memory: [memory, retrying()],
    "tool retry, memory": lambda memory: [retrying(), memory],
    "all": lambda memory: [summarizing(), retrying(), memory, clearing()],
}


def approving() -> HumanInTheLoopMiddleware[Any, Any]:
    return HumanInTheLoopMiddleware(interrupt_on={"weather": True})


HUMAN: dict[str, Order] = {
    "memory, human": lambda memory: [memory, approving()],
    "human, memory": lambda memory: [approving(), memory],
}


def read_as_new(house: House) -> Counter[str]:
    """Return how often each text of a person was read to be learned."""
    prompts = [prompt[-1].text for prompt in house.memory.prompts if is_extraction(prompt)]
    return Counter(found for text in prompts for found in re.findall(r"^\[\d+\] user[^:]*: (.*)$", text, re.MULTILINE))


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("drains", ["after each turn", "at the end"])
async def test_beside_others_all_that_people_said_is_learned_and_each_of_it_once(
    door: str, order: Order, drains: str
) -> None:
    house = House(door, tools=[weather], middleware=order)
    house.memory.respond = learns
    said = [f"I like fruit number {number}." for number in range(6)]
    for number, text in enumerate(said):
        if number % 2:
            house.chat.replies = [AIMessage("", tool_calls=[{**CALL, "id": str(number)}]), "Noted."]
        await house.say(text)
        if drains == "after each turn":
            await house.settle()
    await house.settle()
    assert read_as_new(house) == Counter(said)
    learned = {fact.content for fact in FactStore(house.store, "local").list()}
    assert learned == {f"Likes fruit number {number}" for number in range(6)}


class Jumps(AgentMiddleware[Any, Any, Any]):
    """Ends the run before the model is called, as a guard does."""

    def __init__(self, at: str) -> None:
        self.at = at
        self.tools = []

    def _end(self, at: str) -> dict[str, Any] | None:
        return {"messages": [AIMessage("No.")], "jump_to": "end"} if self.at == at else None

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        return self._end("before_agent")

    @hook_config(can_jump_to=["end"])
    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        return self._end("before_agent")

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        return self._end("before_model")

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        return self._end("before_model")


@pytest.mark.parametrize("at", ["before_agent", "before_model"])
@pytest.mark.parametrize("first", [True, False], ids=["jumps first", "memory first"])
async def test_a_run_that_another_middleware_ends_is_learned(door: str, at: str, first: bool) -> None:
    jumps = Jumps(at)
    house = House(door, middleware=lambda memory: [jumps, memory] if first else [memory, jumps])
    await house.say("I like figs.")
    assert house.pending() == {"I like figs."}
    await house.say("I like plums.", mode="incognito")
    await house.say("I like pears.")
    assert "plums" not in json.dumps(house.outbox())
    assert house.pending() == {"I like figs.", "I like pears."}


async def test_a_model_that_fails_loses_nothing_and_is_written_down_once(door: str) -> None:
    house = House(door)
    house.chat.replies = [ConnectionError("down")]
    with pytest.raises(ConnectionError):
        await house.say("I like figs.")
    assert house.pending() == {"I like figs."}
    house.memory.respond = learns
    await house.settle()
    await house.say("Are you there?")
    await house.settle()
    assert read_as_new(house) == Counter(["I like figs.", "Are you there?"])


async def test_a_question_is_written_down_before_the_model_is_called(door: str) -> None:
    house = House(door)
    before: list[set[str]] = []

    def respond(_: list[BaseMessage]) -> str:
        before.append(house.pending())
        return "Noted."

    house.chat.respond = respond
    await house.say("I like figs.")
    assert before == [{"I like figs."}]


@pytest.mark.parametrize("order", HUMAN.values(), ids=HUMAN)
async def test_a_run_that_waits_for_a_person_goes_on_in_another_process(door: str, order: Order) -> None:
    store, checkpointer = InMemoryStore(), saver()
    options: dict[str, Any] = {"store": store, "checkpointer": checkpointer, "tools": [weather]}
    one = House(door, middleware=order, **options)
    FactStore(store, "local").create("User is allergic to peanuts", "knowledge", 0.9)
    one.chat.replies = [AIMessage("", tool_calls=[CALL])]
    state = await one.say("I like figs.")
    assert state["__interrupt__"]
    assert one.pending() == {"I like figs."}

    other = House(door, middleware=order, **options)
    other.memory.respond = learns
    state = await other.invoke(Command(resume={"decisions": [{"type": "approve"}]}))
    assert state["messages"][-1].text == "reply to I like Bergen rain"
    assert "peanuts" in other.shown()
    # It takes over what the first one left, and reads it by itself.
    assert await asyncio.to_thread(other.service.close, 120.0)
    assert read_as_new(other) == Counter(["I like figs."])


@pytest.mark.parametrize("order", HUMAN.values(), ids=HUMAN)
async def test_an_incognito_run_that_is_resumed_stays_incognito(door: str, order: Order) -> None:
    house = House(door, tools=[weather], middleware=lambda memory: [summarizing(), *order(memory)])
    await house.say("Good morning.")
    house.chat.replies = [AIMessage("", tool_calls=[CALL])]
    await house.say("I like figs.", mode="incognito")
    state = await house.invoke(Command(resume={"decisions": [{"type": "approve"}]}))
    assert "I like figs." not in [message.text for message in state["messages"]]  # a summary took its place
    await house.say("Hello.")
    assert house.pending() == {"Good morning.", "Hello."}
    assert "figs" not in json.dumps(house.outbox())
    assert "Bergen" not in json.dumps(house.outbox())


async def streamed(house: House, text: str, mode: Any) -> list[Any]:
    config: Any = {"configurable": {"thread_id": "t", "user_id": "local"}}
    sent = {"messages": [HumanMessage(text)]}
    if house.door.endswith("sync"):
        return await asyncio.to_thread(lambda: list(house.graph.stream(sent, config, stream_mode=mode)))
    return [chunk async for chunk in house.graph.astream(sent, config, stream_mode=mode)]


async def test_the_stream_of_messages_has_the_answers_only(door: str) -> None:
    house = House(door, summarizes=True)
    house.chat.respond = lambda _: "Noted."
    FactStore(house.store, "local").create("User is allergic to peanuts", "knowledge", 0.9)
    for number in range(16):
        chunks = await streamed(house, f"{number}: " + "word " * 60, "messages")
        assert "".join(message.text for message, _ in chunks) == "Noted."
    assert "They talked." in house.shown()


async def test_the_events_of_memory_are_streamed(door: str) -> None:
    house = House(door, summarizes=True)
    names: list[str] = []
    for number in range(16):
        names += [chunk["name"] for chunk in await streamed(house, f"{number}: " + "word " * 60, "custom")]
    counted = Counter(names)
    assert counted.pop("memory.summarized") >= 1
    assert counted == {"memory.injected": 16, "memory.queued": 16}


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol:langchain_core._api.LangChainBetaWarning")
async def test_the_newest_protocol_has_the_envelopes_and_no_tokens_of_memory() -> None:
    house = House("agent", summarizes=True)
    for number in range(8):
        await house.say(f"{number}: " + "word " * 60)
    config: Any = {"configurable": {"thread_id": "t", "user_id": "local"}}
    methods: Counter[str] = Counter()
    texts = ""
    run = await house.graph.astream_events({"messages": [HumanMessage("9: " + "word " * 60)]}, config, version="v3")
    async for event in run:
        methods[event["method"]] += 1
        if event["method"] == "messages":
            texts += str(event["params"]["data"])
    assert methods["checkpoints"] > 1
    assert "They talked." not in texts


def test_the_channel_of_messages_is_the_callers() -> None:
    memory = PalimpsestMemory(user="ada", service=House("agent").service)
    model = RecordingModel()
    assert isinstance(
        create_agent(model, state_schema=PalimpsestState, middleware=[memory]).channels["messages"], DeltaChannel
    )
    assert not isinstance(create_agent(model, middleware=[memory]).channels["messages"], DeltaChannel)


async def test_without_the_state_schema_it_remembers_too(door: str) -> None:
    house = House(door)
    agent = create_agent(
        house.chat, middleware=[PalimpsestMemory(user="ada", service=house.service)], store=house.store
    )
    sent: Any = {"messages": [HumanMessage("I like figs.")]}
    await (asyncio.to_thread(agent.invoke, sent) if door.endswith("sync") else agent.ainvoke(sent))
    assert house.pending("ada") == {"I like figs."}


async def test_what_memory_keeps_in_the_state_is_nobodys_input_or_output(door: str) -> None:
    house = House(door)
    for schema in (house.graph.get_input_jsonschema(), house.graph.get_output_jsonschema()):
        assert not [name for name in schema["properties"] if name.startswith("palimpsest")]
    sent = {"messages": [HumanMessage("Hello")], "palimpsest_memory": {"PalimpsestMemory": {"mode": "incognito"}}}
    state = await house.invoke(sent)
    assert set(state) == {"messages"}
    assert house.pending() == {"Hello"}


@pytest.mark.parametrize(
    "noise", ["text", ["list"], {"PalimpsestMemory": "text"}, {"PalimpsestMemory": {"receipt": 1}}]
)
async def test_a_state_that_somebody_edited_breaks_no_turn(door: str, noise: Any) -> None:
    house = House(door, summarizes=True)
    await house.say("Hello")
    config: Any = {"configurable": {"thread_id": "t"}}
    house.graph.update_state(config, {"palimpsest_memory": noise, "palimpsest_summary": noise}, as_node="model")
    state = await house.say("Again")
    assert state["messages"][-1].text == "reply to Again"
    assert "Again" in house.pending()


async def test_two_memories_in_one_agent_are_kept_apart(door: str) -> None:
    def both(memory: PalimpsestMemory) -> list[Any]:
        team = PalimpsestMemory(user="team", agent_name="team", service=memory.service, tools=(), name="TeamMemory")
        return [memory, team]

    house = House(door, middleware=both)
    FactStore(house.store, "local").create("User is allergic to peanuts", "knowledge", 0.9)
    FactStore(house.store, "team", agent_name="team").create("Team meets on Mondays", "context", 0.9)
    await house.say("When do we meet, and what may I eat?")
    assert "peanuts" in house.shown()
    assert "Mondays" in house.shown()
    assert len(house.outbox()) == len(house.outbox("team", "team")) == 2
    with pytest.raises(AssertionError):
        create_agent(house.chat, middleware=[PalimpsestMemory(user="a"), PalimpsestMemory(user="b")])


@pytest.mark.parametrize("hook", ["before_agent", "before_model", "after_agent"])
def test_hooks_take_the_runtime_by_its_name(hook: str) -> None:
    for name in (hook, f"a{hook}"):
        assert list(inspect.signature(getattr(PalimpsestMemory, name)).parameters) == ["self", "state", "runtime"]


@pytest.mark.parametrize("user", ["", "  ", "\n"])
def test_a_blank_user_is_refused(user: str) -> None:
    with pytest.raises(ValueError, match="user must not be blank"):
        PalimpsestMemory(user=user)


def test_a_number_as_user_is_refused() -> None:
    with pytest.raises(ValueError, match=r"user must be text, a function or None, not int: pass str\(5\)"):
        PalimpsestMemory(user=5)  # type: ignore[arg-type]


def test_a_coroutine_function_for_the_user_is_refused() -> None:
    async def user(runtime: Any) -> str:
        return "ada"

    with pytest.raises(ValueError, match="user must be a plain function"):
        PalimpsestMemory(user=user)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("agent_name", "a b"),
        ("memory_tokens", -1),
        ("memory_mode", "secret"),
        ("time_zone", "Atlantis"),
        ("memory_model", "gpt"),
    ],
)
def test_a_bad_choice_is_refused_with_its_name(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match="model" if field == "memory_model" else field):
        PalimpsestMemory(**{field: value})


@pytest.mark.parametrize("said", [None, "", " "])
async def test_nobody_is_anonymous(door: str, said: str | None, caplog: pytest.LogCaptureFixture) -> None:
    house = House(door, user=lambda _: said)
    await house.say("I like figs.")
    assert house.store.search(("palimpsest",), limit=10) == []
    assert "no_identity" in caplog.text


async def test_a_function_for_the_user_that_fails_fails_no_turn(door: str, caplog: pytest.LogCaptureFixture) -> None:
    house = House(door, user=lambda runtime: runtime.context.nobody)
    assert (await house.say("I like figs."))["messages"][-1].text == "reply to I like figs."
    assert house.store.search(("palimpsest",), limit=10) == []
    assert "nobody can say whose memory a run uses" in caplog.text


async def test_without_an_identity_of_the_server_there_is_no_memory(door: str) -> None:
    house = House(door)
    house.service.settings = Settings(memory=MemoryConfig(debounce_seconds=3600))
    await house.say("I like figs.", user="ada")
    assert house.store.search(("palimpsest",), limit=10) == []


async def test_the_user_may_come_from_the_context(door: str) -> None:
    house = House(door, user=lambda runtime: f"user of {type(runtime.context).__name__}")
    await house.say("I like figs.")
    assert house.pending("user of MemoryContext") == {"I like figs."}


async def test_a_context_of_ones_own_may_have_the_same_names(door: str) -> None:
    house = House(door)
    agent = create_agent(
        house.chat, middleware=[PalimpsestMemory(user="ada", service=house.service)], store=house.store
    )
    call: Any = agent.invoke
    for context in ({"memory_mode": "incognito"}, {"memory_tokens": 0}):
        sent: Any = {"messages": [HumanMessage("I like figs.")]}
        options: Any = {"context": context}
        await (asyncio.to_thread(call, sent, **options) if door.endswith("sync") else agent.ainvoke(sent, **options))
    assert len(house.outbox("ada")) == 2
    with pytest.raises(ValueError, match="memory_tokens"):
        await agent.ainvoke({"messages": [HumanMessage("Hello")]}, context={"memory_tokens": -1})


async def test_a_run_cannot_be_looser_than_its_agent(door: str) -> None:
    house = House(door, memory_mode="read_only")
    await house.say("I like figs.", mode="normal")
    assert house.pending() == set()


async def test_what_a_model_tells_a_subagent_is_not_learned(door: str) -> None:
    house, researcher = House(door), RecordingModel()
    below = create_agent(
        researcher, middleware=[PalimpsestMemory(agent_name="research", service=house.service)], store=house.store
    )

    @tool
    def research(topic: str) -> str:
        """Find out about a topic."""
        below.invoke({"messages": [HumanMessage(f"I like {topic}.")]})
        return "found"

    house = House(door, tools=[research], store=house.store, user="ada")
    FactStore(house.store, "local", agent_name="research").create("Reads Wikipedia first", "preference", 0.9)
    call = {"name": "research", "args": {"topic": "bees"}, "id": "1", "type": "tool_call"}
    house.chat.replies = [AIMessage("", tool_calls=[call])]
    await house.say("What about bees?")
    assert "Reads Wikipedia first" in researcher.prompts[-1][0].text
    assert house.pending("ada") == {"What about bees?"}
    everything = [str(item.value) for item in house.store.search(("palimpsest",), limit=1000)]
    assert not [value for value in everything if "I like bees" in value]


class Anthropic(RecordingModel):
    """A model whose provider caches a prompt up to the marks in it."""

    @property
    def _llm_type(self) -> str:
        return "anthropic-chat"


@pytest.mark.parametrize("marked", [False, True])
async def test_the_stable_part_is_marked_for_anthropics_cache(marked: bool) -> None:
    house = House("agent")
    FactStore(house.store, "ada").create("User is allergic to peanuts", "knowledge", 0.9)
    model = Anthropic()
    text = {"type": "text", "text": "Be brief."}
    prompt: Any = [{**text, "cache_control": {"type": "ephemeral", "ttl": "1h"}}] if marked else "Be brief."
    agent = create_agent(
        model,
        system_prompt=SystemMessage(prompt),
        middleware=[PalimpsestMemory(user="ada", service=house.service)],
        store=house.store,
    )
    await agent.ainvoke({"messages": [HumanMessage("What may I eat?")]})
    content: Any = model.prompts[-1][0].content
    stable, block = content
    assert isinstance(stable, dict)
    assert isinstance(block, dict)
    assert stable["text"] == "Be brief."
    assert stable["cache_control"] == {"type": "ephemeral", **({"ttl": "1h"} if marked else {})}
    assert "peanuts" in block["text"]
    assert "cache_control" not in block


async def test_an_own_model_reads_what_is_said() -> None:
    store, reader = InMemoryStore(), RecordingModel(respond=learns)
    memory = PalimpsestMemory(user="ada", memory_model=reader)
    agent = create_agent(RecordingModel(), middleware=[memory], store=store)
    await agent.ainvoke({"messages": [HumanMessage("I like figs.")]})
    assert await asyncio.to_thread(memory.service.close, 120.0)
    assert [fact.content for fact in FactStore(store, "ada").list()] == ["Likes figs"]


async def test_where_no_model_is_configured_the_agents_own_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, purpose: str) -> RecordingModel:
        raise ModelUnavailable("No model is configured")

    store, chat = InMemoryStore(), RecordingModel(respond=learns)
    service = MemoryService(Settings(), load)
    memory = PalimpsestMemory(user="ada")
    monkeypatch.setitem(vars(memory), "service", service)
    agent = create_agent(chat, middleware=[memory], store=store)
    await agent.ainvoke({"messages": [HumanMessage("I like figs.")]})
    assert await asyncio.to_thread(service.close, 120.0)
    assert [fact.content for fact in FactStore(store, "ada").list()] == ["Likes figs"]


def test_the_context_refuses_what_cannot_be_meant() -> None:
    with pytest.raises(ValueError, match="memory_tokens"):
        MemoryContext(memory_tokens=-1)
