import os
import subprocess
import sys
from dataclasses import replace

import pytest

from memory.outbox.entry import Lease, Worker, is_held, process_exists

ME = Worker("here", 10, "me", "1")
NOW = 1000.0


@pytest.mark.parametrize(
    ("worker", "alive", "held"),
    [
        (ME, True, False),
        (replace(ME, update="2"), True, True),
        (replace(ME, process="an earlier me", update="2"), True, False),
        (Worker("here", 11, "other", "1"), True, True),
        (Worker("here", 11, "other", "1"), False, False),
        (Worker("there", 11, "other", "1"), False, True),
        (Worker("there", 10, "me", "1"), False, True),
    ],
)
def test_a_lease_stands_while_its_worker_may_live(worker: Worker, alive: bool, held: bool) -> None:
    assert is_held(Lease(worker, NOW + 1), NOW, ME, lambda _: alive) is held


@pytest.mark.parametrize("under_way", [{"2"}, {"1", "3"}, set[str]()])
def test_a_lease_of_this_process_stands_while_its_update_goes_on(under_way: set[str]) -> None:
    lease = Lease(replace(ME, update="2"), NOW + 1)
    assert is_held(lease, NOW, ME, lambda _: True, under_way.__contains__) is ("2" in under_way)


@pytest.mark.parametrize("other", [Worker("here", 11, "other", "1"), Worker("there", 10, "me", "1")])
def test_what_goes_on_in_another_process_nobody_here_knows(other: Worker) -> None:
    assert is_held(Lease(other, NOW + 1), NOW, ME, lambda _: True, lambda _: False)


def test_a_lease_runs_out_and_no_lease_holds_nothing() -> None:
    assert not is_held(Lease(Worker("there", 1, "x", "y"), NOW), NOW, ME, lambda _: True)
    assert not is_held(None, NOW, ME, lambda _: True)


def test_a_lease_that_was_made_under_a_clock_ahead_holds_nothing() -> None:
    assert not is_held(Lease(Worker("there", 1, "x", "y"), NOW + 366 * 86_400), NOW, ME, lambda _: True)


def test_a_lease_comes_back_from_json_and_garbage_is_none() -> None:
    lease = Lease(ME, NOW)
    assert Lease.from_json(lease.to_json()) == lease
    for garbage in (None, {}, {"owner": "x", "until": 1}, {"owner": {"host": "h"}, "until": 1}):
        assert Lease.from_json(garbage) is None


def test_each_update_of_a_process_is_a_worker_of_its_own() -> None:
    here = Worker.here()
    assert here.renewed() != here
    assert replace(here.renewed(), update=here.update) == here


def test_a_process_is_seen_to_live_and_to_be_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert process_exists(os.getpid())
    assert process_exists(1)
    assert not process_exists(child.pid)
