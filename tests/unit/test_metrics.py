"""What a process counts: a function of what happened, with labels that name nobody and stay few."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from graphs.chat import build_graph
from graphs.metrics import COUNTERS, Count, Metrics, backlog_metrics, of_call, of_summary, of_turn, of_update
from graphs.service import MemoryService
from graphs.settings import Settings
from memory.context.summarizer import Cut
from memory.effects import run
from memory.namespaces import Owner
from memory.outbox.backlog import Backlog, read_backlog
from memory.outbox.receipts import UpdateReceipt
from memory.usage import ModelUsage, observed
from tests.fakes import RecordingModel, learns
from tests.memory_bench import MemoryBench

RECEIPT = UpdateReceipt(
    time="2026-01-01T00:00:00+00:00",
    thread_id="thread-of-ada",
    created=("fact_00000001", "fact_00000002"),
    confirmed=("fact_00000003",),
    refused={"low_confidence": 2, "secret": 1},
    epoch="initial",
)


def samples(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every sample above zero that is not about when a series began."""
    text = generate_latest(metrics.registry).decode()

    def labels(name: str, said: dict[str, str]) -> tuple[str, ...]:
        family = COUNTERS.get(name.removesuffix("_total"))  # a scrape sorts them by name
        return tuple(said[label] for label in family.labels) if family else tuple(said.values())

    return {
        (sample.name, labels(sample.name, sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.value and not sample.name.endswith("_created")
    }


def test_an_update_counts_its_facts_by_outcome_and_reason() -> None:
    metrics = Metrics()
    metrics.add(of_update(RECEIPT))
    assert samples(metrics) == {
        ("palimpsest_updates_total", ("done",)): 1,
        ("palimpsest_facts_total", ("created", "")): 2,
        ("palimpsest_facts_total", ("confirmed", "")): 1,
        ("palimpsest_facts_total", ("refused", "low_confidence")): 2,
        ("palimpsest_facts_total", ("refused", "secret")): 1,
    }


def test_a_turn_counts_once_with_why_it_had_no_memory_and_was_not_written_down() -> None:
    assert of_turn({"queued": "key"}) == [Count("palimpsest_turns", ("queued",))]
    assert of_turn({"queued": None}) == [Count("palimpsest_turns", ("nothing",))]
    assert of_turn({"without_memory": "store_away", "not_written": "too_late"}) == [
        Count("palimpsest_turns", ("not_written",)),
        Count("palimpsest_turns_without_memory", ("store_away",)),
        Count("palimpsest_turns_not_written", ("too_late",)),
    ]


def test_a_summary_was_ready_or_missed_or_not_due() -> None:
    assert not of_summary(None)
    assert of_summary(Cut(4, 900, 300, 100, ready=True)) == [Count("palimpsest_summaries", ("ready",))]
    assert of_summary(Cut(4, 900, 300, 100)) == [Count("palimpsest_summaries", ("missed",))]
    assert of_summary(None, left_out=4) == [Count("palimpsest_summaries", ("missed",))]


def test_a_call_counts_its_tokens_and_what_they_cost_where_the_model_has_a_price() -> None:
    metrics = Metrics()
    usage = ModelUsage(purpose="extraction", model="openai:small", input_tokens=500_000, output_tokens=100_000)
    metrics.add(of_call(usage, {"openai:small": (0.4, 1.6)}))
    metrics.add(of_call(ModelUsage(purpose="chat", model="openai:dear", input_tokens=7, is_estimated=True), {}))
    metrics.add(of_call(ModelUsage(purpose="chat", failed=True), {}))
    assert samples(metrics) == {
        ("palimpsest_model_calls_total", ("extraction", "answered")): 1,
        ("palimpsest_model_tokens_total", ("extraction", "input", "by_provider")): 500_000,
        ("palimpsest_model_tokens_total", ("extraction", "output", "by_provider")): 100_000,
        ("palimpsest_model_cost_total", ("extraction",)): pytest.approx(0.36),
        ("palimpsest_model_calls_total", ("chat", "answered")): 1,
        ("palimpsest_model_tokens_total", ("chat", "input", "estimated")): 7,
        ("palimpsest_model_calls_total", ("chat", "failed")): 1,
    }


@given(st.text(), st.text(), st.dictionaries(st.text(), st.integers(1, 5), max_size=5))
def test_no_label_says_what_was_not_listed_beforehand(reason: str, mode: str, refused: dict[str, int]) -> None:
    metrics = Metrics()
    metrics.add(of_turn({"without_memory": reason, "not_written": mode}))
    metrics.add(of_update(UpdateReceipt(time="", thread_id=reason, refused=refused, epoch=mode)))
    metrics.add(of_call(ModelUsage(purpose="chat", model=reason, input_tokens=1), {}))
    for name, labels in samples(metrics):
        family = COUNTERS[name.removesuffix("_total")]
        for label, known in zip(labels, family.labels.values(), strict=True):
            assert label in {*known, "other"}


def test_no_family_has_a_label_for_a_user_a_thread_or_a_model() -> None:
    labels = {label for family in COUNTERS.values() for label in family.labels}
    assert labels == {"outcome", "reason", "written", "purpose", "direction", "counted"}


def seen(model: RecordingModel, calls: int = 1) -> list[ModelUsage]:
    usages: list[ModelUsage] = []
    with observed("extraction", "fake:model", usages.append):
        for _ in range(calls):
            model.invoke([HumanMessage("12345678")])
    model.invoke([HumanMessage("not inside")])
    return usages


def test_calls_are_seen_with_their_providers_tokens() -> None:
    told = UsageMetadata(input_tokens=11, output_tokens=5, total_tokens=16)
    found = seen(RecordingModel(respond=lambda _: AIMessage("yes", usage_metadata=told)), calls=2)
    assert found == [ModelUsage(purpose="extraction", model="fake:model", input_tokens=11, output_tokens=5)] * 2


def test_tokens_that_nobody_tells_are_estimated() -> None:
    (found,) = seen(RecordingModel(respond=lambda _: "12345"))
    assert (found.input_tokens, found.output_tokens, found.is_estimated) == (2, 2, True)


def test_a_call_that_fails_is_seen_as_failed() -> None:
    usages: list[ModelUsage] = []
    with pytest.raises(OSError, match="gone"), observed("chat", "", usages.append):
        RecordingModel(respond=lambda _: OSError("gone")).invoke("hello")
    assert usages == [ModelUsage(purpose="chat", failed=True)]


def test_the_backlog_tells_what_waits_and_since_when() -> None:
    bench = MemoryBench()
    assert run(bench.store, read_backlog()) == Backlog()
    first = bench.clock()
    bench.say("I like figs")
    bench.clock.advance(50)
    bench.say("I like plums", owner=Owner.of("bob"))
    assert run(bench.store, read_backlog()) == Backlog(pending=2, oldest=first)
    assert run(bench.store, read_backlog(most=1)).is_partial
    bench.model.respond = lambda _: ValueError("bad key")
    bench.drain_all()
    assert run(bench.store, read_backlog()) == Backlog(pending=1, dead=1, oldest=first + 50)
    gauges = {each.name: each.samples[0].value for each in backlog_metrics(Backlog(1, 1, first + 50), first + 80)}
    assert gauges["palimpsest_oldest_pending_seconds"] == 30
    assert gauges["palimpsest_dead_letters"] == 1


def test_before_anybody_looked_the_backlog_has_no_value() -> None:
    assert not [sample for metric in backlog_metrics(None, 0.0) for sample in metric.samples]


async def test_a_conversation_counts_turns_calls_by_purpose_and_the_parts_of_its_prompts() -> None:
    def respond(messages: list[Any]) -> str:
        return learns(messages) if "[1] user" in messages[-1].text else "yes"

    service = MemoryService(Settings(model="fake:model"), lambda *_: RecordingModel(respond=respond))
    store = InMemoryStore()
    chat = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=store)
    who: RunnableConfig = {"configurable": {"thread_id": "T", "langgraph_auth_user_id": "ada"}}
    await chat.ainvoke({"messages": [HumanMessage("I like figs.")]}, who)
    await service.adrain(store, Owner.of("ada"))
    counted = samples(service.accounts.metrics)
    assert counted["palimpsest_turns_total", ("queued",)] == 1
    assert counted["palimpsest_model_calls_total", ("chat", "answered")] == 1
    assert counted["palimpsest_model_calls_total", ("extraction", "answered")] == 1
    assert counted["palimpsest_facts_total", ("created", "")] == 1
    assert counted["palimpsest_context_tokens_count", ("messages",)] == 1
    assert counted["palimpsest_context_tokens_sum", ("system",)] > 0
    service.close(0)
