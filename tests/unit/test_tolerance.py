"""What is tolerated goes no further, is logged without its text, and is never a cancellation."""

import asyncio
import logging

import pytest
from langgraph.errors import GraphInterrupt

from memory.door import tolerated

logger = logging.getLogger("memory.test")


def test_a_failure_alone_is_logged_by_its_sort_as_loudly_as_it_deserves_and_goes_no_further(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with tolerated(logger, "thread %s is not erased", "t1"):
        raise OSError("what somebody said")
    with tolerated(logger, "it stays", level=logging.ERROR):
        raise OSError
    with tolerated(logger, "it stays"):
        pass
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", "thread t1 is not erased: OSError"), ("ERROR", "it stays: OSError"),
    ]  # fmt: skip


@pytest.mark.parametrize("not_a_failure", [asyncio.CancelledError, GraphInterrupt])
def test_what_ends_a_run_without_being_a_failure_passes(not_a_failure: type[BaseException]) -> None:
    with pytest.raises(not_a_failure), tolerated(logger, "it stays"):
        raise not_a_failure
