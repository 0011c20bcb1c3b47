from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.dialogue import (
    MAX_CONTEXT_CHARS,
    MAX_PASSED_CHARS,
    MAX_USER_CHARS,
    in_pieces,
    render_dialogue,
    shortened,
)
from memory.message import StoredMessage


def test_a_long_message_of_the_user_keeps_more_than_one_of_the_assistant() -> None:
    messages = [
        StoredMessage("1", "assistant", "a" * 9000, "2026-05-08T10:00:00+00:00"),
        StoredMessage("2", "user", "u" * 9000, "2026-05-08T10:00:00+00:00"),
    ]

    assistant, user = render_dialogue(messages).splitlines()

    assert len(user) - MAX_USER_CHARS == len("[1] user, Friday 2026-05-08: ") - 1
    assert len(assistant) - MAX_CONTEXT_CHARS == len("- assistant, Friday 2026-05-08: ") - 1


NOVEMBER = "2026-11-22T10:00:00+00:00"
ANSWER = "Here is what I found. " * 15 + "The blue tent is lighter. " + "All of them keep the rain out. " * 15


@pytest.mark.parametrize(
    ("reply", "is_whole"),
    [
        ("I'd rather have the red one.", True),
        ("My sister Ilse moved to Bergen in May, and we want to see her there with the children in July.", False),
    ],
)
def test_of_an_answer_that_the_next_words_do_not_take_up_less_is_read(reply: str, is_whole: bool) -> None:
    messages = [StoredMessage("1", "assistant", ANSWER, NOVEMBER), StoredMessage("2", "user", reply, NOVEMBER)]
    assistant, user = render_dialogue(messages).splitlines()
    told = assistant.partition(": ")[2]
    assert len(told) <= (MAX_CONTEXT_CHARS if is_whole else MAX_PASSED_CHARS)
    assert (len(told) > MAX_PASSED_CHARS) is is_whole
    assert told.startswith("Here is what I found.")
    assert told.endswith("All of them keep the rain out.")
    assert user.endswith(reply)


def test_what_follows_the_last_new_words_is_read_with_those_after_it() -> None:
    asked = StoredMessage("1", "user", "Hi, I'm Ada.", NOVEMBER)
    answer = StoredMessage("2", "assistant", "Hi Ada!", NOVEMBER)
    told = StoredMessage("3", "user", "I like figs.", NOVEMBER)
    assert render_dialogue([asked, answer]).splitlines() == ["[1] user, Sunday 2026-11-22: Hi, I'm Ada."]
    again = render_dialogue([replace(asked, seen=True), answer, told]).splitlines()
    assert [line.partition(": ")[2] for line in again] == ["Hi, I'm Ada.", "Hi Ada!", "I like figs."]


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("I like figs, and plums. " * 400, "I like"),
        ("無花果が好きです。" * 900, "無花果"),
        ("figs plums " * 800, ""),
        ("figsplums" * 900, ""),
        (" \n" + "I like figs.\n\n" * 500, "I like"),
    ],
)
def test_a_long_message_is_cut_at_the_end_of_a_sentence_or_a_word_and_nothing_of_it_is_lost(
    text: str, begin: str
) -> None:
    pieces = [each.text for each in in_pieces([StoredMessage("1", "user", text, NOVEMBER)])]
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(each.startswith(begin) and MAX_USER_CHARS // 2 <= len(each) <= MAX_USER_CHARS for each in pieces[:-1])
    assert {word for each in pieces for word in each.split()} <= {*text.split()} or " " not in text.strip()


@given(st.text(max_size=300), st.integers(10, 100))
def test_a_shortened_text_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = shortened(text, limit)

    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
