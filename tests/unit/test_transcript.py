from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from memory.message import StoredMessage, to_stored
from memory.outbox.transcript import exchanges, merge, strip_scheduled, to_turn, unseen
from memory.text import flush_hash

NOW = "2026-11-22T10:00:00+00:00"


def said(name: str, role: str, text: str, time: str = NOW) -> StoredMessage:
    return StoredMessage.from_json({"id": name, "role": role, "text": text, "time": time})


def user(name: str, text: str) -> StoredMessage:
    return said(name, "user", text)


def reply(name: str, text: str) -> StoredMessage:
    return said(name, "assistant", text)


def hashes(*messages: StoredMessage) -> set[str]:
    return {flush_hash(message.role, message.text) for message in messages}


def ids(messages: tuple[StoredMessage, ...]) -> list[str]:
    return [message.id for message in messages]


def test_only_what_people_and_the_model_said_is_kept() -> None:
    messages: list[BaseMessage] = [
        SystemMessage("rules", id="s"),
        HumanMessage("hi", id="h"),
        AIMessage("", id="a1", tool_calls=[{"name": "look", "args": {}, "id": "t"}]),
        ToolMessage("I like tool output", id="t1", tool_call_id="t"),
        HumanMessage("injected", id="x", additional_kwargs={"hide_from_ui": True}),
        HumanMessage("a summary", id="y", additional_kwargs={"lc_source": "summarization"}),
        AIMessage([{"type": "text", "text": "hello"}], id="a2"),
    ]
    assert to_stored(messages, NOW) == (user("h", "hi"), reply("a2", "hello"))


def test_a_message_without_an_id_gets_one_from_its_content() -> None:
    first, second = to_stored([HumanMessage("yes"), HumanMessage("yes")], NOW)
    assert first.id != second.id
    assert to_stored([HumanMessage("yes")], "2027-01-01T00:00:00+00:00")[0].id == first.id


def test_a_turn_is_all_since_the_last_answer_and_the_answer_is_context() -> None:
    messages = [
        HumanMessage("hi", id="1"),
        AIMessage("Do you smoke?", id="2"),
        HumanMessage("no", id="3"),
        AIMessage("", id="4", tool_calls=[{"name": "note", "args": {}, "id": "t"}]),
        ToolMessage("done", id="5", tool_call_id="t"),
        AIMessage("Good.", id="6"),
    ]
    assert to_turn(messages, NOW) == (
        replace(reply("2", "Do you smoke?"), seen=True),
        user("3", "no"),
        reply("6", "Good."),
    )


def test_a_turn_that_failed_before_its_answer_is_part_of_the_next() -> None:
    messages = [HumanMessage("I like figs", id="1"), HumanMessage("are you there?", id="2"), AIMessage("yes", id="3")]
    assert ids(to_turn(messages, NOW)) == ["1", "2", "3"]


def test_a_thread_without_messages_has_no_turn() -> None:
    assert to_turn([], NOW) == ()


def test_B7_scheduled_turns_are_stripped_up_to_the_next_user_message() -> None:
    talk = (
        user("1", "hi"),
        reply("2", "hello"),
        user("3", "  [SCHEDULED] daily report"),
        reply("4", "first part"),
        reply("5", "second part"),
        user("6", "thanks"),
        reply("7", "welcome"),
    )
    assert ids(strip_scheduled(talk)) == ["1", "2", "6", "7"]


def test_B7_the_mark_counts_only_at_the_beginning_and_only_from_the_user() -> None:
    talk = (user("1", "what is [SCHEDULED]?"), reply("2", "[SCHEDULED] is a mark"))
    assert strip_scheduled(talk) == talk


def test_merging_keeps_the_first_place_and_the_earliest_time() -> None:
    early, late = "2026-11-22T09:00:00+00:00", "2026-11-22T11:00:00+00:00"
    merged = merge([(1, [said("1", "user", "a", late), said("2", "user", "b")]), (2, [said("1", "user", "a", early)])])
    assert [(one.id, one.time) for one in merged] == [("1", early), ("2", NOW)]


def test_what_is_context_in_one_entry_and_new_in_another_is_new() -> None:
    (merged,) = merge([(1, [replace(reply("1", "why?"), seen=True)]), (2, [reply("1", "why?")])])
    assert not merged.seen


