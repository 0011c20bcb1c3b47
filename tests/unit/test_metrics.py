"""What a process counts: a function of what happened, with labels that name nobody and stay few."""

import re
from itertools import starmap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from graphs.process.metrics import COUNTERS, Metrics
from memory.context.summarizer import Cut
from memory.facts.changes import REASONS
from memory.updates.receipts import ReasonCount, UpdateReceipt

RECEIPT = UpdateReceipt(
    time="2026-01-01T00:00:00+00:00",
    thread_id="thread-of-ada",
    created=("fact_00000001", "fact_00000002"),
    confirmed=("fact_00000003",),
    refused=(ReasonCount("low_confidence", 2), ReasonCount("secret", 1)),
)


def samples(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every sample above zero that is not about when a series began."""
    text = generate_latest(metrics).decode()

    def labels(name: str, said: dict[str, str]) -> tuple[str, ...]:
        family = COUNTERS.get(name.removesuffix("_total"))  # a scrape sorts them by name
        return tuple(said[label] for label in family[1]) if family else tuple(said.values())

    return {
        (sample.name, labels(sample.name, sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.value and not sample.name.endswith("_created")
    }


def test_an_update_counts_its_facts_by_outcome_and_reason() -> None:
    metrics = Metrics()
    metrics.update(RECEIPT)
    assert samples(metrics) == {
        ("palimpsest_updates_total", ("done",)): 1,
        ("palimpsest_facts_total", ("created", "")): 2,
        ("palimpsest_facts_total", ("confirmed", "")): 1,
        ("palimpsest_facts_total", ("refused", "low_confidence")): 2,
        ("palimpsest_facts_total", ("refused", "secret")): 1,
    }


def test_a_turn_counts_once_with_why_it_had_no_memory_and_was_not_written_down() -> None:
    metrics = Metrics()
    for receipt in ({"queued": "key"}, {"queued": None}, {"without_memory": "store_away", "not_written": "too_late"}):
        metrics.turn(receipt)
    assert samples(metrics) == {
        ("palimpsest_turns_total", ("queued",)): 1,
        ("palimpsest_turns_total", ("nothing",)): 1,
        ("palimpsest_turns_total", ("not_written",)): 1,
        ("palimpsest_turns_without_memory_total", ("store_away",)): 1,
        ("palimpsest_turns_not_written_total", ("too_late",)): 1,
    }


def test_a_summary_was_ready_or_missed_or_not_due() -> None:
    metrics = Metrics()
    metrics.summary(None)
    assert samples(metrics) == {}
    metrics.summary(Cut(4, 900, 300, 100, ready=True))
    metrics.summary(Cut(4, 900, 300, 100))
    metrics.summary(None, left_out=4)
    assert samples(metrics) == {
        ("palimpsest_summaries_total", ("ready",)): 1,
        ("palimpsest_summaries_total", ("missed",)): 2,
    }


def test_a_call_counts_by_how_it_ended() -> None:
    metrics = Metrics()
    with metrics.call("extraction"):
        pass
    with pytest.raises(OSError, match="gone"), metrics.call("chat"):
        raise OSError("gone")
    assert samples(metrics) == {
        ("palimpsest_model_calls_total", ("extraction", "answered")): 1,
        ("palimpsest_model_calls_total", ("chat", "failed")): 1,
    }


def test_what_can_be_counted_is_there_from_the_start() -> None:
    shown = re.findall(
        r'^palimpsest_facts_total\{outcome="(\w+)",reason="(\w*)"\} 0.0$',
        generate_latest(Metrics()).decode(),
        re.MULTILINE,
    )
    assert {outcome for outcome, reason in shown if not reason} >= {"created", "confirmed", "superseded"}
    assert {reason for outcome, reason in shown if outcome == "refused"} == {"", *REASONS}


@given(st.text(), st.text(), st.dictionaries(st.text(), st.integers(1, 5), max_size=5))
def test_no_label_says_what_was_not_listed_beforehand(reason: str, mode: str, refused: dict[str, int]) -> None:
    metrics = Metrics()
    metrics.turn({"without_memory": reason, "not_written": mode})
    metrics.update(UpdateReceipt(time="", thread_id=reason, refused=tuple(starmap(ReasonCount, refused.items()))))
    with metrics.call(reason):
        pass
    for name, labels in samples(metrics):
        _, listed = COUNTERS[name.removesuffix("_total")]
        for label, known in zip(labels, listed.values(), strict=True):
            assert label in {*known, "other"}
