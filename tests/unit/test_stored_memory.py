"""What an earlier version stored is read, gone on with, and written again as it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from memory.effects import run
from memory.facts.fact import from_item, to_item
from memory.outbox.entry import Entry
from memory.outbox.receipts import UpdateReceipt, read_receipts
from tests.fakes import Clock
from tests.memory_bench import ADA, MemoryBench

STORED: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "stored_memory.json").read_text())
KILLED_AT = 1_760_000_600.0


def stored(kind: str) -> list[dict[str, Any]]:
    return [item["value"] for item in STORED if item["namespace"][-1] == kind]


@pytest.fixture
def bench() -> MemoryBench:
    """A deployment that goes on with the stored memory, after a process that was killed once its model answered."""
    bench = MemoryBench(clock=Clock(KILLED_AT))
    for item in STORED:
        bench.store.put(tuple(item["namespace"]), item["key"], item["value"])
    bench.restart()
    return bench


def test_a_stored_receipt_is_the_same_after_reading_and_writing(bench: MemoryBench) -> None:
    assert [UpdateReceipt.from_json(value).to_json() for value in stored("receipts")] == stored("receipts")
    receipts = run(bench.store, read_receipts(ADA, "initial"))
    assert [(len(receipt.created), dict(receipt.refused)) for receipt in receipts] == [
        (2, {}),
        (1, {"instruction_like": 1}),
        (0, {"duplicate": 1}),
    ]


def test_a_stored_update_is_the_same_after_reading_and_writing() -> None:
    assert [Entry.from_json(value).to_json() for value in stored("outbox")] == stored("outbox")


def test_what_a_killed_worker_had_extracted_is_applied_without_asking_the_model(bench: MemoryBench) -> None:
    assert "Likes pears" not in bench.facts()
    assert bench.drain().receipts
    assert "Likes pears" in bench.facts()
    assert bench.model.prompts == []


def test_progress_of_versions_that_knew_one_size_of_portions_counts_too(bench: MemoryBench) -> None:
    (entry,) = (item for item in STORED if item["namespace"][-1] == "outbox")
    extracted = {name: entry["value"]["extracted"][name] for name in ("entries", "portions", "result")}
    bench.store.put(tuple(entry["namespace"]), entry["key"], {**entry["value"], "extracted": extracted})
    assert bench.drain().receipts
    assert bench.model.prompts == []


def test_a_receipt_that_a_hand_garbled_is_passed_over(bench: MemoryBench) -> None:
    for key, refused in (("a", 5), ("b", ["x"])):
        value = {"time": "2025-10-09T08:53:20+00:00", "refused": refused, "epoch": "initial"}
        bench.store.put(ADA.namespace("receipts"), key, value)
    assert len(run(bench.store, read_receipts(ADA, "initial"))) == 3


def test_a_stored_fact_is_the_same_after_reading_and_writing(bench: MemoryBench) -> None:
    values = [*stored("facts"), *(value for value in stored("history") if "content" in value)]
    (item, *_) = bench.store.items(())
    assert [to_item(from_item(value, epoch="", written_at=item.created_at)) for value in values] == values
