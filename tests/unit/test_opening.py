"""Two nodes begin a turn side by side: what it begins with is read and chosen once."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from graphs.turn.context import Context
from graphs.turn.opening import Begun, OpenTurns
from graphs.turn.prompt import prompt_of
from graphs.turn.state import MemoryState, Receipt, State
from graphs.turn.thread import Thread
from memory.context.tokens import TokenCounter
from memory.facts.snapshot import MemorySnapshot
from memory.turn import Opening

ASKED = HumanMessage("What is the weather?", id="h1")
RESULT = ToolMessage("rain", tool_call_id="1", id="t1")


def state(*messages: Any, asked: str = "") -> State:
    memory = MemoryState(receipt=Receipt(asked=asked))
    return State(messages=[*messages], summarized_messages=[], context={}, memory=memory)


def begun(**changes: Any) -> Begun[Any]:
    prompt = prompt_of(Context(), Thread(state(ASKED)), [ASKED], [], TokenCounter(len))  # type: ignore[arg-type]
    opening = Opening("normal", MemorySnapshot())
    return Begun(**{"opening": opening, "injected": None, "prompt": prompt, "memory": {}, "with_mode": [], **changes})


class Counted:
    """A beginning that waits for a gate and counts how often it was asked for."""

    def __init__(self) -> None:
        self.gate, self.times = asyncio.Event(), 0

    async def __call__(self) -> Begun[Any]:
        self.times += 1
        await self.gate.wait()
        return begun()


async def test_two_who_ask_for_one_turn_share_it_and_another_turn_has_its_own() -> None:
    turns, work, other = OpenTurns[Any](), Counted(), Counted()
    asking = [asyncio.create_task(turns.begin("turn", 1, work)) for _ in range(2)]
    asking.append(asyncio.create_task(turns.begin("other", 1, other)))
    await asyncio.sleep(0)
    work.gate.set()
    other.gate.set()
    first, second, third = await asyncio.gather(*asking)
    assert first is second
    assert first is not third
    assert (work.times, other.times) == (1, 1)


async def test_who_asks_later_gets_what_holds_then() -> None:
    turns, work = OpenTurns[Any](), Counted()
    work.gate.set()
    assert await turns.begin("turn", 1, work) is not await turns.begin("turn", 1, work)
    assert work.times == 2


async def test_the_same_turn_in_another_superstep_is_begun_anew() -> None:
    turns, work, again = OpenTurns[Any](), Counted(), Counted()
    asking = [asyncio.create_task(turns.begin("turn", step, begin)) for step, begin in ((1, work), (2, again))]
    await asyncio.sleep(0)
    work.gate.set()
    again.gate.set()
    first, second = await asyncio.gather(*asking)
    assert first is not second
    assert (work.times, again.times) == (1, 1)


async def test_the_models_first_call_is_shown_what_the_turn_began_with_and_later_ones_are_not() -> None:
    turns, work = OpenTurns[Any](), Counted()
    work.gate.set()
    opened = await turns.begin("turn", 1, work)
    assert turns.take_fresh("other") is None
    assert turns.take_fresh("turn") is opened.opening.snapshot
    assert turns.take_fresh("turn") is None


async def test_turns_that_never_ask_a_model_do_not_pile_up() -> None:
    turns, work = OpenTurns[Any](), Counted()
    work.gate.set()
    for number in range(500):
        await turns.begin(number, 1, work)
    assert turns.take_fresh(0) is None
    assert turns.take_fresh(499) is not None


async def test_who_is_cancelled_does_not_take_it_from_the_other() -> None:
    turns, work = OpenTurns[Any](), Counted()
    one, two = (asyncio.create_task(turns.begin("turn", 1, work)) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.sleep(0)
    work.gate.set()
    assert isinstance(await two, Begun)
    assert one.cancelled()


async def test_what_goes_wrong_goes_wrong_for_both() -> None:
    async def broken() -> Begun[Any]:
        raise ValueError("no")

    turns = OpenTurns[Any]()
    results = await asyncio.gather(*(turns.begin("turn", 1, broken) for _ in range(2)), return_exceptions=True)
    assert [type(result) for result in results] == [ValueError, ValueError]


async def test_who_comes_after_ends_after_the_first_and_waits_for_nobody_else() -> None:
    turns, ended, gate = OpenTurns[Any](), list[str](), asyncio.Event()

    async def first() -> None:
        with turns.first("superstep"):
            await gate.wait()
            ended.append("first")

    async def after(superstep: str) -> None:
        await turns.after(superstep)
        ended.append(f"after {superstep}")

    working = [asyncio.create_task(work) for work in (first(), after("superstep"), after("another"))]
    await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
    gate.set()
    await asyncio.gather(*working)
    await turns.after("superstep")
    assert ended == ["after another", "first", "after superstep"]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (state(ASKED), True),
        (state(ASKED, RESULT, asked="h1"), False),
        (state(ASKED, RESULT, asked="h0"), True),
        (state(ASKED, asked="h1"), True),
        (state(RESULT), False),
        (state(SystemMessage("Be brief.")), True),
    ],
)
def test_after_its_tools_a_turn_goes_on(before: State, expected: bool) -> None:
    assert Thread(before).begins_turn == expected


def test_choices_are_in_the_state_before_they_are_written() -> None:
    marked = HumanMessage(ASKED.content, id="h1", additional_kwargs={"memory_mode": "incognito"})
    before = state(AIMessage("Hello.", id="a0"), ASKED)
    after = begun(with_mode=[marked], memory=MemoryState(epoch="9f")).in_state(before)
    assert after["messages"] == [before["messages"][0], marked]
    assert after["memory"] == {"epoch": "9f"}
    assert before["messages"][1] is ASKED
