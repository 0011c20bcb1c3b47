"""Erase wins over a turn that is under way: what was said before is not learned after, the rest is."""

import asyncio
import time
from collections.abc import Callable, Iterable
from threading import Thread

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.store.base import Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

from palimpsest import Context, erase_thread
from tests.laws.talk import DOORS, LONG, NARROW, Failing, Talk, erase_everything, failing

Erase = Callable[[Talk], object]


def of_thread(talk: Talk) -> None:
    erase_thread(talk.store, "T")


ERASES = pytest.mark.parametrize("erase", [of_thread, erase_everything])


def meanwhile(talk: Talk, happens: Callable[[], object]) -> None:
    """Let something happen while the model answers next."""

    def answer(_: list[BaseMessage]) -> str:
        talk.chat.respond = lambda _: "Noted."
        happens()
        return "Noted."

    talk.chat.respond = answer


@ERASES
@pytest.mark.parametrize("turns_before", [0, 1])
@pytest.mark.parametrize("door", DOORS)
async def test_a_turn_that_is_erased_while_it_is_answered_is_not_learned(
    door: str, turns_before: int, erase: Erase
) -> None:
    talk = Talk(door, context=NARROW)
    for _ in range(turns_before):
        await talk.say("Hello")
    meanwhile(talk, lambda: erase(talk))
    await talk.say("I like figs")
    assert await talk.learn() == []
    assert "figs" not in talk.stored()
    await talk.say("I like plums")
    assert await talk.learn() == ["Likes plums"]


@ERASES
async def test_a_turn_after_it_learns_nothing_from_before_it(erase: Erase) -> None:
    talk = Talk()
    for text in ("I like figs", "I like dates"):
        await talk.say(text)
    erase(talk)
    await talk.say("I like plums")
    await talk.learn()
    assert talk.read() == {"I like plums": 1}
    assert not [prompt for prompt in talk.memory.prompts if "figs" in str(prompt) or "dates" in str(prompt)]


async def test_an_erase_of_another_thread_costs_no_turn() -> None:
    talk = Talk()
    meanwhile(talk, lambda: erase_thread(talk.store, "another"))
    await talk.say("I like figs")
    assert await talk.learn() == ["Likes figs"]


class Beside:
    """What somebody else does, on a thread, as it may have to wait for who is at work."""

    def __init__(self) -> None:
        self._threads: list[Thread] = []

    def begin(self, happens: Callable[[], object]) -> None:
        self._threads.append(Thread(target=happens))
        self._threads[-1].start()

    async def end(self) -> None:
        for each in self._threads:
            await asyncio.to_thread(each.join)


class ErasesLate(InMemoryStore):
    """Begins to erase the thread just before the turn is written down, after the turn looked for an erase."""

    is_erased = False
    beside = Beside()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        listed = list(ops)
        if not self.is_erased and any(isinstance(op, PutOp) and "figs" in str(op.value) for op in listed):
            self.is_erased = True
            self.beside.begin(lambda: erase_thread(self, "T"))
        return await super().abatch(listed)


async def test_a_turn_that_is_being_written_down_while_its_thread_is_erased_is_taken_back() -> None:
    talk = Talk(store=ErasesLate())
    await talk.say("I like figs")
    assert talk.store.is_erased
    await talk.store.beside.end()
    assert await talk.learn() == []


@ERASES
async def test_a_summary_after_it_writes_nothing_down_that_was_said_before(erase: Erase) -> None:
    talk = Talk(context=NARROW)
    await talk.say("I like figs" + LONG)
    await talk.say("Hello" + LONG)
    erase(talk)
    for number in range(12):
        await talk.say(f"I like plum number{number}" + LONG)
    learned = await talk.learn()
    assert any("plum" in content for content in learned)
    assert not any("figs" in content for content in learned)


@ERASES
@pytest.mark.parametrize("then", ["it is read again", "it stays away"])
async def test_an_erase_that_a_turn_could_not_see_is_not_forgotten(erase: Erase, then: str) -> None:
    talk = Talk(store=Failing(), context=NARROW)
    await talk.say("I like figs" + LONG)
    erase(talk)
    with failing(talk.store):
        await talk.say("Hello" + LONG)
    talk = Talk(store=talk.store, saver=talk.saver, clock=talk.clock, context=NARROW)  # it does not count as away here
    for number in range(12 if then == "it is read again" else 1):
        await talk.say(f"I like plum number{number}" + LONG)
    assert not [content for content in await talk.learn() if "figs" in content]


class Counts(InMemoryStore):
    """Lets something happen before one of its accesses."""

    calls, at = 0, -1
    happens: Callable[[], object] = staticmethod(lambda: None)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        listed = list(ops)
        self.calls += 1
        if self.calls == self.at:
            self.happens()
        return await super().abatch(listed)


@ERASES
async def test_an_erase_at_any_moment_leaves_nothing_of_what_a_tool_remembers(erase: Erase) -> None:
    call = {"name": "remember", "args": {"content": "Collects beetles", "category": "preference"}, "id": "1"}

    async def lived(at: int) -> Talk:
        talk, beside = Talk(store=Counts(), context=Context(memory_tools=("remember",))), Beside()
        talk.store.at, talk.store.happens = at, lambda: beside.begin(lambda: erase(talk))
        talk.chat.replies = [AIMessage("", tool_calls=[call])]
        await talk.say("I collect beetles.")
        await beside.end()
        return talk

    whole = await lived(-1)
    calls = whole.store.calls
    assert await whole.known() == ["Collects beetles"]
    for at in range(2, calls + 1):
        talk = await lived(at)
        assert await talk.known() == [], at
        assert "beetles" not in talk.stored(), at


@ERASES
async def test_what_was_said_before_an_erase_no_tool_of_the_same_turn_remembers(erase: Erase) -> None:
    call = {"name": "remember", "args": {"content": "Collects beetles", "category": "preference"}, "id": "1"}
    talk = Talk(context=Context(memory_tools=("remember",)))

    def answer(_: list[BaseMessage]) -> AIMessage:
        talk.chat.respond = lambda _: "Noted."
        erase(talk)
        return AIMessage("", tool_calls=[call])

    talk.chat.respond = answer
    await talk.say("I collect beetles.")
    assert await talk.known() == []
    assert "beetles" not in talk.stored()


async def test_what_is_erased_while_a_turn_waits_for_its_index_is_shown_to_no_model() -> None:
    talk = Talk(store=Failing())
    await talk.say("I like figs")
    await talk.learn()
    again, read = talk.restarted(), talk.store.batch

    def erased_meanwhile(ops: Iterable[Op]) -> list[Result]:
        talk.store.batch = read
        erase_everything(talk)
        time.sleep(2.1)
        return list(read(ops))

    talk.store.batch = erased_meanwhile
    await again.say("What do I like?", "new")
    assert "figs" not in again.shown()
