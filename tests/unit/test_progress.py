"""How long a replay takes, as it is told to people."""

from pathlib import Path

import pytest

from graphs.cli.demo import read_conversation
from graphs.cli.progress import estimate, in_words, remaining


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "about 5 seconds"), (12, "about 10 seconds"), (70, "about 1 minute"), (140, "about 2 minutes")],
)
def test_a_duration_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_eight_turns_fit_in_five_minutes_and_thirty_do_not() -> None:
    assert estimate(8, 3) < 300
    assert estimate(30, 3) > 600


def test_what_is_left_follows_the_turns_so_far_and_no_single_slow_one() -> None:
    assert remaining([10, 10, 100], 4, 30) == 70


@pytest.mark.parametrize(("turns", "asked"), [(8, "Shellfish"), (30, "April")])
def test_only_what_was_replayed_is_asked_about(turns: int, asked: str) -> None:
    conversation = read_conversation(Path(__file__).parents[2] / "examples/conversation.json", turns)

    assert len(conversation.questions) == 3
    assert asked in conversation.questions[0].answer
