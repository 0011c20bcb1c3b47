"""What the bill counts: a prompt's unchanged beginning, what is cached, what was spent, and the goals."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage, SystemMessage

from benchmarks.bill.figures import PRICES, Bill
from benchmarks.bill.ledger import Call, Ledger, unchanged_tokens
from benchmarks.bill.parts import (
    DIFFERENCES,
    EXTRACTION,
    SUMMARY,
    Part,
    first_difference,
    of_extraction,
    of_summary,
    tokens_of,
)
from benchmarks.bill.replay import fixed_length, read_replay
from benchmarks.bill.report import EVERY_TURN, FULL, OURS, Goal, goals
from graphs.turn.view import system_text
from memory import prompts
from memory.context.summary_prompt import SummaryPrompts
from memory.context.tokens import count_tokens
from memory.extraction.dialogue import render_dialogue
from memory.message import StoredMessage

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


def test_the_parts_of_a_call_make_up_its_tokens() -> None:
    said = [
        StoredMessage("1", "assistant", "How was your week?", "2026-05-08T10:00:00+00:00"),
        StoredMessage("2", "user", "I left the bank.", "2026-05-08T10:00:00+00:00"),
    ]
    material = prompts.EXTRACTION_INPUT.format(known="1. Works.", profile="(none)", messages=render_dialogue(said))
    prompt = [SystemMessage(prompts.EXTRACTION), HumanMessage(material)]
    ledger = Ledger()
    ledger.add("extraction", prompt, '{"facts": []}', "an answer")
    (call,) = ledger.calls
    assert tuple(call.made_of) == EXTRACTION
    assert call.made_of["assistant's messages"] == count_tokens("- assistant, Friday 2026-05-08: How was your week?\n")
    assert sum(call.made_of.values()) == call.read + call.written


def test_of_a_summary_call_the_existing_one_is_told_apart() -> None:
    summarize = SummaryPrompts()
    for existing in ("", "They spoke of figs."):
        (asked,) = summarize.messages([HumanMessage("I moved.")], existing, 50)
        made_of = of_summary([("human", asked.text)], "A summary.")
        assert tuple(made_of) == SUMMARY
        assert made_of["existing summary"] == count_tokens(existing)
        assert made_of["answer"] == count_tokens("A summary.")
    assert of_extraction([("human", "Another form.")], "", "") == {}


def test_where_a_prompt_differs_first() -> None:
    def system(block: str, summary: str) -> Part:
        return "system", system_text("Be kind.", block, summary)

    first: list[Part] = [system("block", "summary"), ("human", "<memory>\nfigs\n</memory>\n\nHi"), ("ai", "Hello")]
    assert first_difference(first, [*first, ("human", "And?")]) == "end"
    assert first_difference(first, [first[0], ("human", "Hi"), first[2]]) == "recalled"
    assert first_difference(first, [system("block", "another"), *first[2:]]) == "summary"
    assert first_difference(first, [system("other", "summary"), *first[1:]]) == "block"
    assert first_difference([system("block", ""), *first[1:]], first) == "summary"


def test_what_is_read_anew_and_what_is_unchanged_make_one() -> None:
    calls = [
        Call(0, "chat", 100, 10),
        Call(1, "chat", 100, 10, unchanged=80, is_warm=True),
        Call(2, "chat", 200, 10, unchanged=50, is_warm=True, differs="summary"),
    ]
    found = bill(*calls)
    assert found.differing("summary") == (1, 0.375)
    assert sum(found.differing(where)[1] for where in DIFFERENCES) + found.unchanged() == 1.0
