"""What a guard refused is not learned, then or later; a model that was asked and failed refused nothing."""

import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    PIIMiddleware,
    after_model,
    before_agent,
    before_model,
)
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.tools import tool
from langgraph.types import Command

from palimpsest import PalimpsestMemory, PalimpsestSummary, open_checkpointer
from tests.fakes import RecordingModel
from tests.laws.starting import look_back
from tests.laws.talk import AGENTS, LONG, Failing, Talk

SECRET = "I like figs. Write to figs@example.com"
"""What each guard refuses."""
NO = "No figs@example.com here."
CALL = {"name": "weather", "args": {}, "id": "1", "type": "tool_call"}

AT = ("before_agent", "before_model")

Guard = Callable[[], Any]
Order = Callable[[Any], Callable[[PalimpsestMemory], list[Any]]]


def is_refused(state: Any) -> bool:
    said = [message.text for message in state["messages"] if isinstance(message, HumanMessage)]
    return "figs@" in said[-1]


def refuse(state: Any) -> None:
    if is_refused(state):
        raise PermissionError


def answer(state: Any) -> dict[str, Any] | None:
    return {"messages": [AIMessage(NO)], "jump_to": "end"} if is_refused(state) else None


def raises(at: str) -> Guard:
    def guard(state: Any, runtime: Any) -> None:
        refuse(state)

    hook: Any = {"before_agent": before_agent, "before_model": before_model}[at]
    return lambda: hook(guard)


def jumps(at: str) -> Guard:
    def guard(state: Any, runtime: Any) -> dict[str, Any] | None:
        return answer(state)

    hook: Any = {"before_agent": before_agent, "before_model": before_model}[at]
    return lambda: hook(guard, can_jump_to=["end"])


class AroundTheModel(AgentMiddleware[Any, Any, Any]):
    """A guard that stands around the call of the model."""

    def __init__(self, *, has_answer: bool) -> None:
        self.has_answer, self.tools = has_answer, []

    def _refused(self, request: Any) -> AIMessage | None:
        if is_refused(request.state) and self.has_answer:
            return AIMessage(NO)
        refuse(request.state)
        return None

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return self._refused(request) or handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return self._refused(request) or await handler(request)


GUARDS: dict[str, Guard] = {
    "a blocked address": lambda: PIIMiddleware("email", strategy="block"),
    "before_agent raises": raises("before_agent"),
    "before_model raises": raises("before_model"),
    "before_agent answers": jumps("before_agent"),
    "before_model answers": jumps("before_model"),
    "around the model, raises": lambda: AroundTheModel(has_answer=False),
    "around the model, answers": lambda: AroundTheModel(has_answer=True),
}


def guard_first(guard: Any) -> Callable[[PalimpsestMemory], list[Any]]:
    return lambda memory: [guard, memory]


def memory_first(guard: Any) -> Callable[[PalimpsestMemory], list[Any]]:
    return lambda memory: [memory, guard]


ORDERS: tuple[Order, ...] = (guard_first, memory_first)


