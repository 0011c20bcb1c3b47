"""A message that no model takes holds up nobody but itself."""

from dataclasses import replace

import pytest
from langchain_core.messages import BaseMessage

from tests.fakes import Reply, learns
from tests.memory_bench import CONFIG, MemoryBench


class Answered(Exception):
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


def bench_of_three(error: Exception) -> MemoryBench:
    """Three turns that are read together, of which the model refuses the second."""
    bench = MemoryBench(config=replace(CONFIG, max_attempts=2))
    for number, text in enumerate(["I like figs", "I like poison", "I like plums"], 1):
        bench.say(text, begin=number)

    def respond(messages: list[BaseMessage]) -> Reply:
        return error if "poison" in messages[-1].text else learns(messages)

    bench.model.respond = respond
    return bench


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_a_provider_refuses_to_read_becomes_a_dead_letter_alone(status: int) -> None:
    bench = bench_of_three(Answered(status))
    assert bench.drain().failed == 1
    assert bench.facts() == ["Likes figs", "Likes plums"]
    assert [(entry.state, entry.messages[0].text) for entry in bench.entries()] == [("dead", "I like poison")]
    assert bench.markers() == []


def test_what_never_gets_an_answer_becomes_a_dead_letter_alone() -> None:
    bench = bench_of_three(TimeoutError())
    assert bench.drain().failed == 3
    assert bench.facts() == []
    bench.drain_all()
    assert bench.facts() == ["Likes figs", "Likes plums"]
    assert [(entry.state, entry.messages[0].text) for entry in bench.entries()] == [("dead", "I like poison")]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_who_may_not_ask_is_not_tried_one_by_one(status: int) -> None:
    bench = bench_of_three(Answered(status))
    bench.drain()
    assert len(bench.model.prompts) == 1
    assert [entry.state for entry in bench.entries()] == ["dead"] * 3
