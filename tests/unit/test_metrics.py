"""What a process counts: a function of what happened, with labels that name nobody and stay few."""

import re
from collections.abc import Callable
from itertools import starmap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from graphs.process.metrics import COUNTERS, Metrics
from memory.context.summarizer import Cut
from memory.facts.changes import REASONS
from memory.updates.receipts import Refused, UpdateReceipt

RECEIPT = UpdateReceipt(
    time="2026-01-01T00:00:00+00:00",
    thread_id="thread-of-ada",
    created=("fact_00000001", "fact_00000002"),
    confirmed=("fact_00000003",),
    refused=(Refused("low_confidence", 2), Refused("secret", 1)),
    epoch="initial",
)


def samples(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every sample above zero that is not about when a series began."""
    text = generate_latest(metrics.registry).decode()

    def labels(name: str, said: dict[str, str]) -> tuple[str, ...]:
        family = COUNTERS.get(name.removesuffix("_total"))  # a scrape sorts them by name
        return tuple(said[label] for label in family[1]) if family else tuple(said.values())

    return {
        (sample.name, labels(sample.name, sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.value and not sample.name.endswith("_created")
    }


TURNS = ({"queued": "key"}, {"queued": None}, {"without_memory": "store_away", "not_written": "too_late"})


@pytest.mark.parametrize(
    ("happens", "counted"),
    [
        (
            lambda metrics: metrics.update(RECEIPT),
            {
                ("updates", "done"): 1,
                ("facts", "created", ""): 2,
                ("facts", "confirmed", ""): 1,
                ("facts", "refused", "low_confidence"): 2,
                ("facts", "refused", "secret"): 1,
            },
        ),
        (
            lambda metrics: [metrics.turn(each) for each in TURNS],
            {
                ("turns", "queued"): 1,
                ("turns", "nothing"): 1,
                ("turns", "not_written"): 1,
                ("turns_without_memory", "store_away"): 1,
                ("turns_not_written", "too_late"): 1,
            },
        ),
        (lambda metrics: metrics.summary(None), {}),
        (lambda metrics: metrics.summary(Cut(4, 900, 300, 100, ready=True)), {("summaries", "ready"): 1}),
        (lambda metrics: metrics.summary(Cut(4, 900, 300, 100)), {("summaries", "missed"): 1}),
        (lambda metrics: metrics.summary(None, left_out=4), {("summaries", "missed"): 1}),
    ],
    ids=["an update", "turns", "no summary", "a ready one", "one that was waited for", "one that came too late"],
)
def test_what_happened_counts_once_by_how_it_ended_and_why(
    happens: Callable[[Metrics], object], counted: dict[tuple[str, ...], float]
) -> None:
    metrics = Metrics()
    happens(metrics)
    assert samples(metrics) == {
        (f"palimpsest_{name}_total", tuple(labels)): at for (name, *labels), at in counted.items()
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
        generate_latest(Metrics().registry).decode(),
        re.MULTILINE,
    )
    assert {outcome for outcome, reason in shown if not reason} >= {"created", "confirmed", "superseded"}
    assert {reason for outcome, reason in shown if outcome == "refused"} == {"", *REASONS}


@given(st.text(), st.text(), st.dictionaries(st.text(), st.integers(1, 5), max_size=5))
def test_no_label_says_what_was_not_listed_beforehand(reason: str, mode: str, refused: dict[str, int]) -> None:
    metrics = Metrics()
    metrics.turn({"without_memory": reason, "not_written": mode})
    metrics.update(
        UpdateReceipt(time="", thread_id=reason, refused=tuple(starmap(Refused, refused.items())), epoch=mode)
    )
    with metrics.call(reason):
        pass
    for name, labels in samples(metrics):
        _, listed = COUNTERS[name.removesuffix("_total")]
        for label, known in zip(labels, listed.values(), strict=True):
            assert label in {*known, "other"}
