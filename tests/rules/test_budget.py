"""What fits and where to cut, on messages whose counts are given."""

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from memory.context.budget import Budget, Keep, choose_cut, fit, pinned, units
from memory.context.tokens import TokenCounter

TEN = TokenCounter(lambda messages: 10 * len(list(messages)))
"""Counts ten tokens a message."""


def conversation(script: str) -> list[BaseMessage]:
    """Messages by letters: `h` a user, `a` an answer, `1` to `3` a model's calls, `x` to `z` their results.

    `2` calls x and y, `3` calls x, y and z, `1` calls x.
    """
    said = list[BaseMessage]()
    for letter in script:
        if letter in "123":
            calls = [{"name": "look", "args": {}, "id": name} for name in "xyz"[: int(letter)]]
            said.append(AIMessage("", tool_calls=calls))
        elif letter in "xyz":
            said.append(ToolMessage("found", tool_call_id=letter))
        else:
            said.append(HumanMessage("hi") if letter == "h" else AIMessage("yes"))
    return said


@pytest.mark.parametrize(
    ("script", "parts"),
    [
        ("", []),
        ("hah", ["h", "a", "h"]),
        ("h1xa", ["h", "1x", "a"]),
        ("h2xya", ["h", "2xy", "a"]),
        ("h2yxa", ["h", "2yx", "a"]),
        ("h2xay", ["h", "2xay"]),
        ("h3xyzah", ["h", "3xyz", "a", "h"]),
        ("h1x1x", ["h", "1x", "1x"]),
        ("xh", ["x", "h"]),
        ("h1", ["h", "1"]),
    ],
)
def test_a_model_message_and_the_results_of_its_calls_are_one_unit(script: str, parts: list[str]) -> None:
    found = units(conversation(script), TEN)
    assert [script[unit.places.start : unit.places.stop] for unit in found] == parts


@pytest.mark.parametrize(
    ("script", "stays"), [("hah", "h"), ("hah1x1x", "h1x"), ("hah1x2xy", "h2xy"), ("aa", "a"), ("ha", "ha")]
)
def test_the_newest_question_and_the_newest_results_are_pinned(script: str, stays: str) -> None:
    found = units(conversation(script), TEN)
    kept = [script[unit.places.start : unit.places.stop] for unit in found if unit in pinned(found)]
    assert "".join(kept) == stays


def cut(script: str, keep: Keep) -> str:
    said = conversation(script)
    leaving = {id(message) for message in choose_cut(said, TEN, keep)}
    return "".join(letter for letter, message in zip(script, said, strict=True) if id(message) in leaving)


@pytest.mark.parametrize(
    ("script", "keep", "leaving"),
    [
        ("hahahah", Keep(30, None), "haha"),
        ("hahahah", Keep(40, None), "hah"),
        ("hahahah", Keep(1000, 2), "hahah"),
        ("hah1x1x1x", Keep(40, None), "ha1x1x"),
        ("ha2xyh", Keep(20, None), "ha2xy"),
        ("ha2xyh", Keep(30, None), "ha2xy"),
        ("ha2xyh", Keep(40, None), "ha"),
        ("h", Keep(1, None), ""),
        ("hah1x", Keep(25, None), ""),
        ("hah", Keep(5, None), "ha"),
        ("hahahh", Keep(5, None), "hahah"),
    ],
)
def test_a_cut_leaves_a_run_of_the_newest_units_and_the_pinned_ones(script: str, keep: Keep, leaving: str) -> None:
    assert cut(script, keep) == leaving


def test_oldest_units_are_dropped_whole_until_the_rest_fits() -> None:
    script = "h2xyah1x"
    kept = fit(conversation(script), 45, TEN, drop=True)
    assert [message.type for message in kept] == ["ai", "human", "ai", "tool"]


@pytest.mark.parametrize(
    ("options", "keep"),
    [
        ({}, Keep(350, None)),
        ({"keep_tokens": 100}, Keep(100, None)),
        ({"keep_tokens": 5000}, Keep(350, None)),
        ({"keep_messages": 4}, Keep(350, 4)),
        ({"max_tokens_before_summary": 400}, Keep(200, None)),
    ],
)
def test_a_cut_goes_down_to_half_of_what_the_summary_leaves_or_further(options: dict[str, int], keep: Keep) -> None:
    assert Budget(max_tokens=1000, max_summary_tokens=200, **options).keep(system=100) == keep
