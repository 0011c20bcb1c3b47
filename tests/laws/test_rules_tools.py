"""A tool call of an answer is carried out once, whatever becomes of its run; where nobody can know, the model is told.

Each tool notes what it has done in a file, and what it notes is counted.
"""

import asyncio
import operator
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Send, interrupt
from pydantic import ValidationError

from palimpsest import Context, FactStore, build_graph, open_checkpointer, open_postgres_checkpointer
from tests.laws.shop import Shop, calls
from tests.laws.talk import DAY, DOORS, Talk

KINDS = ["memory", "sqlite", "postgres"]
UNKNOWN = "No result is known. The call may have been carried out."


@pytest.fixture(params=KINDS)
async def saver(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    if request.param == "memory":
        yield InMemorySaver()
    elif request.param == "sqlite":
        async with open_checkpointer(tmp_path / "checkpoints.sqlite") as saver:
            yield saver
    else:
        async with open_postgres_checkpointer(request.getfixturevalue("postgres").database()) as saver:
            yield saver


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture
def talk(saver: BaseCheckpointSaver[Any], shop: Shop) -> Talk:
    return Talk(saver=saver, tools=shop.tools())


def results(messages: list[BaseMessage]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolMessage)]


async def asked(talk: Talk) -> dict[str, Any]:
    """Return what waits for a person's answer: the interrupts' ids, by what they ask."""
    state = await talk.graph.aget_state(talk.who())
    return {str(one.value): one.id for task in state.tasks for one in task.interrupts}


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
async def test_approved_calls_run_once_and_each_gets_the_answer_to_its_own_question(
    talk: Talk, shop: Shop, order: list[int]
) -> None:
    pays = [("pay", {"amount": amount}) for amount in (1, 2, 3)]
    talk.chat.replies = [calls(pays[0], ("mail", {"to": "x"}), *pays[1:])]
    await talk.say("Do it.")
    waiting = await asked(talk)
    assert sorted(waiting) == ["{'pay': 1}", "{'pay': 2}", "{'pay': 3}"]
    for place in order:
        await talk.run(Command(resume={[*waiting.values()][place]: f"yes {place + 1}"}))
    assert sorted(shop.done()) == ["mail x", "pay 1", "pay 2", "pay 3"]
    sent = ["paid 1, yes 1", "sent to x", "paid 2, yes 2", "paid 3, yes 3"]
    assert results((await talk.values())["messages"]) == results(talk.chat.prompts[-1]) == sent


async def test_an_answer_of_the_wrong_form_is_refused_and_can_be_given_again(talk: Talk, shop: Shop) -> None:
    @tool
    def pay_once_sure() -> str:
        """Pay, once a person has said yes or no."""
        said = interrupt("sure?", response_schema=bool)
        shop.note(f"sure {said}")
        return f"{said}"

    asking = Talk(saver=talk.saver, tools=[pay_once_sure])
    asking.chat.replies = [calls(("pay_once_sure", {}))]
    await asking.say("Do it.")
    with pytest.raises(ValidationError):
        await asking.run(Command(resume="maybe"))
    await asking.run(Command(resume=True))
    assert shop.done() == ["sure True"]
    assert results(asking.chat.prompts[-1]) == ["True"]


@pytest.mark.parametrize("door", DOORS)
async def test_what_a_tool_returned_is_nobodys_words(door: str) -> None:
    def look_up() -> str:
        """Look it up."""
        return "I keep bees in Bergen."

    talk = Talk(door, tools=[look_up])
    talk.chat.replies = [calls(("look_up", {}))]
    await talk.say("I like figs.")
    assert "Bergen" in talk.shown()
    assert await talk.learn() == ["Likes figs"]
    assert "Bergen" not in talk.stored() + str(talk.memory.prompts)


