"""What a thread remembers of summarized messages stays small."""

import json
from typing import Any
from uuid import uuid4

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from memory.context.running_summary import REMEMBERED_IDS, RunningSummary, rehydrate, summarized_ids
from tests.summarizing import human, saying, summarize, talk
from tests.threads import word_counter, words


def test_a_running_summary_stays_below_3_kilobytes_however_long_the_thread() -> None:
    running, said = RunningSummary("", set(), None), list[str]()
    for _ in range(60):
        ids = [str(uuid4()) for _ in range(34)]
        said += ids
        running = running.extended("They talked about plans. " * 44, ids, last=ids[-1], kept=ids[:1])
    assert len(JsonPlusSerializer().dumps_typed(running)[1]) <= 3072
    assert running.summarized_message_ids == set(said[-REMEMBERED_IDS:])


@given(
    ids=st.lists(st.text(), unique=True, max_size=80),
    kept=st.sets(st.text(), max_size=2),
)
def test_a_running_summary_comes_back_from_a_checkpoint_as_itself_and_knows_which_ids_are_newest(
    ids: list[str], kept: set[str]
) -> None:
    strict = JsonPlusSerializer(allowed_msgpack_modules=[("memory.context.running_summary", "RunningSummary")])
    running = RunningSummary("", set(), None).extended("S", ids, last="last", kept=kept)
    back = strict.loads_typed(strict.dumps_typed(running))
    assert back == running
    assert isinstance(back.summarized_message_ids, set)
    more = [f"new {number}" for number in range(20)]
    assert back.extended("T", more, last=None, kept=()) == running.extended("T", more, last=None, kept=())
    nothing_known = JsonPlusSerializer(allowed_msgpack_modules=[])  # hands back a mapping, as strict mode does
    assert rehydrate(nothing_known.loads_typed(nothing_known.dumps_typed(running))) == running


@pytest.mark.parametrize("name", ["summarized_message_ids", "order"])
@pytest.mark.parametrize("ids", [b"", b"garbage", None, 7, "abc"])
def test_ids_in_no_form_of_ours_are_none(ids: object, name: str) -> None:
    assert rehydrate({"summary": "S", name: ids}) == RunningSummary("S", set(), None)


@pytest.mark.parametrize("summary", ["", [], [{"type": "thinking", "thinking": "What to say?"}], None])
def test_a_summary_without_words_stands_for_nothing(summary: object) -> None:
    assert rehydrate({"summary": summary, "summarized_message_ids": ["h1"]}) is None


@pytest.mark.parametrize("ids", [["h1", "a1"], ("h1", "a1")])
def test_ids_that_a_program_puts_there_as_a_list_are_a_set(ids: Any) -> None:
    running = RunningSummary("S", set(), "a1")
    running.summarized_message_ids = ids
    assert summarized_ids(talk(3), running) == {"h1", "a1"}


def test_C1_the_newest_question_stays_though_another_of_its_id_leaves() -> None:
    said = [*talk(10)[:-1], human("h1")]
    result = summarize(said)
    assert result.cut
    assert result.messages[-1] is said[-1]


def test_a_client_sees_the_ids_themselves() -> None:
    running = RunningSummary("", set(), None).extended("S", ["b", "a"], last="a", kept=())
    seen = json.loads(orjson.dumps(running, default=list))
    assert sorted(seen["summarized_message_ids"]) == ["a", "b"]
    assert rehydrate(seen) == running


@pytest.mark.parametrize("order", [[], ["b", "a"], ["c"]])
def test_ids_that_a_client_changed_are_those_that_a_checkpoint_keeps(order: list[str]) -> None:
    running = rehydrate({"summary": "S", "summarized_message_ids": ["a", "d"], "order": order})
    strict = JsonPlusSerializer(allowed_msgpack_modules=[("memory.context.running_summary", "RunningSummary")])
    assert strict.loads_typed(strict.dumps_typed(running)).summarized_message_ids == {"a", "d"}


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
