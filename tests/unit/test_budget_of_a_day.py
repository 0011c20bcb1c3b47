"""A user's budget of a day: what is used up waits for the next day, counted in the store, and nothing is lost."""

import asyncio
import json
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graphs.chat import build_graph
from graphs.middleware import PalimpsestMemory, PalimpsestSummary
from graphs.service import MemoryService
from graphs.settings import Settings
from graphs.turn.context import Context
from memory.budget import DailyBudget, Purse, Spent, read_spent
from memory.config import MemoryConfig
from memory.effects import run
from memory.journal.journal import append
from memory.namespaces import Owner
from memory.usage import CallPurpose, ModelUsage
from tests.fakes import Clock, RecordingModel, learns
from tests.memory_bench import ADA, MemoryBench
from tests.unit.test_rollup import FIRST, entry

DAY = 86_400.0


def bench(calls: int = 0, tokens: int = 0, zone: str = "UTC") -> MemoryBench:
    return MemoryBench(config=MemoryConfig(budget_calls=calls, budget_tokens=tokens, time_zone=zone))


def spent(there: MemoryBench, owner: Owner = ADA) -> Spent:
    budget = DailyBudget.of(there.config)
    return run(there.store, read_spent(owner, budget.day(there.clock())))


def test_what_is_used_up_waits_for_the_next_day_and_is_then_learned() -> None:
    there = bench(calls=2)
    for number, what in enumerate(("figs", "plums", "pears"), 1):
        there.say(f"I like {what}", thread=f"T{number}")
    drained = there.drain()
    assert (len(drained.receipts), drained.put_off, drained.failed) == (2, True, 0)
    assert drained.due == DailyBudget.of(there.config).next_day(there.clock())
    (waiting,) = there.entries()
    assert (waiting.state, waiting.attempts, waiting.lease) == ("pending", 0, None)
    assert there.markers() == [ADA]
    asked = len(there.model.prompts)
    assert there.drain().put_off
    assert len(there.model.prompts) == asked
    there.clock.seconds = drained.due
    assert len(there.drain().receipts) == 1
    assert there.facts() == ["Likes figs", "Likes pears", "Likes plums"]


def test_a_restart_does_not_begin_the_budget_anew() -> None:
    there = bench(calls=1)
    there.say("I like figs")
    there.drain()
    there.restart()
    there.say("I like plums", begin=2)
    assert there.drain().put_off
    assert spent(there) == Spent(1, spent(there).tokens)


def test_processes_share_one_budget_and_lose_no_others_calls() -> None:
    there = bench(calls=2)
    other = there.another_process(77)
    there.say("I like figs", thread="T1")
    there.drain()
    there.say("I like plums", thread="T2")
    assert len(other.drain(ADA).receipts) == 1
    there.say("I like pears", thread="T3")
    assert there.drain().put_off
    assert other.drain(ADA).put_off
    assert spent(there).calls == 2


def test_another_users_budget_is_untouched() -> None:
    there, bob = bench(calls=1), Owner.of("bob")
    there.say("I like figs")
    there.say("I like plums", owner=bob)
    assert there.drain().receipts
    assert there.drain(bob).receipts


def test_tokens_count_as_the_provider_tells_them_and_failed_calls_count_as_calls() -> None:
    there = bench(tokens=100)
    told = UsageMetadata(input_tokens=90, output_tokens=20, total_tokens=110)
    there.model.respond = lambda messages: AIMessage(learns(messages), usage_metadata=told)
    there.say("I like figs")
    there.drain()
    assert spent(there) == Spent(1, 110)
    there.say("I like plums", begin=2)
    assert there.drain().put_off
    failing = bench(calls=1)
    failing.model.respond = lambda _: TimeoutError()
    failing.say("I like figs")
    assert failing.drain().failed == 1
    assert spent(failing).calls == 1
    failing.clock.advance(3600)
    assert failing.drain().put_off


def test_a_backlog_goes_on_where_it_stopped_each_day_and_no_portion_is_asked_for_twice() -> None:
    there = MemoryBench(config=MemoryConfig(budget_calls=1, portion_messages=2))
    there.record(there.messages("I like figs", "I like plums", "I like pears"))
    for _ in range(3):
        there.drain()
        there.clock.advance(DAY)
    assert there.facts() == ["Likes figs", "Likes pears", "Likes plums"]
    assert len(there.model.prompts) == 3