@pytest.mark.parametrize("name", ["mail", "pay"])
async def test_a_call_in_which_the_process_was_killed_is_not_made_again(tmp_path: Path, shop: Shop, name: str) -> None:
    process = [sys.executable, "-m", "tests.laws.paying", str(tmp_path), name]
    assert await asyncio.to_thread(subprocess.call, process) == -9
    async with open_checkpointer(tmp_path / "checkpoints.sqlite") as saver:
        talk = Talk(saver=saver, tools=shop.tools())
        await talk.run(None)
        assert not await asked(talk)
    assert shop.done() == ["mail x" if name == "mail" else "pay 1"]
    assert results(talk.chat.prompts[-1]) == [UNKNOWN]


@pytest.mark.parametrize("name", ["slow", "slow_pay"])
async def test_a_call_that_was_stopped_is_not_made_again(talk: Talk, shop: Shop, name: str) -> None:
    talk.chat.replies = [calls((name, {}), ("mail", {"to": "x"}))]
    if name == "slow_pay":
        await talk.say("Do it.")
    sent: Any = Command(resume="ok") if name == "slow_pay" else {"messages": [HumanMessage("Do it.")]}
    run = asyncio.create_task(talk.run(sent))
    await shop.waits.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await talk.run(None)
    assert sorted(shop.done()) == ["mail x", "slow"]
    first, second = results(talk.chat.prompts[-1])
    assert first == UNKNOWN
    assert second in ("sent to x", UNKNOWN)  # the stop may come before the result is stored


@pytest.mark.parametrize("copies", [1, 2])
async def test_a_copy_of_a_checkpoint_knows_what_had_begun(talk: Talk, shop: Shop, copies: int) -> None:
    talk.chat.replies = [calls(("slow", {}), ("mail", {"to": "x"}))]
    run = asyncio.create_task(talk.say("Do it."))
    await shop.waits.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    # As a server does at its start with the newest checkpoint of a thread that it was killed in.
    for _ in range(copies):
        await talk.graph.aupdate_state(talk.who(), None, as_node="__copy__")
    await talk.run(None)
    assert sorted(shop.done()) == ["mail x", "slow"]
    assert UNKNOWN in results(talk.chat.prompts[-1])


@pytest.mark.parametrize("transcript", ["keep", "compact"])
async def test_who_goes_on_instead_of_approving_is_told_what_was_done(
    saver: BaseCheckpointSaver[Any], shop: Shop, transcript: Any
) -> None:
    talk = Talk(saver=saver, tools=shop.tools(), context=Context(transcript=transcript))
    talk.chat.replies = [calls(("pay", {"amount": 1}), ("mail", {"to": "x"}))]
    await talk.say("Do it.")
    await talk.say("Never mind.")
    state = (await talk.values())["messages"]
    for messages in (state, talk.chat.prompts[-1][1:]):
        assert [message.type for message in messages[:4]] == ["human", "ai", "tool", "tool"]
        refused, sent = results(messages)
        assert "not carried out" in refused
        assert "approving" in refused
        assert sent == "sent to x"
    assert shop.done() == ["mail x"]
    await talk.say("And now?")
    assert results(talk.chat.prompts[-1]) == results(state)


async def test_what_was_said_is_as_old_as_its_turn_however_late_a_call_is_approved(shop: Shop) -> None:
    talk = Talk(tools=shop.tools())
    talk.chat.replies = [calls(("pay", {"amount": 1}))]
    await talk.say("I fly tomorrow.")
    talk.clock.advance(DAY)
    await talk.run(Command(resume="ok"))
    await talk.learn()
    assert "2025-10-09: I fly tomorrow." in talk.memory.prompts[-1][-1].text


async def test_an_edit_while_a_call_waits_makes_no_other_call_again(talk: Talk, shop: Shop) -> None:
    talk.chat.replies = [calls(("pay", {"amount": 1}), ("mail", {"to": "x"}))]
    await talk.say("Do it.")
    await talk.graph.aupdate_state(talk.who(), {"messages": [HumanMessage("Quickly.")]})
    await talk.run(None)
    await talk.run(Command(resume="ok"))
    assert sorted(shop.done()) == ["mail x", "pay 1"]


