"""A user edits what they said: the newest words count, and what is no longer there is not learned."""

from tests.memory_bench import MemoryBench


def test_a_message_that_was_edited_between_a_turn_and_a_cut_is_read_in_its_newest_words() -> None:
    bench = MemoryBench()
    bench.say("I like figs")
    bench.clock.advance(1)
    bench.record(bench.messages("I like plums"), kind="cut")
    bench.drain()
    assert bench.facts() == ["Likes plums"]
    assert "figs" not in bench.model.prompts[0][-1].text.split("Messages:")[1]


def test_a_message_that_was_edited_after_it_was_cut_is_read_in_its_newest_words() -> None:
    bench = MemoryBench()
    bench.record(bench.messages("I like figs"), kind="cut")
    bench.clock.advance(1)
    bench.say("I like plums")
    bench.drain()
    assert bench.facts() == ["Likes plums"]
