from hypothesis import given
from hypothesis import strategies as st

from memory.core.dialogue import MAX_CONTEXT_CHARS, MAX_USER_CHARS, new_messages, render_dialogue, shortened
from memory.message import StoredMessage


def test_a_long_message_of_the_user_keeps_more_than_one_of_the_assistant() -> None:
    messages = [
        StoredMessage("1", "user", "u" * 9000, "2026-05-08T10:00:00+00:00"),
        StoredMessage("2", "assistant", "a" * 9000, "2026-05-08T10:00:00+00:00"),
    ]

    user, assistant = render_dialogue(messages).splitlines()

    assert len(user) - MAX_USER_CHARS == len("[1] user, Friday 2026-05-08: ") - 1
    assert len(assistant) - MAX_CONTEXT_CHARS == len("- assistant, Friday 2026-05-08: ") - 1


def test_a_time_that_cannot_be_read_is_said_to_be_unknown() -> None:
    assert render_dialogue([StoredMessage("1", "user", "Hi", "yesterday")]) == "[1] user, date unknown: Hi"


def test_two_equal_messages_have_numbers_of_their_own() -> None:
    twice = [StoredMessage(name, "user", "Hi", "") for name in ("1", "2")]

    assert [line[:3] for line in render_dialogue(twice).splitlines()] == ["[1]", "[2]"]
    assert new_messages(twice) == twice


@given(st.text(max_size=300), st.integers(10, 100))
def test_a_shortened_text_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = shortened(text, limit)

    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
