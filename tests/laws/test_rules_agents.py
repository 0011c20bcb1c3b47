"""The middleware beside others in one agent: what langchain's agents do that could lose, repeat or show too much."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.channels import DeltaChannel
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from palimpsest import (
    FactStore,
    FlushingSummarization,
    MemoryContext,
    PalimpsestMemory,
    PalimpsestState,
    PalimpsestSummary,
)
from tests.fakes import RecordingModel, learns
from tests.laws.talk import AGENTS, LONG, Failing, Talk, failing

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


def flushing(memory: PalimpsestMemory, keep: int = 1, model: Any = None) -> FlushingSummarization:
    model = model or RecordingModel(respond=lambda _: "I like nothing.")
    return FlushingSummarization(model, memory=memory, trigger=("messages", 4), keep=("messages", keep))


def clearing() -> ContextEditingMiddleware[Any, Any]:
    return ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=0)])


def retrying() -> ToolRetryMiddleware[Any, Any]:
    return ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)


ORDERS: dict[str, Order] = {
    "memory, summarization": lambda memory: [memory, summarizing()],
    "summarization, memory": lambda memory: [summarizing(), memory],
    "memory, flushing": lambda memory: [memory, flushing(memory)],
    "flushing, memory": lambda memory: [flushing(memory), memory],
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


class OnLoops(RecordingModel):
    """A model that says where it is awaited."""

    async def _agenerate(self, *asked: Any, **more: Any) -> Any:
        raise AssertionError("awaited")


@pytest.mark.parametrize("kind", ["own", "LangChain's"])
async def test_an_agent_without_await_leaves_no_connections_of_a_loop_behind(kind: str) -> None:
    """Providers' packages share them within a process: a turn of the program, awaited on its own loop, would fail."""
    model = OnLoops(respond=lambda _: "They talked.")

    def around(memory: PalimpsestMemory) -> list[Any]:
        own = PalimpsestSummary(model, trigger=("messages", 4), keep=("messages", 1), memory=memory)
        return [memory, own if kind == "own" else flushing(memory, model=model)]

    talk = Talk("agent sync", around=around)
    talk.graph.checkpointer = None  # or a summary of ours is written behind the turns
    await talk.run({"messages": [HumanMessage(LONG) if at % 2 else AIMessage("Well.") for at in range(6)]}, talk.who())
    assert model.prompts


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
async def test_beside_others_all_that_people_said_is_learned_and_each_of_it_once(door: str, order: Order) -> None:
    talk = Talk(door, tools=[weather], around=order)
    said = [f"I like fruit number {number}." for number in range(6)]
    for number, text in enumerate(said):
        if number % 2:
            talk.chat.replies = [AIMessage("", tool_calls=[{**CALL, "id": str(number)}]), "Noted."]
        await talk.say(text)
        if number in (1, 2):
            await talk.learn()
    assert await talk.learn() == [f"Likes fruit number {number}" for number in range(6)]
    assert talk.read() == Counter(said)


def history() -> list[BaseMessage]:
    """What a client brings along that memory has never seen, of more tokens than LangChain's summary is made of."""
    told = [(HumanMessage(f"I like fruit number {n}. {LONG * 20}"), AIMessage("Noted.")) for n in range(6)]
    return [message for pair in told for message in pair]


async def test_what_langchains_summary_takes_away_is_learned(door: str) -> None:
    talk = Talk(door, around=lambda memory: [memory, flushing(memory)])
    await talk.run({"messages": [*history(), HumanMessage("I like plums.")]})
    assert len((await talk.values())["messages"]) == 3  # the summary, the question and its answer
    assert await talk.learn() == [*(f"Likes fruit number {n}" for n in range(6)), "Likes plums"]
    assert "Likes fruit number 5" in talk.stored()
    await talk.say("Thanks.")
    await talk.learn()
    assert {times for text, times in talk.read().items() if text.startswith("I like")} == {1}