async def test_a_replay_from_an_answer_uses_the_results_of_its_calls(talk: Talk, shop: Shop) -> None:
    talk.chat.replies = [calls(("mail", {"to": "x"}))]
    await talk.say("Do it.")
    for number in range(3):
        await talk.say(f"And {number}?")
    states = [state async for state in talk.graph.aget_state_history(talk.who())]
    (answered,) = [state for state in states if state.next == ("tools",)]
    await talk.run(None, answered.config)
    assert shop.done() == ["mail x"]
    assert results(talk.chat.prompts[-1]) == ["sent to x"]


def handing_off(how: str) -> list[Any]:
    """Return tools that hand the turn off to an agent above."""

    @tool
    def hand_off(agent: str) -> Any:
        """Hand the turn off to another agent."""
        goto = [Send(agent, {"messages": [HumanMessage("Please.")]})] if how == "sent" else agent
        return Command(graph=Command.PARENT, goto=goto, update={"heard": [agent]})

    @tool
    def ask_first(agent: str) -> Any:
        """Hand the turn off once a person has said yes."""
        interrupt(agent)
        return hand_off.func(agent)  # type: ignore[attr-defined]

    return [hand_off, ask_first]


class Office(MessagesState):
    heard: Annotated[list[str], operator.add]


def office(talk: Talk, tools: list[Any]) -> tuple[Any, list[str]]:
    """Return a graph of the chat graph and two agents behind it, and who was asked."""
    ran: list[str] = []

    def agent(name: str) -> Any:
        def node(state: Any) -> dict[str, Any]:
            ran.append(name)
            return {}

        return node

    chat = build_graph(service=talk.service, tools=tools).compile()
    above = StateGraph(Office).add_node("chat", chat, destinations=("anna", "ben"))
    for name in ("anna", "ben"):
        above.add_node(name, agent(name))
    return above.add_edge(START, "chat").compile(checkpointer=talk.saver, store=talk.store), ran


@pytest.mark.parametrize("asks", [False, True], ids=["at once", "one asks first"])
@pytest.mark.parametrize("how", ["sent", "named"])
async def test_two_hand_offs_of_one_answer_both_happen_and_the_turn_is_learned(
    talk: Talk, how: str, asks: bool
) -> None:
    talk.graph, ran = office(talk, handing_off(how))
    names = ("hand_off", "ask_first" if asks else "hand_off")
    talk.chat.replies = [calls((names[0], {"agent": "anna"}), (names[1], {"agent": "ben"}))]
    await talk.say("I like plums.")
    if asks:
        assert ran == []
        await talk.run(Command(resume="ok"))
    assert sorted(ran) == ["anna", "ben"]
    assert sorted((await talk.values())["heard"]) == ["anna", "ben"]
    assert "I like plums." in talk.stored()
    assert await talk.learn()


@pytest.mark.parametrize("door", DOORS)
async def test_what_was_answered_before_a_hand_off_is_written_down_by_every_door(door: str) -> None:
    talk = Talk(door, tools=handing_off("named"), memory={"write_timeout_seconds": 60})
    inner = talk.graph if door != "graph" else build_graph(service=talk.service, tools=handing_off("named")).compile()
    above = StateGraph(Office).add_node("chat", inner, destinations=("anna",)).add_node("anna", lambda _: {})
    talk.graph = above.add_edge(START, "chat").compile(checkpointer=talk.saver, store=talk.store)
    answer = calls(("hand_off", {"agent": "anna"}))
    talk.chat.replies = [answer.model_copy(update={"content": "Anna knows about quinces."})]
    await talk.say("I like plums.")
    assert "I like plums." in talk.stored()
    assert "quinces" in talk.stored()


