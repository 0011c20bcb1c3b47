"""When a store counts as away, whatever its probes find out one after another."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from memory.breaker import Breaker, Outcome

outcomes = st.lists(st.sampled_from(get_args(Outcome)), max_size=100)


def after(outcomes: list[Outcome]) -> Breaker:
    breaker = Breaker()
    for outcome in outcomes:
        breaker = breaker.after(outcome)
    return breaker


@given(outcomes)
def test_it_is_open_from_the_first_probe_that_did_not_answer_until_one_answers(found: list[Outcome]) -> None:
    assert after(found).is_open == bool(found and found[-1] != "answered")


@given(outcomes)
def test_an_answer_forgets_all_that_was(found: list[Outcome]) -> None:
    assert after([*found, "answered"]) == Breaker()


@given(outcomes)
def test_pauses_and_patience_grow_within_bounds(found: list[Outcome]) -> None:
    before, then = after(found), after([*found, "failed"])
    assert 1 <= before.pause <= then.pause <= 60
    assert 10 <= before.patience <= then.patience <= 600


def test_a_probe_that_is_only_silent_so_far_makes_no_pause_longer() -> None:
    assert after(["silent", "failed"]).pause == after(["failed"]).pause == 1
    assert after(["failed", "silent", "failed"]).pause == 2
