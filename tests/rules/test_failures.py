"""What a failure of a model call asks for, and what it makes of a pending update: plain values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.config import MemoryConfig
from memory.namespaces import Owner
from memory.updates.entry import Entry, FailureKind, kind_of, retry_delay

CONFIG = MemoryConfig()


class Answered(Exception):
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


class Wrapped(Exception):
    def __init__(self, status_code: int) -> None:
        self.response = Answered(status_code)


@pytest.mark.parametrize("kind", [Answered, Wrapped])
@pytest.mark.parametrize(
    ("status", "asks_for"),
    [
        (400, "never"),
        (401, "never"),
        (402, "not_now"),
        (403, "never"),
        (404, "never"),
        (408, "again"),
        (429, "not_now"),
        (500, "not_now"),
        (501, "again"),
        (503, "not_now"),
    ],
)
def test_the_answers_status_decides(kind: type[Answered] | type[Wrapped], status: int, asks_for: FailureKind) -> None:
    assert kind_of(kind(status)) == asks_for


@pytest.mark.parametrize(
    ("error", "asks_for"),
    [
        (TimeoutError(), "again"),
        (ConnectionError(), "not_now"),
        (ValueError("no JSON"), "again"),
        (OSError("disk full"), "again"),
        (ImportError("langchain_x"), "never"),
    ],
)
def test_errors_without_a_status(error: Exception, asks_for: FailureKind) -> None:
    assert kind_of(error) == asks_for


@given(st.integers(1, 5000))
def test_delays_grow_up_to_the_longest(failures: int) -> None:
    assert retry_delay(1, CONFIG) == CONFIG.retry_base_seconds
    assert retry_delay(failures, CONFIG) <= retry_delay(failures + 1, CONFIG) <= CONFIG.retry_max_seconds


errors = st.sampled_from([Answered(400), Answered(503), TimeoutError(), ImportError()])


@given(st.integers(1, 8), st.lists(errors, min_size=30, max_size=30))
def test_an_entry_is_given_up_alone_and_only_for_its_own_fault(most: int, failures: list[Exception]) -> None:
    config = MemoryConfig(max_attempts=most)
    entry = Entry(kind="turn", owner=Owner.of("ada"), thread_id="T", epoch="initial", created=0, due=0, messages=())
    for now, error in enumerate(failures):
        is_alone = entry.is_suspect(config)
        entry = entry.failed(error, now, config, is_alone=is_alone)
        if entry.state == "dead":
            assert is_alone
            assert kind_of(error) != "not_now"
            return
        assert entry.attempts < most
        assert entry.due <= now + config.retry_max_seconds
    assert entry.attempts == 0 or most > 1
