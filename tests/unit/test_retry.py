import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.config import MemoryConfig
from memory.queue.schedule import is_retryable, retry_delay


class Answered(Exception):
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


class Wrapped(Exception):
    def __init__(self, status_code: int) -> None:
        self.response = Answered(status_code)


@pytest.mark.parametrize("kind", [Answered, Wrapped])
@pytest.mark.parametrize(
    ("status", "again"),
    [(400, False), (401, False), (403, False), (404, False), (408, True), (429, True), (500, True), (503, True)],
)
def test_the_answers_status_decides(kind: type[Answered] | type[Wrapped], status: int, again: bool) -> None:
    assert is_retryable(kind(status)) is again


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (TimeoutError(), True),
        (ConnectionError(), True),
        (ValueError("no JSON"), True),
        (OSError("disk full"), True),
        (ImportError("langchain_x"), False),
    ],
)
def test_errors_without_a_status(error: Exception, again: bool) -> None:
    assert is_retryable(error) is again


@given(st.integers(1, 5000))
def test_delays_grow_up_to_the_longest(attempts: int) -> None:
    config = MemoryConfig()
    assert retry_delay(1, config) == config.retry_base_seconds
    assert retry_delay(attempts, config) <= retry_delay(attempts + 1, config) <= config.retry_max_seconds
