"""`summarize="after"`: nobody waits for a summary, and what leaves without one goes through the hook once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from memory.context.running_summary import LeftOut, WrittenSummary
from memory.context.summarization import SummarizationNode
from memory.context.summarizer import Caller
from memory.door import in_this_thread
from memory.forms import plain
from tests.summarizing import human, saying, talk
from tests.threads import own_ids, word_counter


class Chat:
    """A graph of one's own around a node that never waits: it writes summaries when the test says so."""

    def __init__(self, **options: Any) -> None:
        self.ready: WrittenSummary | None = None
        self.flushed: list[str] = []
        self.is_down = False
        self.model = saying("what was said before")
        self.node = SummarizationNode(
            model=self.model,
            max_tokens=200,
            max_summary_tokens=40,
            token_counter=word_counter(),
            memory_flush_hook=self._hook,
            prepared_summary=lambda: self.ready,
            summarize="after",
            **options,
        )
        self.context: dict[str, Any] = {}

    def _hook(self, gone: list[BaseMessage]) -> None:
        if self.is_down:
            raise ConnectionError("down")
        self.flushed += [str(message.id) for message in gone]

    def turn(self, messages: list[BaseMessage]) -> set[str]:
        """Return the ids of the messages that the model would see."""
        update = self.node.invoke({"messages": messages, "context": self.context})
        self.context = update.get("context", self.context)
        assert word_counter()(update["summarized_messages"]) <= 200
        return own_ids(update["summarized_messages"])

    def write(self, messages: list[BaseMessage]) -> None:
        state = {"messages": messages, "context": self.context}
        draft = self.node.draft(state, 1.0)
        assert draft
        self.ready = in_this_thread(draft.write(caller=Caller()))


def ids(messages: list[BaseMessage]) -> list[str]:
    return [str(message.id) for message in messages]


def test_what_does_not_fit_is_left_out_with_its_answer_once_the_hook_has_it() -> None:
    chat = Chat()
    for turns in range(1, 9):
        said = talk(turns)
        seen = chat.turn(said)
        left_out = [identity for identity in ids(said) if identity not in seen]
        assert chat.flushed == left_out == chat.context.get("left_out", {"ids": []})["ids"]
        assert len(left_out) % 2 == 0
    assert left_out
    assert chat.model.prompts == []


def test_one_beside_which_the_rest_does_not_fit_is_used_all_the_same() -> None:
    chat = Chat()
    chat.turn(talk(7))
    chat.write(talk(7))
    large = [*talk(8)[:-1], human("large", 150)]
    assert chat.turn(large) == {"large"}
    assert sorted(chat.flushed) == sorted(ids(large)[:-1])
    assert chat.context["running_summary"].summary == "what was said before"


def test_what_is_left_out_stays_the_same_over_several_turns_so_that_a_cached_prompt_goes_on() -> None:
    chat = Chat()
    changes, before, left = 0, set[str](), set[str]()
    for turns in range(1, 40):
        said = talk(turns, size=10)
        seen = chat.turn(said)
        left = {*ids(said)} - seen
        changes += bool(before) and left != before
        before = left
    assert len(left) > 60
    assert changes <= 12  # half of what fits makes room for three exchanges of twenty words


def test_a_part_of_a_summary_is_used_too_and_what_it_lacks_stays_left_out() -> None:
    chat = Chat(portion_tokens=40)
    chat.turn(talk(12))
    state, told = {"messages": talk(12), "context": chat.context}, list[WrittenSummary]()

    def so_far(part: WrittenSummary) -> bool:
        told.append(part)
        return False

    draft = chat.node.draft(state, 1.0)
    assert draft
    chat.ready = in_this_thread(draft.write(goes_on=so_far, caller=Caller()))
    assert [chat.ready] == told
    seen = chat.turn(talk(13))
    assert chat.context["running_summary"].summarized_message_ids == {*told[0]["ids"]}
    missing = [identity for identity in ids(talk(13)) if identity not in seen and identity not in told[0]["ids"]]
    assert chat.context["left_out"]["ids"] == missing
    assert missing
    assert chat.flushed == ids(talk(13))[: len(told[0]["ids"]) + len(missing)]


def test_an_edit_of_what_was_left_out_is_summarized_and_not_handed_over_again() -> None:
    chat = Chat()
    chat.turn(talk(7))
    chat.write(talk(7))
    edited = [human("h1", 19), *talk(8)[1:]]
    chat.turn(edited)
    assert "running_summary" not in chat.context
    chat.write(edited)
    chat.turn([*edited, *talk(1, first=9)])
    assert chat.context["running_summary"]
    assert chat.flushed.count("h1") == 1


def test_what_a_failing_hook_did_not_take_is_handed_over_in_the_next_turn() -> None:
    chat = Chat()
    chat.is_down = True
    seen = chat.turn(talk(7))
    assert chat.context["not_summarized"] == "h7"
    assert "handed_over" not in chat.context
    assert chat.turn(talk(7)) == seen
    chat.is_down = False
    seen = chat.turn(talk(8))
    assert chat.flushed == [identity for identity in ids(talk(8)) if identity not in seen]


def test_as_soon_as_all_fits_again_all_is_shown_and_nothing_handed_over_twice() -> None:
    chat = Chat()
    chat.turn(talk(7))
    early = [*chat.flushed]
    assert chat.turn(talk(4)) == {*ids(talk(4))}  # what came later was removed
    chat.turn(talk(9))
    assert chat.flushed[: len(early)] == early
    assert all(chat.flushed.count(identity) == 1 for identity in ids(talk(4)))


def test_a_node_that_never_waits_needs_somebody_who_writes() -> None:
    with pytest.raises(ValueError, match="prepared_summary"):
        SummarizationNode(model=saying(), max_tokens=200, max_summary_tokens=40, summarize="after")
    with pytest.raises(ValueError, match="'before' or 'after'"):
        SummarizationNode(model=saying(), max_tokens=200, max_summary_tokens=40, summarize="never")  # type: ignore[arg-type]


@given(st.integers(0, 100), st.data())
def test_what_a_state_says_of_messages_left_out_is_exact_and_does_not_grow(number: int, data: st.DataObject) -> None:
    live = [human(f"m{at}", 2) for at in range(number)]
    left = {f"m{at}" for at in range(data.draw(st.integers(0, number)))} - {f"m{data.draw(st.integers(0, 99))}"}
    value = LeftOut.from_state(plain(LeftOut.of(live, left)))
    assert value.among(live) == left
    assert value.messages == len(left)
    assert len(value.ids) <= 32
    more = [*live, human("new", 2)]
    assert value.among(more) == left
    if len(value.ids) > 1:  # also when the newest of them is removed
        rest = [message for message in more if message.id != value.ids[-1]]
        assert value.among(rest) == left - {value.ids[-1]}


@pytest.mark.parametrize("said", [None, "text", {"ids": "m1"}, {"ids": [1], "kept": None, "messages": "2"}])
def test_what_a_client_wrote_instead_stands_for_nothing(said: object) -> None:
    assert LeftOut.from_state(said).among(talk(3)) == set()
