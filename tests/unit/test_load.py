"""What a load test tells: percentiles, rates, what a simulation adds up to and where it says that things break."""

import inspect
import math
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load.figures import LoadRun, Sample, load_table, pending_plot
from benchmarks.load.model import purpose_of
from benchmarks.load.simulation import Measured, Rules, first_break, needs, simulation_table
from benchmarks.load.watching import Size, SqliteFiles, drained_since
from memory import prompts
from memory.config import MemoryConfig
from memory.worker.effects import ModelCalls
from tests.stub_model import ChatRequest

RULES = Rules()
MEASURED = Measured(
    turns_a_second=5.0,
    calls_a_turn=1.5,
    tokens_a_turn=3_000.0,
    updates_a_turn=0.5,
    rows_a_turn=3.0,
    bytes_a_turn=4_000.0,
    checkpoint_bytes_a_turn=6_000.0,
    update_seconds=3.0,
)
SECONDS = st.floats(0.001, 100)


def run(*seconds: float, failed: int = 0) -> LoadRun:
    samples = [Sample(float(at), taken) for at, taken in enumerate(seconds)]
    return LoadRun(
        servers=1, memory=True, users=2, samples=[*samples, *[Sample(0.0, 9.0, "TimeoutError")] * failed],
        pending=[(0.0, 0), (1.0, 3)], drained=4.0, updates=2, calls={"chat": 2}, tokens={"chat": 50}, store_bytes=80,
    )  # fmt: skip


@given(st.lists(SECONDS, min_size=1, max_size=50), st.floats(0.01, 1.0))
def test_a_percentile_is_the_least_time_that_so_many_turns_took(seconds: list[float], share: float) -> None:
    found = run(*seconds).percentile(share)
    assert found in seconds
    assert sum(each <= found for each in seconds) >= share * len(seconds)
    assert sum(each < found for each in seconds) < share * len(seconds)


def test_failed_turns_are_counted_and_not_timed() -> None:
    failing = run(1.0, 2.0, failed=1)
    assert (failing.turns, failing.percentile(1.0)) == (2, 2.0)
    assert "| 2 (1) |" in load_table([failing])
    assert math.isnan(run(failed=1).percentile(0.5))


def test_rates_are_by_the_time_in_which_there_was_something_to_do() -> None:
    measured = run(1.0, 1.0, 2.0)
    assert measured.seconds == 4.0
    assert measured.turns_a_second == 0.75
    assert measured.updates_a_second == 0.5


def test_the_plot_has_a_line_for_every_run_with_memory() -> None:
    assert pending_plot([run(1.0)]).count("<polyline") == 1
    assert "1 server<" in pending_plot([run(1.0)])
    assert pending_plot([]).startswith("<svg")


def test_nothing_waits_since_the_last_time_that_something_did() -> None:
    assert drained_since([(0.0, 0), (1.0, 2), (2.0, 0), (3.0, 0)]) == 2.0
    assert drained_since([(0.0, 0), (1.0, 2)]) is None
    assert drained_since([]) is None


def test_of_the_sqlite_files_bytes_rows_and_waiting_updates_are_seen(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "store.sqlite") as file:
        file.execute("CREATE TABLE store (prefix TEXT, key TEXT)")
        rows = [("palimpsest.u_1.default.outbox", "a"), ("palimpsest.u_1.default.facts", "b"), ("other.outbox", "c")]
        file.executemany("INSERT INTO store VALUES (?, ?)", rows)
    file.close()
    (tmp_path / "checkpoints.sqlite").write_bytes(b"12345")
    files = SqliteFiles(tmp_path)
    size = files.size()
    assert (files.waiting(), size.rows, size.checkpoints) == (1, 3, 5)
    assert size.since(Size(0, 2, 1)) == Size(size.store, 3, 2)


def test_the_model_tells_purposes_apart_as_the_prompts_are_shipped() -> None:
    def asked(text: str, **more: object) -> ChatRequest:
        return ChatRequest({"messages": [{"role": "user", "content": text}], **more})

    assert purpose_of(asked("Hello")) == "chat"
    assert purpose_of(asked(prompts.INITIAL_SUMMARY)) == "summary"
    assert purpose_of(asked(prompts.UPDATE_SUMMARY)) == "summary"
    form = {"type": "json_schema", "json_schema": {"name": "facts"}}
    assert purpose_of(asked("Known facts:", response_format=form)) == "extraction"


@given(st.integers(1, 10**7), st.floats(0.1, 100))
def test_more_users_need_no_less_of_anything(users: int, turns: float) -> None:
    less, more = needs(users, turns, MEASURED, RULES), needs(2 * users, turns, MEASURED, RULES)
    assert more.rows_a_day == pytest.approx(2 * less.rows_a_day)
    assert more.bytes_a_day == pytest.approx(2 * less.bytes_a_day)
    assert more.processes >= less.processes
    assert more.model_calls_a_second == pytest.approx(2 * less.model_calls_a_second)


@given(st.integers(1, 10**7))
def test_so_many_processes_keep_up_and_one_fewer_does_not(users: int) -> None:
    found = needs(users, 10.0, MEASURED, RULES)
    assert found.turns_a_second <= found.processes_for_turns * MEASURED.turns_a_second
    of_updates = [limit for limit in found.limits if "updates" in limit.name]
    assert all(limit.share <= 1 for limit in of_updates)
    assert found.breaks_first.share == max(limit.share for limit in found.limits)
    if found.processes_for_turns > 1:
        assert found.turns_a_second > (found.processes_for_turns - 1) * MEASURED.turns_a_second


def test_the_first_break_is_the_fewest_users_that_pass_a_limit() -> None:
    name = "commits of one Postgres"
    users = first_break(name, 10.0, MEASURED, RULES)

    def share(number: int) -> float:
        return next(each.share for each in needs(number, 10.0, MEASURED, RULES).limits if each.name == name)

    assert share(users - 1) <= 1 < share(users)
    assert first_break("starts of updates", 10.0, MEASURED, RULES, most=2**20) == 2**20, "more processes start more"


def test_a_million_users_a_day_in_numbers_that_can_be_checked_by_hand() -> None:
    found = needs(1_000_000, 8.64, MEASURED, Rules(peak=1.0))
    assert found.turns_a_second == pytest.approx(100.0)
    assert found.processes_for_turns == 20
    # 50 updates a second; a process starts two, and finishes 4 / 3 of 3 s each.
    assert found.processes_for_updates == 38
    assert found.model_calls_a_second == pytest.approx(150.0)
    assert found.rows_a_day == pytest.approx(25_920_000)
    assert "1,000,000 | 100.0 | 20, 38" in simulation_table([1_000_000], 8.64, MEASURED, Rules(peak=1.0))


def test_the_rules_are_those_of_the_code() -> None:
    assert RULES.update_spacing_seconds == MemoryConfig().update_spacing_seconds
    assert RULES.updates_at_once == inspect.signature(ModelCalls).parameters["max_workers"].default