async def test_while_the_store_is_away_langchains_summary_waits() -> None:
    store = Failing()
    talk = Talk("agent", store=store, around=lambda memory: [memory, flushing(memory)])
    with failing(store):
        await talk.run({"messages": [*history(), HumanMessage("I like plums.")]})
        assert len((await talk.values())["messages"]) == 14
    await talk.restarted().say("Are you there?")
    assert set(await talk.learn()) >= {f"Likes fruit number {n}" for n in range(6)}


async def test_an_answer_whose_question_langchains_summary_took_is_in_the_journal(door: str) -> None:
    talk = Talk(door, tools=[weather], around=lambda memory: [memory, flushing(memory, keep=2)])
    calls = [AIMessage("", tool_calls=[{**CALL, "id": str(n)}]) for n in range(3)]
    talk.chat.replies = [*calls, "It rains."]
    await talk.say("I like figs. How is the weather?")
    await talk.learn()
    assert "It rains." in talk.stored()


async def test_a_model_that_fails_loses_nothing_and_is_written_down_once(
    door: str, caplog: pytest.LogCaptureFixture
) -> None:
    talk = Talk(door, tools=[weather])
    talk.chat.replies = [AIMessage("", tool_calls=[CALL]), "Noted.", ConnectionError("down")]
    await talk.say("How is the weather?")
    with pytest.raises(ConnectionError):
        await talk.say("I like figs.")
    assert await talk.learn() == ["Likes figs"]
    await talk.say("Are you there?")
    await talk.learn()
    assert talk.read() == Counter(["How is the weather?", "I like figs.", "Are you there?"])
    assert "unknown node" not in caplog.text


async def test_what_a_subclass_does_as_an_agent_begins_is_done_with_await_and_without(door: str) -> None:
    begun = []

    class Noting(PalimpsestMemory):
        async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> Any:
            begun.append(runtime)
            return await super().abefore_agent(state, runtime)

    talk = Talk(door, around=lambda memory: [Noting(service=memory.service)])
    await talk.say("I like figs.")
    assert len(begun) == 1
    assert await talk.learn() == ["Likes figs"]


async def test_a_question_is_written_down_before_the_model_is_called(door: str) -> None:
    talk = Talk(door)
    before: list[bool] = []

    def respond(_: list[BaseMessage]) -> str:
        before.append("I like figs." in talk.stored())
        return "Noted."

    talk.chat.respond = respond
    await talk.say("I like figs.")
    assert before == [True]


@pytest.mark.parametrize("order", HUMAN.values(), ids=HUMAN)
async def test_a_run_that_waits_for_a_person_goes_on_in_another_process(door: str, order: Order) -> None:
    one = Talk(door, around=order, tools=[weather])
    FactStore(one.store, "ada").create("User is allergic to peanuts", "knowledge", 0.9)
    one.chat.replies = [AIMessage("", tool_calls=[CALL])]
    state = await one.say("I like figs.")
    assert state["__interrupt__"]

    other = Talk(door, around=order, tools=[weather], store=one.store, saver=one.saver)
    state = await other.run(Command(resume={"decisions": [{"type": "approve"}]}))
    assert state["messages"][-2].text == "I like Bergen rain"
    assert "peanuts" in other.shown()
    assert await other.learn() == ["Likes figs", "User is allergic to peanuts"]
    assert other.read() == Counter(["I like figs."])


@pytest.mark.parametrize("order", HUMAN.values(), ids=HUMAN)
async def test_an_incognito_run_that_is_resumed_stays_incognito(door: str, order: Order) -> None:
    talk = Talk(door, tools=[weather], around=lambda memory: [summarizing(), *order(memory)])
    await talk.say("Good morning.")
    talk.chat.replies = [AIMessage("", tool_calls=[CALL])]
    await talk.say("I like figs.", mode="incognito")
    state = await talk.run(Command(resume={"decisions": [{"type": "approve"}]}))
    assert "I like figs." not in [message.text for message in state["messages"]]  # a summary took its place
    await talk.say("Hello.")
    await talk.learn()
    assert talk.read() == Counter(["Good morning.", "Hello."])
    assert "figs" not in talk.stored()
    assert "Bergen" not in talk.stored()