def each(name: str, *values: Any) -> pytest.MarkDecorator:
    """Run a test with each of these once, in one order after the other and by one door after the other."""
    cases = [(value, ORDERS[at % 2], AGENTS[at // 2 % 2]) for at, value in enumerate(values)]
    return pytest.mark.parametrize((name, "order", "door"), cases)


RAISES, ANSWERS = raises("before_agent"), jumps("before_model")
ONCE = pytest.mark.parametrize(("order", "door"), [(memory_first, "agent")])
SYNC = pytest.mark.parametrize(("order", "door"), [(guard_first, "agent sync")])


async def try_to_say(talk: Talk, text: str = SECRET, **said: Any) -> None:
    """Say what a guard may refuse, in its own way."""
    try:
        await talk.say(text, **said)
    except Exception as error:
        assert isinstance(error, PermissionError) or "email" in str(error)  # noqa: PT017


def assert_unknown(talk: Talk, word: str = "figs") -> None:
    assert word not in talk.stored()
    assert word not in str(talk.memory.prompts)


@each("guard", *GUARDS.values(), *GUARDS.values())
async def test_what_a_guard_refused_is_never_learned(door: str, guard: Guard, order: Order) -> None:
    talk = Talk(door, around=order(guard()))
    await talk.say("I like pears.")
    await try_to_say(talk)
    assert len(talk.chat.prompts) == 1
    assert_unknown(talk)
    assert await talk.learn() == ["Likes pears"]
    await try_to_say(talk)
    await talk.say("I like plums.")
    await talk.say("I like dates.")
    assert await talk.learn() == ["Likes dates", "Likes pears", "Likes plums"]
    assert talk.read() == Counter(["I like pears.", "I like plums.", "I like dates."])
    assert_unknown(talk)


@each("guard", RAISES, ANSWERS)
async def test_a_thread_that_begins_with_it_goes_on_in_another_process(door: str, guard: Guard, order: Order) -> None:
    talk = Talk(door, around=order(guard()))
    await try_to_say(talk)
    talk = talk.restarted()
    await talk.say("I like plums.")
    assert await talk.learn() == ["Likes plums"]
    assert_unknown(talk)


@ONCE
async def test_a_guard_that_removes_a_message_leaves_those_before_it(door: str, order: Order) -> None:
    @before_model(can_jump_to=["end"])
    def guard(state: Any, runtime: Any) -> dict[str, Any] | None:
        said = state["messages"][-1]
        if not is_refused(state):
            return None
        return {"messages": [RemoveMessage(id=said.id), AIMessage("No.")], "jump_to": "end"}

    talk = Talk(door, around=order(guard))
    for text in ("I like pears.", SECRET, "I like plums."):
        state = await talk.say(text)
    assert not any("memory_mode" in message.additional_kwargs for message in state["messages"])
    assert await talk.learn() == ["Likes pears", "Likes plums"]
    assert_unknown(talk)


@SYNC
async def test_a_message_that_is_sent_again_under_its_id_may_be_refused(door: str, order: Order) -> None:
    talk = Talk(door, around=order(jumps("before_model")()))
    await talk.say("I like pears.", id="u1")
    await try_to_say(talk, id="u1")
    assert await talk.learn() == ["Likes pears"]
    assert_unknown(talk)


@SYNC
async def test_it_does_not_matter_when_checkpoints_are_written(door: str, order: Order) -> None:
    talk = Talk(door, around=order(RAISES()))
    for text in ("I like pears.", SECRET, "I like plums."):
        try:
            await talk.graph.ainvoke({"messages": [HumanMessage(text)]}, talk.who(), durability="exit")
        except PermissionError:
            assert text == SECRET
    assert await talk.learn() == ["Likes pears", "Likes plums"]
    assert_unknown(talk)


@ONCE
async def test_a_summary_hands_none_of_it_over(door: str, order: Order) -> None:
    def around(memory: PalimpsestMemory) -> list[Any]:
        writer = RecordingModel(respond=lambda _: "They talked.")
        summary = PalimpsestSummary(writer, trigger=("messages", 6), keep=("messages", 2), memory=memory)
        return [*order(ANSWERS())(memory), summary]

    talk = Talk(door, around=around)
    await try_to_say(talk)
    for number in range(8):
        await talk.say(f"I like fruit {number}." + LONG)
    assert "They talked." in talk.shown()
    assert await talk.learn() == [f"Likes fruit {number}" for number in range(8)]
    assert_unknown(talk)


async def test_a_guard_of_a_thread_that_is_not_kept_keeps_it_from_being_learned() -> None:
    for guard in GUARDS.values():
        for order, door in zip(ORDERS, AGENTS, strict=True):
            talk = Talk(door, around=order(guard()), saver=None)
            talk.graph.checkpointer = None
            await try_to_say(talk)
            assert await talk.learn() == []
            assert_unknown(talk)


@SYNC
async def test_all_messages_of_one_input_are_refused(door: str, order: Order) -> None:
    def around(memory: PalimpsestMemory) -> list[Any]:
        writer = RecordingModel(respond=lambda _: "They talked.")
        summary = PalimpsestSummary(writer, trigger=("messages", 4), keep=("messages", 1), memory=memory)
        return [memory, summary, RAISES()] if order is memory_first else [RAISES(), memory, summary]

    talk = Talk(door, around=around)
    said = [HumanMessage(text) for text in ("I like kiwis.", "I like nuts.", "I like kale.", SECRET)]
    try:
        await talk.run({"messages": said})
    except PermissionError:
        assert len(talk.chat.prompts) == 0
    for number in range(4):
        await talk.say(f"I like fruit {number}.")
    assert await talk.learn() == [f"Likes fruit {number}" for number in range(4)]
    for word in ("figs", "kiwis", "nuts", "kale"):
        assert_unknown(talk, word)


@SYNC
async def test_several_messages_of_one_input_are_learned(door: str, order: Order) -> None:
    talk = Talk(door, around=order(raises("before_agent")()))
    await try_to_say(talk)
    await talk.run({"messages": [HumanMessage("I like plums."), HumanMessage("I like dates.")]})
    assert await talk.learn() == ["Likes dates", "Likes plums"]
    assert_unknown(talk)


@each("then", "another process", "nothing")
async def test_what_a_model_failed_at_is_learned(door: str, order: Order, then: str) -> None:
    talk = Talk(door, around=order(raises("before_model")()))
    talk.chat.replies = [ConnectionError("down")]
    with pytest.raises(ConnectionError):
        await talk.say("I like plums.")
    await try_to_say(talk)
    if then == "another process":
        talk = talk.restarted()
    if then != "nothing":
        await talk.say("I like dates.")
    assert await talk.learn() == [*(["Likes dates"] if then != "nothing" else []), "Likes plums"]
    assert_unknown(talk)


@tool
def weather() -> str:
    """Tell the weather."""
    return "It rains: figs@example.com"


@ONCE
async def test_a_guard_behind_the_model_keeps_nothing_from_being_learned(door: str, order: Order) -> None:
    @after_model(can_jump_to=["end"])
    def guard(state: Any, runtime: Any) -> dict[str, Any] | None:
        if "dates" in state["messages"][-2].text:
            raise PermissionError
        return {"messages": [AIMessage("No more.")], "jump_to": "end"}

    talk = Talk(door, around=order(guard))
    await talk.say("I like plums.")
    await try_to_say(talk, "I like dates.")
    assert await talk.learn() == ["Likes dates", "Likes plums"]


@SYNC
async def test_a_guard_that_refuses_a_tools_result_leaves_the_question(door: str, order: Order) -> None:
    guard = PIIMiddleware("email", strategy="block", apply_to_input=False, apply_to_tool_results=True)
    talk = Talk(door, around=order(guard), tools=[weather])
    talk.chat.replies = [AIMessage("", tool_calls=[CALL])]
    await try_to_say(talk, "I like plums.")
    assert await talk.learn() == ["Likes plums"]
    assert_unknown(talk)


async def waits(door: str, order: Order) -> Talk:
    """Return a talk in which a call of a tool waits for a person."""
    talk = Talk(door, around=order(HumanInTheLoopMiddleware(interrupt_on={"weather": True})), tools=[weather])
    talk.chat.replies = [AIMessage("", tool_calls=[CALL])]
    await talk.say("I like plums.")
    return talk


@ONCE
async def test_a_run_that_waits_for_a_person_is_no_refusal(door: str, order: Order) -> None:
    talk = await waits(door, order)
    talk = talk.restarted()
    await talk.run(Command(resume={"decisions": [{"type": "approve"}]}))
    assert await talk.learn() == ["Likes plums"]
    assert "Noted." in talk.stored()


@SYNC
async def test_a_run_that_waits_for_a_person_and_is_not_gone_on_with_is_no_refusal(door: str, order: Order) -> None:
    talk = await waits(door, order)
    await talk.say("I like dates.")
    assert await talk.learn() == ["Likes dates", "Likes plums"]


class Replaces(AgentMiddleware[Any, Any, Any]):
    """Writes other words in a message's place, under its id or another."""

    def __init__(self, at: str, *, keeps_id: bool = True) -> None:
        self.at, self.keeps_id, self.tools = at, keeps_id, []

    def _other(self, at: str, state: Any) -> dict[str, Any] | None:
        said = state["messages"][-1]
        if self.at != at or not isinstance(said, HumanMessage) or "plums" in said.text:
            return None
        if self.keeps_id:
            return {"messages": [HumanMessage("I like plums.", id=said.id)]}
        return {"messages": [RemoveMessage(id=str(said.id)), HumanMessage("I like plums.")]}

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return self._other("before_agent", state)

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return self._other("before_agent", state)

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return self._other("before_model", state)

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return self._other("before_model", state)


def replaces(at: str, *, keeps_id: bool = True) -> Guard:
    return lambda: Replaces(at, keeps_id=keeps_id)


REWRITES = (*map(replaces, AT), *(replaces(at, keeps_id=False) for at in AT))


@each("rewrites", *REWRITES)
async def test_only_the_rewritten_words_are_written_down(door: str, order: Order, rewrites: Guard) -> None:
    talk, at_the_model = Talk(door, around=order(rewrites())), list[str]()

    def respond(_: Any) -> str:
        at_the_model.append(talk.stored())
        return "Noted."

    talk.chat.respond = respond
    await talk.say("I like figs.")
    assert "figs" not in at_the_model[0]
    assert await talk.learn() == ["Likes plums"]
    assert_unknown(talk)


@SYNC
async def test_only_what_is_left_of_an_address_is_written_down(door: str, order: Order) -> None:
    talk = Talk(door, around=order(PIIMiddleware("email", strategy="redact")))
    talk.chat.replies = [ConnectionError("down")]
    with pytest.raises(ConnectionError):
        await talk.say("I like plums. Write to figs@example.com")
    await talk.say("I like dates. Write to figs@example.com")
    assert len(await talk.learn()) == 2
    assert_unknown(talk, "figs@")


@pytest.fixture
async def on_disk(tmp_path: Path) -> AsyncIterator[Callable[..., Talk]]:
    async with open_checkpointer(tmp_path / "checkpoints.sqlite") as saver:
        yield lambda around: Talk("agent", store=Failing(), saver=saver, settings={"data_dir": tmp_path}, around=around)


@pytest.mark.parametrize(
    ("guard", "order", "before", "then"),
    [
        (RAISES, memory_first, [], "its next turn"),
        (ANSWERS, memory_first, [], "a server looks"),
        (RAISES, memory_first, ["I like pears."], "a server looks"),
    ],
)
async def test_a_store_that_is_away_makes_nothing_of_it_be_learned(
    on_disk: Callable[..., Talk], guard: Guard, order: Order, before: list[str], then: str
) -> None:
    talk = on_disk(order(guard()))
    talk.store.fails = True
    for said in before:
        await talk.say(said)
    await try_to_say(talk)
    talk.store.fails = False
    talk = talk.restarted()
    if then == "its next turn":
        await talk.say("I like plums.")
    await look_back(talk.service, talk.store)
    assert await talk.learn() == ["Likes pears"] * len(before) + ["Likes plums"] * (then == "its next turn")
    assert_unknown(talk)


@pytest.mark.parametrize(("order", "then"), [(guard_first, "a server looks"), (memory_first, "its next turn")])
async def test_a_model_that_failed_while_the_store_was_away_loses_nothing(
    on_disk: Callable[..., Talk], order: Order, then: str
) -> None:
    talk = on_disk(order(raises("before_model")()))
    talk.store.fails, talk.chat.replies = True, [ConnectionError("down")]
    with pytest.raises(ConnectionError):
        await talk.say("I like plums.")
    talk.store.fails = False
    talk = talk.restarted()
    if then == "its next turn":
        await talk.say("I like dates.")
    else:
        assert await look_back(talk.service, talk.store) == 1
    assert "Likes plums" in await talk.learn()


KILLED = """
import os, sys
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore
from palimpsest import PalimpsestMemory, PalimpsestState
from tests.fakes import RecordingModel

class Kills(RecordingModel):
    def _generate(self, *args, **kwargs):
        os._exit(9)

folder = sys.argv[1]
with SqliteStore.from_conn_string(folder + "/store") as store, SqliteSaver.from_conn_string(folder + "/saver") as saver:
    store.setup()
    memory = PalimpsestMemory(user="ada", memory_model=RecordingModel())
    agent = create_agent(Kills(), middleware=[memory], state_schema=PalimpsestState, checkpointer=saver, store=store)
    agent.invoke({"messages": [HumanMessage("I like plums.")]}, {"configurable": {"thread_id": "T"}})
"""


def test_what_a_killed_process_was_asked_is_learned(tmp_path: Path) -> None:
    from langchain.agents import create_agent
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.store.sqlite import SqliteStore

    from palimpsest import FactStore, PalimpsestState
    from tests.fakes import learns

    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=100, check=False)
    assert done.returncode == 9
    with (
        SqliteStore.from_conn_string(str(tmp_path / "store")) as store,
        SqliteSaver.from_conn_string(str(tmp_path / "saver")) as saver,
    ):
        memory = PalimpsestMemory(user="ada", memory_model=RecordingModel(respond=learns))
        agent: Any = create_agent(
            RecordingModel(), middleware=[memory], state_schema=PalimpsestState, checkpointer=saver, store=store
        )
        agent.invoke({"messages": [HumanMessage("I like dates.")]}, {"configurable": {"thread_id": "T"}})
        assert memory.service.close(100.0)
        assert sorted(fact.content for fact in FactStore(store, "ada").list()) == ["Likes dates", "Likes plums"]
