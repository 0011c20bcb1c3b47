"""Thirty short dialogues in six languages: a fact stays in its language, is found in it, and stands in the prompt."""

import json
from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore

from memory.facts.rows import MemorySnapshot
from memory.facts.store import FactStore
from memory.injection.injected import render_block
from memory.injection.selection import TurnConditions, inject
from tests.extracting import FRIDAY, extract, found, reasons

NOW = 1_778_227_200.0
TURN = TurnConditions(
    thread_id="t",
    message_id="m9",
    window=frozenset(),
    now=NOW,
    cache_ttl_seconds=300,
    will_summarize=False,
    budget=20_000,
    count=len,
)
LINES = (Path(__file__).parents[1] / "data" / "dialogues.jsonl").read_text("utf-8").splitlines()
DIALOGUES: list[dict[str, str]] = [json.loads(line) for line in LINES]


@pytest.mark.parametrize("dialogue", DIALOGUES, ids=lambda each: each["fact"])
def test_what_a_model_finds_is_taken_as_it_is(dialogue: dict[str, str]) -> None:
    assert FRIDAY.startswith("2026-05-08")  # what the dates in the dialogues count from
    extraction = extract(found(dialogue["fact"]), text=dialogue["said"])
    assert reasons(extraction) == []
    assert [change.content for change in extraction.changes] == [dialogue["fact"]]


@pytest.fixture(scope="module")
def facts() -> FactStore:
    store = FactStore(InMemoryStore(), "ada", clock=lambda: NOW)
    for dialogue in DIALOGUES:
        store.create(dialogue["fact"], "knowledge", 0.9)
    return store


def test_nearly_all_are_found_first(facts: FactStore) -> None:
    first = [facts.search(each["question"], limit=1)[0].content == each["fact"] for each in DIALOGUES]
    assert sum(first) == 30


def test_the_prompt_shows_all_of_them_as_they_are(facts: FactStore) -> None:
    known = MemorySnapshot(facts=tuple(facts.list()))
    injected = inject(None, known, TURN)
    block = render_block(injected, known, 20_000, len)
    assert [each["fact"] for each in DIALOGUES if each["fact"] not in block] == []
