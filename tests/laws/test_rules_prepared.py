"""Summaries that are written before they are due, or behind the turn: no turn waits for one, and each still stands."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from palimpsest import Context, PalimpsestMemory, PalimpsestSummary, build_graph, erase_thread, summarized_ids
from tests.laws.life import varied
from tests.laws.talk import DOORS, Talk, erase_everything

CONTEXT = Context(max_tokens=600, max_summary_tokens=60, reply_tokens=0, memory_tokens=0)
MOST_WAITED = 60.0
STAY = ("palimpsest-agents", "palimpsest-left", "palimpsest-scheduler")
"""Threads that end with the process."""


def in_background() -> bool:
    """Say whether no turn waits for this thread: those of an event loop's pool are no daemons."""
    return threading.current_thread().daemon


class Chat(Talk):
    """A thread whose summary model notes whether a turn waits for it, and may be held up behind the turns."""

    def __init__(self, door: str = "graph", *, summarize: Any = None, **options: Any) -> None:
        self.asked_in: list[str] = []
        self.metadata: dict[str, Any] = {}
        self.may_end = threading.Event()
        self.may_end.set()

        def around(memory: PalimpsestMemory) -> list[Any]:
            limits: dict[str, Any] = {"trigger": ("tokens", 600), "keep": ("tokens", 300), "max_summary_tokens": 60}
            writer = memory.service.load_model("", "summary")
            return [memory, PalimpsestSummary(writer, memory=memory, summarize=summarize or "before", **limits)]

        made: dict[str, Any] = {"context": replace(CONTEXT, summarize=summarize), "around": around, "memory_tokens": 0}
        super().__init__(door, **{**made, **options})
        self.chat.respond = lambda _: varied(25, "answer")
        self.summaries.respond = self.summary

    def summary(self, messages: list[BaseMessage]) -> Any:
        self.asked_in.append("background" if in_background() else "turn")
        if in_background():
            assert self.may_end.wait(MOST_WAITED)
        return f"They talked {len(self.asked_in)} times."

    def who(self, thread: str = "T", user: str = "ada") -> RunnableConfig:
        return {**super().who(thread, user), "metadata": self.metadata}

    async def turn(self, number: int) -> None:
        """Say something, and let what is written behind the turn come to its end, unless it is held up."""
        before = set(threading.enumerate())
        await self.say(f"question {number} {varied(25)}", id=f"h{number}")
        if self.may_end.is_set():
            self.finish(before)

    def finish(self, but: Any = ()) -> None:
        self.may_end.set()
        # One that is about to start is an update's, and cannot be waited for yet.
        for thread in [each for each in threading.enumerate() if each.daemon and each.ident and each not in but]:
            if thread.name.startswith("palimpsest-") and thread.name not in STAY:
                thread.join(MOST_WAITED)

    def is_summarized(self) -> bool:
        return "They talked" in self.shown()

    def cut_ids(self) -> list[str]:
        """Return the ids of what was written down because it left the context, as often as it was."""
        cuts = [item.value for item in self.store.search((), limit=10_000) if item.value.get("kind") == "cut"]
        return [message["id"] for cut in cuts for message in cut["messages"]]


@pytest.mark.parametrize("door", DOORS)
async def test_no_turn_of_a_long_conversation_asks_for_a_summary(door: str) -> None:
    chat = Chat(door)
    for number in range(30):
        await chat.turn(number)
    assert chat.is_summarized()
    assert len(chat.asked_in) >= 3
    assert "turn" not in chat.asked_in
    ids = chat.cut_ids()
    assert len(ids) == len(set(ids)) > 0


async def test_the_state_is_one_that_the_way_without_could_have_made() -> None:
    for share, asked_in in ((0.7, "background"), (1.0, "turn")):
        chat = Chat(memory={"prepare_summary_share": share})
        for number in range(24):
            await chat.turn(number)
        assert {*chat.asked_in} == {asked_in}
        state = await chat.values()
        said = [message.id for message in state["messages"]][:-1]  # the answer came after the summary
        sent = [message.id for message in state["summarized_messages"][1:]]
        # The model sees the newest messages, and the summary stands for all others.
        assert said[-len(sent) :] == sent
        assert summarized_ids(state["messages"], state["context"]["running_summary"]) == {*said[: -len(sent)]}


@pytest.mark.parametrize("share", [0.7, 1.0])
async def test_a_cut_costs_one_call_of_a_model(share: float) -> None:
    chat, summaries = Chat(summarize="after", memory={"prepare_summary_share": share}), set[str]()
    chat.chat.respond = lambda _: varied(30, "answer")
    for number in range(24):
        await chat.turn(number)
        if running := (await chat.values()).get("context", {}).get("running_summary"):
            summaries.add(running.summary)
    assert len(summaries) >= 3
    assert len(chat.asked_in) <= len(summaries) + 1


async def edit(chat: Chat) -> None:
    said = HumanMessage(f"edited {varied(25)}", id="h0")
    await chat.graph.aupdate_state(chat.who(), {"messages": [said]}, as_node=None if chat.door == "graph" else "model")


def other(**choice: Any) -> Callable[[Chat], None]:
    def choose(chat: Chat) -> None:
        chat.context = replace(chat.context or CONTEXT, **choice)

    return choose


CHANGES: dict[str, tuple[Callable[[Chat], Any], Sequence[str]]] = {
    "edited": (edit, DOORS[:1]),
    "another prompt": (other(initial_summary_prompt="Another way."), DOORS[:1]),
    "another model": (other(model="other:model"), DOORS[:1]),
    "another share": (other(max_summary_tokens=61), DOORS[:1]),
    "incognito": (lambda chat: chat.metadata.update(memory_mode="incognito"), DOORS),
    "erased": (erase_everything, DOORS),
    "thread erased": (lambda chat: erase_thread(chat.store, "T"), DOORS),
}


