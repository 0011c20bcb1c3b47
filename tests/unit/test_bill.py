"""What the bill counts: a prompt's unchanged beginning, what is cached, what was spent, and the goals."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bill.figures import PRICES, Bill
from benchmarks.bill.ledger import Call, Part, tokens_of, unchanged_tokens
from benchmarks.bill.replay import fixed_length, read_replay
from benchmarks.bill.report import EVERY_TURN, FULL, OURS, Goal, goals

PARTS = st.lists(st.tuples(st.sampled_from(["system", "human", "ai"]), st.text("ab c", max_size=20)), max_size=6)


@given(PARTS, PARTS)
def test_no_more_is_unchanged_than_either_prompt_has(before: list[Part], after: list[Part]) -> None:
    unchanged = unchanged_tokens(before, after)
    assert 0 <= unchanged <= min(sum(map(tokens_of, before)), sum(map(tokens_of, after)))


@given(PARTS, PARTS)
def test_what_is_appended_leaves_all_before_unchanged(before: list[Part], more: list[Part]) -> None:
    assert unchanged_tokens(before, [*before, *more]) == sum(map(tokens_of, before))


def test_behind_the_first_difference_nothing_is_unchanged() -> None:
    same: Part = ("human", "the same words in both")
    assert unchanged_tokens([("system", "one"), same], [("system", "two"), same]) == 0
    assert unchanged_tokens([("system", "one"), same], [("human", "one"), same]) == 0


@given(st.text("word s", max_size=80), st.integers(1, 300))
def test_every_answer_has_the_same_number_of_words(text: str, words: int) -> None:
    assert len(fixed_length(text, words).split()) == words
    assert fixed_length(text, words).split()[: len(text.split())] == text.split()[:words]


def test_a_conversation_is_read_as_turns_of_one_speaker(tmp_path: Path) -> None:
    session = [
        {"speaker": "Bo", "dia_id": "D1:1", "text": "Hi Ada."},
        {"speaker": "Ada", "dia_id": "D1:2", "text": "I moved."},
        {"speaker": "Ada", "dia_id": "D1:3", "text": "To Bergen.", "blip_caption": "a harbour"},
        {"speaker": "Bo", "dia_id": "D1:4", "text": "How nice."},
        {"speaker": "Ada", "dia_id": "D1:5", "text": "Yes."},
    ]
    observed = {"Ada": [["Ada moved to Bergen", "D1:3"]], "Bo": [["Bo is kind", "D1:4"]]}
    data = {
        "conversation": {
            "speaker_a": "Ada",
            "session_1": session,
            "session_1_date_time": "1:00 pm on 2 May, 2023",
        },
        "observation": {"session_1_observation": observed},
    }
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(data))
    first, second = read_replay(path, turns=9, answer_words=2, pace=20.0)
    assert (first.text, first.answer) == ("I moved. To Bergen. [photo: a harbour]", "How nice.")
    assert first.facts == ("User moved to Bergen",)
    assert (second.text, second.facts, second.at - first.at) == ("Yes.", (), 20.0)
    assert len(second.answer.split()) == 2


def bill(*calls: Call) -> Bill:
    return Bill("someone", 2, calls, 0)


def test_only_what_follows_soon_is_cached() -> None:
    cold = bill(Call(0, "chat", 100, 10), Call(1, "chat", 200, 10, unchanged=100))
    warm = bill(Call(0, "chat", 100, 10), Call(1, "chat", 200, 10, unchanged=100, is_warm=True))
    assert (cold.cached(), cold.read_new()) == (0, 300)
    assert (warm.cached(), warm.read_new(), warm.unchanged()) == (100, 200, 0.5)
    new, cached, written = PRICES
    assert warm.cost() == new * 200 + cached * 100 + written * 20


def test_the_goals_compare_with_every_turn_and_with_the_full_history() -> None:
    chat = [Call(0, "chat", 100, 10), Call(1, "chat", 100, 10, unchanged=95, is_warm=True)]
    ours = bill(*chat, Call(1, "summary", 5, 5), Call(1, "extraction", 5, 5), Call(1, "roll-up", 4, 1))
    every = bill(*chat, Call(0, "extraction", 60, 40))
    full = bill(Call(0, "chat", 500, 10), Call(1, "chat", 1000, 10, is_warm=True))
    measured = goals({**dict.fromkeys(OURS.values(), ours), EVERY_TURN: every, FULL: full})
    assert [goal.measured for goal in measured] == [0.2, 0.25, 0.95, 0.1] * 2
    assert all(goal.holds for goal in measured)
    assert not Goal("share", 0.7, 0.8, at_least=True).holds
    assert not Goal("ratio", 0.3, 0.25).holds
