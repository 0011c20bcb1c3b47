"""Whose lease on a user stands in another worker's way."""

import pytest

from memory.updates.lease import Lease, Worker

NOW, YEAR = 1_000.0, 365 * 86_400.0


@pytest.mark.parametrize(
    ("host", "pid", "until", "alive", "under_way", "free"),
    [
        ("here", 10, NOW + 1, True, "token", False),
        ("here", 10, NOW + 1, True, "another", True),
        ("here", 10, NOW, True, "token", True),
        ("here", 11, NOW + 1, True, "", False),
        ("here", 11, NOW + 1, False, "", True),
        ("there", 10, NOW + 1, False, "", False),
        ("there", 10, NOW, True, "", True),
        ("there", 10, NOW + 2 * YEAR, True, "", True),
    ],
)
def test_a_lease_stands_while_its_worker_may_live(
    host: str, pid: int, until: float, alive: bool, under_way: str, free: bool
) -> None:
    me = Worker("here", 10, lambda _: alive, {under_way})
    assert Lease("token", until, host, pid).is_free(NOW, me) is free