async def streamed(talk: Talk, text: str, mode: Any) -> list[Any]:
    sent = {"messages": [HumanMessage(text)]}
    if talk.door.endswith("sync"):
        return await asyncio.to_thread(lambda: list(talk.graph.stream(sent, talk.who(), stream_mode=mode)))
    return [chunk async for chunk in talk.graph.astream(sent, talk.who(), stream_mode=mode)]


def with_summary(memory: PalimpsestMemory) -> list[Any]:
    writer = RecordingModel(respond=lambda _: "They talked.")
    return [memory, PalimpsestSummary(writer, trigger=("tokens", 700), max_summary_tokens=64, memory=memory)]


async def test_S1_S5_streams_have_the_answers_and_the_events_of_memory_only(door: str) -> None:
    talk, names = Talk(door, around=with_summary), Counter[str]()
    FactStore(talk.store, "ada").create("User is allergic to peanuts", "knowledge", 0.9)
    for number in range(12):
        chunks = await streamed(talk, f"{number}:" + LONG, ["messages", "custom"])
        assert "".join(part[0].text for mode, part in chunks if mode == "messages") == "Noted."
        names.update(part["name"] for mode, part in chunks if mode == "custom")
    assert "They talked." in talk.shown()
    assert names.pop("memory.summarized") >= 1
    assert names == {"memory.injected": 12, "memory.queued": 12}


async def test_no_summary_that_is_not_due_asks_whose_memory_it_is(door: str) -> None:
    user = Mock(return_value="ada")
    talk = Talk(door, tools=[weather], around=with_summary, user=user)
    await talk.say("Hello")
    of_a_turn = user.call_count
    talk.chat.replies = [AIMessage("", tool_calls=[CALL]), "Noted."]
    await talk.say("And in Bergen?")
    assert user.call_count == 2 * of_a_turn + 1, "a further call of the model is shown memory, and that is all"
    without = Talk(door, user=user)
    user.reset_mock()
    await without.say("Hello")
    assert of_a_turn == user.call_count + 1, "a summary that is written ahead is the user's"


def test_the_channel_of_messages_is_the_callers() -> None:
    model, memory = RecordingModel(), PalimpsestMemory(user="ada", service=Talk().service)
    assert isinstance(
        create_agent(model, state_schema=PalimpsestState, middleware=[memory]).channels["messages"], DeltaChannel
    )
    assert not isinstance(create_agent(model, middleware=[memory]).channels["messages"], DeltaChannel)


async def test_what_memory_keeps_in_the_state_is_nobodys_input_or_output(door: str) -> None:
    talk = Talk(door)
    for schema in (talk.graph.get_input_jsonschema(), talk.graph.get_output_jsonschema()):
        assert not [name for name in schema["properties"] if name.startswith("palimpsest")]
    sent = {"messages": [HumanMessage("Hello")], "palimpsest_memory": {"PalimpsestMemory": {"mode": "incognito"}}}
    assert set(await talk.run(sent)) == {"messages"}
    assert "Hello" in talk.stored()


@pytest.mark.parametrize(
    "noise", ["text", ["list"], {"PalimpsestMemory": "text"}, {"PalimpsestMemory": {"receipt": 1}}]
)
async def test_a_state_that_somebody_edited_breaks_no_turn(door: str, noise: Any) -> None:
    talk = Talk(door, around=with_summary)
    await talk.say("Hello")
    kept = {"palimpsest_memory": noise, "palimpsest_summary": noise}
    talk.graph.update_state(talk.who(), kept, as_node="model")
    assert (await talk.say("Again"))["messages"][-1].text == "Noted."
    assert "Again" in talk.stored()


