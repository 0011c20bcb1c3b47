"""What a process counts: a function of what happened, with labels that name nobody and stay few."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from graphs.process.metrics import count_summary, count_turn, count_update, counted_call
from graphs.turn.state import NotWritten, WithoutMemory
from memory.context.summarizer import Cut
from memory.updates.receipts import ReasonCount, UpdateReceipt

Sample = tuple[str, frozenset[tuple[str, str]]]

RECEIPT = UpdateReceipt(
    time="2026-01-01T00:00:00+00:00",
    thread_id="thread-of-ada",
    created=("fact_00000001", "fact_00000002"),
    confirmed=("fact_00000003",),
    refused=(ReasonCount("low_confidence", 2), ReasonCount("secret", 1)),
)


def samples() -> dict[Sample, float]:
    """Every sample of ours that is not about when a series began."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(generate_latest(REGISTRY).decode())
        for sample in family.samples
        if sample.name.startswith("palimpsest_") and not sample.name.endswith("_created")
    }


def counted(before: dict[Sample, float]) -> dict[Sample, float]:
    """What has been counted since."""
    return {each: more for each, value in samples().items() if (more := value - before.get(each, 0))}


def of(name: str, **labels: str) -> Sample:
    return name, frozenset(labels.items())


def test_an_update_counts_its_facts_by_outcome_and_reason() -> None:
    before = samples()
    count_update(RECEIPT)
    assert counted(before) == {
        of("palimpsest_updates_total", outcome="done"): 1,
        of("palimpsest_facts_total", outcome="created", reason=""): 2,
        of("palimpsest_facts_total", outcome="confirmed", reason=""): 1,
        of("palimpsest_facts_total", outcome="refused", reason="low_confidence"): 2,
        of("palimpsest_facts_total", outcome="refused", reason="secret"): 1,
    }


def test_a_turn_counts_once_with_why_it_had_no_memory_and_was_not_written_down() -> None:
    before = samples()
    for receipt in ({"queued": "key"}, {"queued": None}, {"without_memory": "store_away", "not_written": "too_late"}):
        count_turn(receipt)
    assert counted(before) == {
        of("palimpsest_turns_total", written="queued"): 1,
        of("palimpsest_turns_total", written="nothing"): 1,
        of("palimpsest_turns_total", written="not_written"): 1,
        of("palimpsest_turns_without_memory_total", reason="store_away"): 1,
        of("palimpsest_turns_not_written_total", reason="too_late"): 1,
    }


def test_a_summary_was_ready_or_missed_or_not_due() -> None:
    before = samples()
    count_summary(None)
    assert counted(before) == {}
    count_summary(Cut(4, 900, 300, 100, ready=True))
    count_summary(Cut(4, 900, 300, 100))
    count_summary(None, left_out=4)
    assert counted(before) == {
        of("palimpsest_summaries_total", outcome="ready"): 1,
        of("palimpsest_summaries_total", outcome="missed"): 2,
    }


def test_a_call_counts_by_how_it_ended() -> None:
    before = samples()
    with counted_call("extraction"):
        pass
    with pytest.raises(OSError, match="gone"), counted_call("chat"):
        raise OSError("gone")
    assert counted(before) == {
        of("palimpsest_model_calls_total", purpose="extraction", outcome="answered"): 1,
        of("palimpsest_model_calls_total", purpose="chat", outcome="failed"): 1,
    }


@given(st.text() | st.integers() | st.lists(st.text()), st.text())
def test_no_label_says_what_a_client_wrote_into_the_state(reason: object, mode: str) -> None:
    count_turn({"without_memory": reason, "not_written": mode})
    known = {"other", *get_args(WithoutMemory), *get_args(NotWritten)}
    for name, labels in samples():
        if name in ("palimpsest_turns_without_memory_total", "palimpsest_turns_not_written_total"):
            assert {label for _, label in labels} <= known