written_down = st.tuples(
    st.integers(0, 3),
    st.lists(st.builds(user, st.sampled_from("1234"), st.sampled_from("abcdef")), max_size=4, unique_by=lambda m: m.id),
)


@given(st.lists(written_down, max_size=5))
def test_the_words_that_were_written_down_last_count_whatever_was_said_first(
    lists: list[tuple[int, list[StoredMessage]]],
) -> None:
    merged = merge(lists)
    assert ids(merged) == list(dict.fromkeys(one.id for _, messages in lists for one in messages))
    for one in merged:
        versions = [(at, place, known.text) for place, (at, said) in enumerate(lists) for known in said if known == one]
        newest = max((at, place) for place, (at, said) in enumerate(lists) if one.id in ids(tuple(said)))
        assert newest in [(at, place) for at, place, _ in versions]


def test_B6_what_was_flushed_is_skipped() -> None:
    talk = (user("1", "I like figs"), reply("2", "noted"), user("3", "I like plums"), reply("4", "fine"))
    assert ids(unseen(talk, hashes(*talk[:1]))) == ["1", "2", "3", "4"]
    assert ids(unseen(talk, hashes(*talk[:2]))) == ["2", "3", "4"]
    assert unseen(talk, hashes(*talk)) == ()


def test_B6_a_new_question_keeps_its_yes_though_yes_was_said_before() -> None:
    talk = (user("1", "hm"), reply("2", "Do you smoke?"), user("3", "yes"), reply("4", "ok"))
    left = unseen(talk, hashes(talk[0], talk[2], talk[3]))
    assert ("3", True) in [(one.id, one.seen) for one in left]
    assert ("2", False) in [(one.id, one.seen) for one in left]


def test_B6_a_new_yes_keeps_its_question_though_the_question_was_flushed() -> None:
    talk = (user("1", "hm"), reply("2", "Do you smoke?"), user("3", "yes"), reply("4", "ok"))
    left = unseen(talk, hashes(*talk[:2]))
    assert [(one.id, one.seen) for one in left] == [("2", True), ("3", False), ("4", False)]


def test_B6_a_role_has_its_own_hashes() -> None:
    assert flush_hash("user", "yes") != flush_hash("assistant", "yes")


messages_strategy = st.lists(
    st.builds(said, st.integers(0, 30).map(str), st.sampled_from(["user", "assistant"]), st.sampled_from("abcdef")),
    max_size=20,
    unique_by=lambda message: message.id,
).map(tuple)


@given(messages_strategy, st.sets(st.sampled_from("abcdef")))
def test_B6_every_new_message_is_kept_and_nothing_stays_without_a_new_one(
    talk: tuple[StoredMessage, ...], flushed: set[str]
) -> None:
    known = {flush_hash(role, text) for role in ("user", "assistant") for text in flushed}
    left = unseen(talk, known)
    new = [one.id for one in talk if flush_hash(one.role, one.text) not in known]
    assert [one.id for one in left if not one.seen] == new
    assert ids(left) == [one.id for one in talk if one.id in ids(left)]
    assert bool(left) == bool(new)


@given(messages_strategy)
def test_exchanges_lose_and_reorder_nothing(talk: tuple[StoredMessage, ...]) -> None:
    groups = exchanges(talk)
    assert tuple(one for group in groups for one in group) == talk
    assert all(one.role == "assistant" for group in groups for one in group[1:])


@pytest.mark.parametrize("text", ["\ud800", "\x00", "  "])
def test_text_that_holds_nothing_is_no_message(text: str) -> None:
    assert to_stored([HumanMessage(text, id="1")], NOW) == ()


def test_a_scheduled_turns_answer_is_no_turns_context() -> None:
    talk: list[BaseMessage] = [
        HumanMessage("[SCHEDULED] report", id="1"),
        AIMessage("REPORT", id="2"),
        HumanMessage("figs", id="3"),
        AIMessage("Noted", id="4"),
    ]
    assert ids(to_turn(talk, NOW)) == ["3", "4"]
    assert ids(to_turn([*talk, HumanMessage("yes", id="5")], NOW)) == ["4", "5"]