async def test_two_memories_in_one_agent_are_kept_apart(door: str) -> None:
    def both(memory: PalimpsestMemory) -> list[Any]:
        team = PalimpsestMemory(user="team", agent_name="team", service=memory.service, tools=(), name="TeamMemory")
        return [memory, team]

    talk = Talk(door, around=both)
    FactStore(talk.store, "ada").create("User is allergic to peanuts", "knowledge", 0.9)
    FactStore(talk.store, "team", agent_name="team").create("Team meets on Mondays", "context", 0.9)
    await talk.say("I like figs.")
    assert "peanuts" in talk.shown()
    assert "Mondays" in talk.shown()
    assert "Likes figs" in await talk.learn()
    assert await talk.known("team", agent_name="team") == ["Likes figs", "Team meets on Mondays"]
    with pytest.raises(AssertionError):
        create_agent(talk.chat, middleware=[PalimpsestMemory(user="a"), PalimpsestMemory(user="b")])


async def _coroutine(_: Any) -> str:
    return "ada"


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"user": " \n"}, "user must not be blank"),
        ({"user": 5}, r"user must be text, a function or None, not int: pass str\(5\)"),
        ({"user": _coroutine}, "user must be a plain function"),
        ({"agent_name": "a b"}, "agent_name"),
        ({"memory_tokens": -1}, "memory_tokens"),
        ({"memory_mode": "secret"}, "memory_mode"),
        ({"time_zone": "Atlantis"}, "time_zone"),
        ({"memory_model": "gpt"}, "model"),
    ],
)
def test_a_bad_choice_is_refused_with_its_name(choice: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PalimpsestMemory(**choice)


def nobody(runtime: Any) -> str:
    return str(runtime.context.nobody)


@pytest.mark.parametrize("user", [lambda _: None, lambda _: " ", nobody])
async def test_who_cannot_be_named_has_no_memory_and_an_answer(
    door: str, user: Any, caplog: pytest.LogCaptureFixture
) -> None:
    talk = Talk(door, user=user)
    assert (await talk.say("I like figs."))["messages"][-1].text == "Noted."
    assert "figs" not in talk.stored()
    assert "nobody can say whose memory" in caplog.text or "no_identity" in caplog.text


async def test_without_an_identity_of_the_server_there_is_no_memory(door: str) -> None:
    talk = Talk(door)
    await talk.run({"messages": [HumanMessage("I like figs.")]}, {"configurable": {"thread_id": "T", "user_id": "ada"}})
    assert "figs" not in talk.stored()


async def test_user_and_choices_may_come_from_a_context_of_ones_own(door: str) -> None:
    talk = Talk(door, user=lambda runtime: f"user of {type(runtime.context).__name__}")
    await talk.say("I like figs.", mode="normal")
    assert await talk.learn() == []
    assert await talk.known("user of MemoryContext") == ["Likes figs"]
    agent = create_agent(talk.chat, middleware=[PalimpsestMemory(user="ada", service=talk.service)], store=talk.store)
    call: Any = agent.invoke
    for context, text in (({"memory_mode": "incognito"}, "I like plums."), ({"memory_tokens": 0}, "I like pears.")):
        sent: Any = {"messages": [HumanMessage(text)]}
        options: Any = {"context": context}
        await (asyncio.to_thread(call, sent, **options) if door.endswith("sync") else agent.ainvoke(sent, **options))
    assert await talk.learn() == ["Likes pears"]
    with pytest.raises(ValueError, match="memory_tokens"):
        await agent.ainvoke({"messages": [HumanMessage("Hello")]}, context={"memory_tokens": -1})
    with pytest.raises(ValueError, match="memory_tokens"):
        MemoryContext(memory_tokens=-1)


async def test_a_run_cannot_be_looser_than_its_agent(door: str) -> None:
    talk = Talk(door, memory_mode="read_only")
    await talk.say("I like figs.", mode="normal")
    assert "figs" not in talk.stored()


@pytest.mark.parametrize("own", [None, {"configurable": {"thread_id": "R"}}])
async def test_what_a_model_tells_a_subagent_is_not_learned(door: str, own: Any) -> None:
    talk, researcher = Talk(), RecordingModel()
    memory = PalimpsestMemory(user="ada", agent_name="research", service=talk.service)
    below = create_agent(researcher, middleware=[memory], store=talk.store, checkpointer=own and talk.saver)

    @tool
    def research(topic: str) -> str:
        """Find out about a topic."""
        below.invoke({"messages": [HumanMessage(f"I like {topic}.")]}, own)
        return "found"

    talk = Talk(door, tools=[research], store=talk.store)
    FactStore(talk.store, "ada", agent_name="research").create("Reads Wikipedia first", "preference", 0.9)
    call = {**CALL, "name": "research", "args": {"topic": "bees"}}
    talk.chat.replies = [AIMessage("", tool_calls=[call])]
    await talk.say("What about bees?")
    assert "Reads Wikipedia first" in researcher.prompts[-1][0].text
    assert "I like bees" not in talk.stored()
    await talk.learn()
    assert talk.read() == Counter(["What about bees?"])


class Anthropic(RecordingModel):
    """A model whose provider caches a prompt up to the marks in it."""

    @property
    def _llm_type(self) -> str:
        return "anthropic-chat"


@pytest.mark.parametrize("marked", [False, True])
async def test_the_stable_part_is_marked_for_anthropics_cache(marked: bool) -> None:
    talk, model = Talk("agent"), Anthropic()
    FactStore(talk.store, "ada").create("User is allergic to peanuts", "knowledge", 0.9)
    text = {"type": "text", "text": "Be brief."}
    prompt: Any = [{**text, "cache_control": {"type": "ephemeral", "ttl": "1h"}}] if marked else "Be brief."
    memory = PalimpsestMemory(user="ada", service=talk.service)
    agent = create_agent(model, system_prompt=SystemMessage(prompt), middleware=[memory], store=talk.store)
    await agent.ainvoke({"messages": [HumanMessage("What may I eat?")]})
    content: Any = model.prompts[-1][0].content
    stable, block = content
    assert stable == {**text, "cache_control": {"type": "ephemeral", **({"ttl": "1h"} if marked else {})}}
    assert "peanuts" in block["text"]
    assert "cache_control" not in block


@pytest.mark.parametrize("prompt", [" \n", [{"type": "text", "text": ""}]])
async def test_instructions_that_say_nothing_are_not_sent(prompt: Any) -> None:
    talk = Talk("agent")
    memory = PalimpsestMemory(user="ada", service=talk.service)
    agent = create_agent(talk.chat, system_prompt=SystemMessage(prompt), middleware=[memory], store=talk.store)
    await agent.ainvoke({"messages": [HumanMessage("Good day.")]})
    assert [message.type for message in talk.chat.prompts[-1]] == ["human"]


async def test_an_own_model_reads_what_is_said_each_time_that_all_is_to_be_learned_now() -> None:
    store, reader = InMemoryStore(), RecordingModel(respond=learns)
    memory = PalimpsestMemory(user="ada", memory_model=reader)
    agent = create_agent(RecordingModel(), middleware=[memory], store=store)
    for learned in (["figs"], ["figs", "plums"]):
        await agent.ainvoke({"messages": [HumanMessage(f"I like {learned[-1]}.")]})
        assert await asyncio.to_thread(memory.service.flush, 120.0)
        assert sorted(fact.content for fact in FactStore(store, "ada").list()) == [f"Likes {each}" for each in learned]


@pytest.mark.parametrize("reply", ["Half a smiley: \ud83d", "Cut \ud83d in two \ude00."])
async def test_a_reply_that_is_no_text_is_the_friendly_error_and_costs_no_later_turn(door: str, reply: str) -> None:
    talk = Talk(door)
    talk.chat.respond = lambda _: reply
    with pytest.raises(RuntimeError, match="characters that are no text"):
        await talk.say("I like figs")
    talk.chat.respond = lambda _: "A whole one: \U0001f600"
    assert (await talk.say("I like plums"))["messages"][-1].text == "A whole one: \U0001f600"