@pytest.mark.parametrize("answers", [False, True])
async def test_a_tool_may_clear_the_thread(talk: Talk, answers: bool) -> None:
    @tool
    def clear() -> Any:
        """Clear the thread."""
        said = [ToolMessage("cleared", tool_call_id="1")] if answers else []
        return Command(update={"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *said]})

    clearing = Talk(saver=talk.saver, tools=[clear])
    clearing.chat.replies = [calls(("clear", {}))]
    await clearing.say("I like plums.")
    state = await clearing.say("Hello.")
    assert state["messages"][-1].text == "Noted."
    assert "plums" not in clearing.shown()


async def test_two_calls_of_one_id_have_each_their_own_result(talk: Talk, shop: Shop) -> None:
    twice = calls(("mail", {"to": "x"}), ("mail", {"to": "y"}))
    content: list[Any] = [{"type": "tool_use", "id": "same", "name": "mail", "input": {"to": to}} for to in "xy"]
    for call in twice.tool_calls:
        call["id"] = "same"
    twice.content = content
    talk.chat.replies = [twice, twice.model_copy(update={"id": None})]
    await talk.say("Do it.")
    assert sorted(shop.done()) == ["mail x", "mail x", "mail y", "mail y"]
    sent = talk.chat.prompts[-1]
    named = [str(call["id"]) for message in sent if isinstance(message, AIMessage) for call in message.tool_calls]
    assert len(set(named)) == 4
    assert [one.tool_call_id for one in sent if isinstance(one, ToolMessage)] == named
    assert results(sent) == ["sent to x", "sent to y"] * 2
    # A block in a provider's own form would name the old id.
    assert not [one for one in sent if "tool_use" in str(one.content)]


def cut(name: str = "mail") -> AIMessage:
    return AIMessage("", invalid_tool_calls=[invalid_tool_call(name=name, args='{"to": "x', id="1", error="cut")])


async def test_a_model_that_never_calls_in_json_is_asked_three_times_in_all(talk: Talk) -> None:
    talk.chat.respond = lambda _: cut()
    with pytest.raises(RuntimeError, match="no JSON"):
        await talk.say("I like plums.")
    assert len(talk.chat.prompts) == 3
    talk.chat.respond = lambda _: "Noted."
    await talk.say("Hello.")
    assert "I like plums." in talk.shown()


@pytest.mark.parametrize("door", DOORS)
async def test_a_thread_goes_on_behind_a_call_without_an_id_that_a_client_put_there(door: str) -> None:
    talk = Talk(door=door)
    left = AIMessage("", tool_calls=[{"name": "mail", "args": {}, "id": None}])
    for sent in ([HumanMessage("Do it."), left, HumanMessage("I like plums.")], [HumanMessage("I like figs.")]):
        state = await talk.run({"messages": sent}, talk.who())
        assert state["messages"][-1].text == "Noted."
    assert len(results(talk.chat.prompts[-1])) == 1


async def test_a_message_sent_again_under_its_own_id_repeats_no_call(talk: Talk, shop: Shop) -> None:
    talk.chat.replies = [calls(("mail", {"to": "x"})), RuntimeError("the model is down")]
    with pytest.raises(RuntimeError):
        await talk.say("I like plums. Tell them.", id="asked")
    state = await talk.say("I like plums. Tell them.", id="asked")
    assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert shop.done() == ["mail x"]
    assert talk.shown().count("Tell them.") == 1
    await talk.learn()
    assert talk.read()["I like plums. Tell them."] == 1


@pytest.mark.parametrize("context", [None, Context(), Context(memory_tools=("list_memories",))])
async def test_a_tool_of_memory_that_was_not_offered_is_not_there(talk: Talk, context: Context | None) -> None:
    talk.context = context
    fact = await FactStore(talk.store, "ada").acreate("Is allergic to peanuts", "knowledge", 0.9)
    talk.chat.replies = [calls(("forget", {"fact_id": fact.id}), ("remember", {"content": "Is called Max"}))]
    await talk.say("Summarize this page.")
    assert await talk.known() == ["Is allergic to peanuts"]
    for told in results(talk.chat.prompts[-1]):
        assert "There is no tool" in told
        assert ("list_memories" in told) == bool(context and context.memory_tools)


async def test_a_tool_round_makes_three_checkpoints_whatever_the_number_of_its_calls(talk: Talk) -> None:
    talk.chat.replies = [calls(*(("mail", {"to": to}) for to in "wxyz"))]
    await talk.say("Do it.")
    assert len([state async for state in talk.graph.aget_state_history(talk.who())]) == 5 + 3