def test_without_a_budget_nothing_is_counted_in_the_store() -> None:
    there = MemoryBench()
    there.say("I like figs")
    there.drain()
    assert "spent." not in there.everything_stored()


def test_what_is_told_of_days_that_are_over_goes() -> None:
    there = bench(calls=5)
    there.say("I like figs")
    there.drain()
    there.restart()
    there.clock.advance(DAY)
    there.say("I like plums", begin=2)
    there.drain()
    assert there.everything_stored().count("'spent.") == 1


def test_the_day_begins_at_midnight_in_the_deployments_time_zone() -> None:
    oslo = DailyBudget(calls=1, zone=ZoneInfo("Europe/Oslo"))
    late = datetime(2026, 3, 28, 23, 30, tzinfo=ZoneInfo("Europe/Oslo"))
    assert oslo.day(late.timestamp()) == "2026-03-28"
    assert oslo.next_day(late.timestamp()) - late.timestamp() == 1800
    # The day on which the clocks go forward has 23 hours.
    begins = late + timedelta(minutes=30)
    assert oslo.next_day(begins.timestamp()) - begins.timestamp() == 23 * 3600


@given(st.floats(1.0e9, 3.0e9), st.sampled_from(["UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia"]))
def test_the_next_day_is_another_one_and_comes_within_25_hours(now: float, zone: str) -> None:
    budget = DailyBudget(calls=1, zone=ZoneInfo(zone))
    begins = budget.next_day(now)
    assert now < begins <= now + 25 * 3600 + 1
    assert budget.day(begins) > budget.day(now)


_CALLS = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from(["summary", "extraction", "chat"]), st.integers(0, 9), st.integers(0, 86_400)
    ),
    max_size=20,
)


@settings(max_examples=50)
@given(_CALLS)
def test_what_processes_note_adds_up_whatever_their_order(
    calls: list[tuple[int, CallPurpose, int, int]],
) -> None:
    store, clock, budget = InMemoryStore(), Clock(), DailyBudget(calls=1000, tokens=1000)
    purses = [Purse(budget, clock, f"process{n}") for n in range(3)]
    used: dict[str, Spent] = {}
    for process, purpose, tokens, pause in calls:
        clock.advance(pause)
        purses[process].note(ADA, ModelUsage(purpose=purpose, input_tokens=tokens))
        run(store, purses[process].save(ADA))
        today = budget.day(clock())
        counted = Spent() if purpose == "chat" else Spent(1, tokens)
        used[today] = used.get(today, Spent()).plus(counted)
        assert run(store, read_spent(ADA, today)) == used[today]


@pytest.mark.parametrize("field", ["budget_calls", "budget_tokens"])
@pytest.mark.parametrize("value", [-1, 2.5, True, "7"])
def test_a_budget_that_cannot_be_meant_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        MemoryConfig(**{field: value})  # type: ignore[arg-type]


def test_a_time_zone_that_does_not_exist_is_refused_with_the_variables_name() -> None:
    with pytest.raises(ValueError, match="PALIMPSEST_TIME_ZONE must be an IANA time zone"):
        Settings.from_environment({"PALIMPSEST_TIME_ZONE": "Mars/Olympus"})
    with pytest.raises(ValueError, match="PALIMPSEST_BUDGET_CALLS must be a whole number"):
        Settings.from_environment({"PALIMPSEST_BUDGET_CALLS": "-1"})


async def test_a_roll_up_that_waits_for_tomorrow_is_counted_as_put_off() -> None:
    there, today = bench(calls=1), 1_767_225_600.0 + 3 * DAY  # the journal's first day, and three more
    model = RecordingModel(respond=lambda _: "told")
    service = MemoryService(
        Settings(memory=replace(there.config, update_spacing_seconds=0)), lambda *_: model, clock=there.clock
    )
    there.clock.seconds = today
    run(there.store, append(ADA, [entry(FIRST.isoformat())]))
    service.accounts.purse.note(ADA, ModelUsage(purpose="extraction"))
    assert await service.arollup(there.store, ADA) == 0
    assert model.prompts == []
    refused = partial(service.accounts.metrics.registry.get_sample_value, "palimpsest_budget_refusals_total")
    assert (refused({"purpose": "rollup"}), refused({"purpose": "extraction"})) == (1, 0)
    there.clock.seconds += DAY
    assert await service.arollup(there.store, ADA) == 1
    assert refused({"purpose": "rollup"}) == 1


