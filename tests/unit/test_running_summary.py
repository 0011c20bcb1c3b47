"""What a thread remembers of summarized messages stays small."""

from uuid import UUID

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from memory.context.running_summary import LEAST_IDS, STATE_BYTES, RunningSummary
from tests.summarizing import saying, summarize, talk
from tests.threads import word_counter, words


@pytest.mark.parametrize("size", [10, 120, 220])
def test_a_running_summary_stays_below_2_kilobytes_however_long_the_thread(size: int) -> None:
    running = RunningSummary("", set(), None)
    for cut in range(60):
        ids = [str(UUID(int=cut * 100 + number)) for number in range(34)]
        running = running.extended(words(size, "plans"), ids, last=ids[-1], kept=ids[:1])
    assert STATE_BYTES - 100 < len(JsonPlusSerializer().dumps_typed(running)[1]) <= STATE_BYTES
    newest = [str(UUID(int=cut * 100 + number)) for cut in (58, 59) for number in range(34)]
    assert running.summarized_message_ids == set(newest[-len(running.summarized_message_ids) :])
    assert running.forgotten == 60 * 34 - len(running.summarized_message_ids)


def test_a_long_summary_leaves_room_for_some_ids() -> None:
    ids = [str(number) for number in range(100)]
    running = RunningSummary("", set(), None).extended(words(2000), ids, last="99", kept=[])
    assert running.summarized_message_ids == set(ids[-LEAST_IDS:])


@pytest.mark.parametrize("turns", [1, 5])
@pytest.mark.parametrize("reply", ["what was said", TimeoutError("late")])
def test_C1_a_summary_made_under_a_larger_budget_does_not_burst_a_smaller_one(
    turns: int, reply: str | Exception
) -> None:
    large = RunningSummary(words(500), {"h0"}, "h0")
    result = summarize(talk(turns), saying(reply), running_summary=large)
    assert word_counter()(result.messages) <= 200
    assert f"h{turns}" in [message.id for message in result.messages]
    if turns == 1 or isinstance(reply, Exception):
        assert result.running_summary == large  # whole again under the larger one
