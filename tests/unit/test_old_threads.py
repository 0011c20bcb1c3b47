"""Which threads go as nobody went on with them: old ones, at rest, that owe memory nothing."""

from datetime import UTC, datetime
from typing import Any

from graphs.server.old_threads import is_old, may_go
from graphs.turn.state import MEMORY_KEY

NOW = datetime(2026, 11, 22, tzinfo=UTC).timestamp()


def thread(updated: str = "2026-10-01T00:00:00+00:00", **more: Any) -> dict[str, Any]:
    return {"thread_id": "T", "updated_at": updated, "status": "idle", "values": {"messages": []}, **more}


def test_an_old_thread_goes_and_a_newer_one_stays() -> None:
    assert may_go(thread(), 30, NOW)
    assert not may_go(thread("2026-11-01T00:00:00+00:00"), 30, NOW)
    assert may_go(thread(values=None), 30, NOW)
    assert is_old({"updated_at": datetime(2026, 10, 1, tzinfo=UTC)}, 30, NOW)


def test_a_thread_that_runs_or_is_not_written_down_yet_stays() -> None:
    assert not may_go(thread(status="busy"), 30, NOW)
    assert not may_go(thread(values={"memory": {"has_unwritten": True}}), 30, NOW)
    assert not may_go(thread(values={MEMORY_KEY: {"has_unwritten": True}}), 30, NOW), "of an agent's middleware"