_summarized_in: dict[str, int] = {}


async def summarized_in(door: str) -> int:
    """Return the number of the first turn that is shown a summary."""
    if door not in _summarized_in:
        twin, last = Chat(door), -1
        while last < 0 or not twin.is_summarized():
            last += 1
            await twin.turn(last)
        assert "They talked 1 times." in twin.shown()
        _summarized_in[door] = last
    return _summarized_in[door]


@pytest.mark.parametrize(("change", "door"), [(change, door) for change, of in CHANGES.items() for door in of[1]])
@pytest.mark.parametrize("turns_later", [0, 1])
async def test_one_that_does_not_stand_any_more_is_not_used(change: str, door: str, turns_later: int) -> None:
    last, chat = await summarized_in(door), Chat(door)
    for number in range(last - turns_later):
        await chat.turn(number)
    assert chat.asked_in == ["background"]
    assert not chat.is_summarized()
    done = CHANGES[change][0](chat)
    if inspect.isawaitable(done):
        await done
    at = last - turns_later
    while not chat.is_summarized():
        assert at < 40
        await chat.turn(at)
        at += 1
    assert "They talked 1 times." not in chat.shown()
    assert len(chat.asked_in) > 1
    assert change != "edited" or "edited" in str(chat.summaries.prompts)
    assert change != "incognito" or chat.cut_ids() == []


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("door", DOORS)
async def test_after_turns_go_on_within_the_budget_while_it_is_written_and_all_is_written_down_once(
    door: str, fails: bool
) -> None:
    chat = Chat(door, summarize="after")
    chat.may_end.clear()
    if fails:
        chat.may_end.set()
        chat.summaries.respond = lambda _: RuntimeError("no model")
    for number in range(20):
        await chat.turn(number)
        view = [str(message.id) for message in chat.chat.prompts[-1] if message.type != "system"]
        said = [str(message.id) for message in (await chat.values())["messages"]][:-1]
        assert f"question {number} " in chat.chat.prompts[-1][-1].text
        assert len(chat.chat.prompts[-1]) < 18
        ids = chat.cut_ids()
        assert len(ids) == len(set(ids))
        assert set(said) - set(view) <= set(ids)
    assert "turn" not in chat.asked_in
    assert fails or len(chat.asked_in) == 1
    chat.summaries.respond = chat.summary
    chat.finish()
    for number in range(20, 26):
        await chat.turn(number)
    assert chat.is_summarized()
    assert "turn" not in chat.asked_in
    ids = chat.cut_ids()
    assert len(ids) == len(set(ids))


async def test_a_process_that_ends_while_a_summary_is_written_loses_nothing() -> None:
    chat = Chat(summarize="after")
    chat.may_end.clear()
    for number in range(20):
        await chat.turn(number)
    again = Chat(summarize="after", store=chat.store, saver=chat.saver, clock=chat.clock)
    for number in range(20, 24):
        await again.turn(number)
    assert again.is_summarized()
    assert "turn" not in again.asked_in
    state = await again.values()
    shown = {str(message.id) for message in again.chat.prompts[-1]}
    gone = summarized_ids(state["messages"], state["context"]["running_summary"])
    assert {str(message.id) for message in state["messages"][:-1]} <= gone | shown
    chat.finish()


@pytest.mark.parametrize("door", ["graph", "agent"])
async def test_a_thread_that_nobody_keeps_waits_for_its_summary(door: str) -> None:
    """Without a checkpointer there is no later turn that would have it."""
    chat = Chat(door, summarize="after")
    writes = PalimpsestSummary(chat.summaries, trigger=("tokens", 600), summarize="after")
    graph: Any = build_graph(service=chat.service) if door == "graph" else create_agent(chat.chat, middleware=[writes])
    alone = graph.compile(store=chat.store) if door == "graph" else graph
    said = [HumanMessage(varied(25)) if number % 2 == 0 else AIMessage(varied(25)) for number in range(61)]
    await alone.ainvoke({"messages": said}, chat.who(), context=chat.context if door == "graph" else None)
    assert {*chat.asked_in} == {"turn"}
    assert "They talked" in chat.shown()


async def test_a_failing_preparation_costs_nothing_but_the_wait_it_would_have_saved() -> None:
    chat = Chat()
    chat.summaries.respond = lambda _: RuntimeError("no model") if in_background() else "They talked."
    for number in range(16):
        await chat.turn(number)
    assert chat.is_summarized()


async def test_where_no_thread_can_be_started_no_turn_waits_for_what_was_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("graphs.turn.prepared.in_daemon_thread", no_thread)
    monkeypatch.setattr("graphs.turn.prepared._PATIENCE_SECONDS", 2 * MOST_WAITED)
    chat = Chat()
    async with asyncio.timeout(MOST_WAITED):
        for number in range(16):
            await chat.turn(number)
    assert chat.is_summarized()
    assert {*chat.asked_in} == {"turn"}


async def test_what_a_summary_had_come_to_is_not_asked_for_again() -> None:
    asked: list[int] = []
    for fails in (0, 2):
        chat, told, failed = Chat(), list[str](), list[str]()
        chat.context = replace(CONTEXT, model="local", summarize="after")

        def in_portions(messages: list[BaseMessage], told: Any = told, failed: Any = failed, fails: int = fails) -> Any:
            if told and len(failed) < fails:
                failed.append(messages)
                return TimeoutError("late")
            told.append(str(messages))
            return f"They talked {len(told)} times."

        chat.summaries.respond = in_portions
        for number in range(8):
            await chat.turn(number)
        assert len(failed) == fails
        assert chat.is_summarized()
        asked.append(told.count(told[0]))
    assert asked[0] == asked[1]