@pytest.mark.parametrize("is_sync", [True, False])
async def test_an_agents_summaries_are_counted_and_within_the_budget(is_sync: bool) -> None:
    clock, store = Clock(), InMemoryStore()
    config = MemoryConfig(budget_calls=1, prepare_summary_share=1)
    summaries = RecordingModel(respond=lambda _: "word " * 30)
    service = MemoryService(Settings(memory=config), lambda *_: summaries, clock=clock)
    memory = PalimpsestMemory(service=service, memory_tokens=0, tools=())
    summary = PalimpsestSummary(summaries, trigger=("tokens", 600), max_summary_tokens=60, memory=memory)
    agent: Any = create_agent(
        RecordingModel(respond=lambda _: "ok"), middleware=[memory, summary], checkpointer=InMemorySaver(), store=store
    )
    who: RunnableConfig = {"configurable": {"thread_id": "T", "langgraph_auth_user_id": "ada"}}
    service.accounts.purse.note(ADA, ModelUsage(purpose="extraction"))
    sample = service.accounts.metrics.registry.get_sample_value

    async def say(text: str) -> None:
        asked = {"messages": [HumanMessage(text)]}
        await (asyncio.to_thread(agent.invoke, asked, who) if is_sync else agent.ainvoke(asked, who))

    for number in range(12):
        await say(f"Turn {number}: " + "plum " * 60)
    assert summaries.prompts == []
    assert sample("palimpsest_budget_refusals_total", {"purpose": "summary"})
    assert not sample("palimpsest_model_calls_total", {"purpose": "summary", "outcome": "answered"})
    clock.advance(DAY)
    await say("And tomorrow?")
    calls = sample("palimpsest_model_calls_total", {"purpose": "summary", "outcome": "answered"})
    assert calls == len(summaries.prompts) > 0
    assert service.accounts.purse.used_up_until(ADA) is not None
    service.close(0)


async def test_a_turn_whose_summary_is_due_goes_on_without_and_says_why() -> None:
    def respond(messages: list[BaseMessage]) -> str:
        return json.dumps({"facts": [], "profile": []}) if "<messages>" in messages[-1].text else "word " * 30

    clock = Clock()
    config = MemoryConfig(budget_calls=1, prepare_summary_share=1)
    model = RecordingModel(respond=respond)
    service = MemoryService(Settings(model="fake:model", memory=config), lambda *_: model, clock=clock)
    store = InMemoryStore()
    chat = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=store)
    who: RunnableConfig = {"configurable": {"thread_id": "T", "langgraph_auth_user_id": "ada"}}
    small = Context(max_tokens=1200, max_summary_tokens=100, reply_tokens=100, memory_tokens=100)
    service.accounts.purse.note(ADA, ModelUsage(purpose="extraction"))

    async def say(text: str) -> dict[str, object]:
        state = await chat.ainvoke({"messages": [HumanMessage(text)]}, who, context=small)
        return {**state["memory"]["receipt"], "summary": (state.get("context") or {}).get("running_summary")}

    for number in range(12):
        receipt = await say(f"Turn {number}: " + "plum " * 60)
    assert receipt["summary"] is None
    assert receipt["budget_used_up_until"] == "2025-10-10T00:00:00+00:00"
    assert receipt["queued"], "what was said is written down all the same"
    assert service.accounts.metrics.registry.get_sample_value(
        "palimpsest_budget_refusals_total", {"purpose": "summary"}
    )
    clock.advance(DAY)
    receipt = await say("And tomorrow?")
    assert receipt["summary"] is not None
    assert service.accounts.purse.used_up_until(ADA) is not None
    service.close(0)
