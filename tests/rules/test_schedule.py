"""What starts next, when it is due, and when a failure is tried again: plain values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from memory.config import MemoryConfig
from memory.namespaces import Owner
from memory.updates.schedule import (
    ConversationContext,
    Pending,
    UpdateKey,
    enqueue,
    is_retryable,
    plan,
    put_back,
    retry_delay,
)


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


keys = st.builds(UpdateKey, st.sampled_from(["T1", "T2", "T3"]), st.sampled_from(["ada", "bob"]), st.just("default"))
moments = st.floats(0, 1000)


@given(st.dictionaries(keys, st.tuples(moments, moments)), st.sets(st.sampled_from(["ada", "bob"])), moments, moments)
def test_a_plan_starts_the_longest_due_of_a_free_user_or_says_when_to_look_again(
    waiting: dict[UpdateKey, tuple[float, float]], busy: set[str], earliest: float, now: float
) -> None:
    pending = {key: Pending(ConversationContext(*key), min(times), max(times)) for key, times in waiting.items()}
    chosen = plan(now, pending, busy, earliest)
    free = {key: one for key, one in pending.items() if key.user_id not in busy}
    if chosen.start is not None:
        assert free[chosen.start].due == min(one.due for one in free.values()) <= now
        assert now >= earliest
    elif free:
        assert chosen.wake is not None
        assert chosen.wake > now
    else:
        assert chosen.wake is None


@given(st.lists(st.tuples(st.floats(0, 60), st.booleans()), min_size=1, max_size=30))
def test_whatever_is_added_a_key_never_waits_longer_than_the_maximum(adds: list[tuple[float, bool]]) -> None:
    config = MemoryConfig(debounce_seconds=30, max_wait_seconds=120)
    now, waiting = 0.0, None
    for pause, quiet in adds:
        now += pause
        if waiting and waiting.due <= now:
            waiting = None
        waiting = enqueue(now, waiting, ConversationContext("T", "ada"), config, quiet)
        assert waiting.due <= waiting.first + config.max_wait_seconds
        assert waiting.due <= now + config.debounce_seconds


def test_what_came_for_a_conversation_meanwhile_takes_the_place_of_what_is_put_back() -> None:
    older = Pending(ConversationContext("T", "ada", kind="cut"), first=1, due=5)
    newer = Pending(ConversationContext("T", "ada"), first=6, due=30)
    assert put_back(older, None) == older
    assert put_back(older, newer) == Pending(newer.context, first=1, due=5)


def test_a_context_says_whose_memory_it_is_by_an_identity_or_by_the_owner_alone() -> None:
    ada = Owner.of("ada", "coach")
    assert ConversationContext("T", "ada", "coach").owner == ada
    alone = ConversationContext.of(ada, "T", InMemoryStore())
    assert (alone.owner, alone.thread_id) == (ada, "T")
    assert alone.replacing(ConversationContext.of(ada, "T", InMemoryStore())).owner == ada
