"""Whose claim on a pending update stands in another worker's way."""

from dataclasses import replace

import pytest

from memory.outbox.entry import Lease, Worker, is_held

ME, OTHER, ELSEWHERE = Worker("here", 10, "me", "1"), Worker("here", 11, "other", "1"), Worker("there", 10, "me", "1")
NOW, YEAR = 1_000.0, 365 * 86_400.0


@pytest.mark.parametrize(
    ("worker", "until", "alive", "under_way", "held"),
    [
        (ME, NOW + 1, True, "1", False),
        (replace(ME, update="2"), NOW + 1, True, "2", True),
        (replace(ME, update="2"), NOW + 1, True, "3", False),
        (replace(ME, process="an earlier me", update="2"), NOW + 1, True, "2", False),
        (OTHER, NOW + 1, True, "", True),
        (OTHER, NOW + 1, False, "", False),
        (ELSEWHERE, NOW + 1, False, "", True),
        (ELSEWHERE, NOW, True, "", False),
        (ELSEWHERE, NOW + 2 * YEAR, True, "", False),
    ],
)
def test_a_lease_stands_while_its_worker_may_live(
    worker: Worker, until: float, alive: bool, under_way: str, held: bool
) -> None:
    assert is_held(Lease(worker, until), NOW, ME, lambda _: alive, under_way.__contains__) is held
