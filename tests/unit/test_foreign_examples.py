"""A small model reads examples in the language of the message, so that its facts are in it, and repeats none."""

import json

import pytest

from graphs.local.notes import rules
from graphs.local.notes.foreign_examples import FOREIGN_EXAMPLES, examples_for
from memory.config import MemoryConfig
from memory.extraction.extraction import extract_facts
from memory.facts.changes import Extraction
from memory.message import StoredMessage
from memory.prompts import BRIEF_EXAMPLES
from tests.fakes import RecordingModel
from tests.unit.test_languages import DIALOGUES

BRIEF = MemoryConfig(extraction_form="brief", note_rules=rules)


def extracted(text: str, *notes: str) -> tuple[RecordingModel, Extraction]:
    model = RecordingModel(replies=[json.dumps({"facts": notes})])
    message = StoredMessage("m", "user", text, "2026-05-08T10:00:00+00:00")
    return model, extract_facts(model, [message], config=BRIEF)


@pytest.mark.parametrize("dialogue", DIALOGUES, ids=lambda each: each["said"])
def test_the_examples_are_in_the_language_of_the_message(dialogue: dict[str, str]) -> None:
    model, found = extracted(dialogue["said"], dialogue["fact"])
    (prompt,) = model.prompts
    said = tuple(message.text for message in prompt[1:-1:2])
    assert said == tuple(said for said, _ in FOREIGN_EXAMPLES[dialogue["language"]])
    assert dialogue["fact"] in [change.content for change in found.changes]


@pytest.mark.parametrize(
    "said",
    [
        "I moved to Oslo.",
        "No worries, Mel! Your friendship means so much to me.",
        "Our café, El Sol, sells piñatas and crème brûlée.",
        "Tomás, Zoë and I live in São Paulo.",
        "Moved.",
        "",
    ],
)
def test_what_is_said_in_english_or_tells_no_language_has_the_english_examples(said: str) -> None:
    assert examples_for(said) == BRIEF_EXAMPLES


def test_all_messages_that_are_read_together_have_one_beginning() -> None:
    """A server that keeps a prompt reads each message once."""
    model = RecordingModel(replies=['{"facts": []}'] * 2)
    texts = ("Ich wohne in Kiel und habe einen Hund.", "Ok, Figs!")
    messages = [StoredMessage(f"m{n}", "user", text, "2026-05-08T10:00:00+00:00") for n, text in enumerate(texts)]
    extract_facts(model, messages, config=BRIEF)
    first, second = model.prompts
    assert [one.text for one in first[:-1]] == [one.text for one in second[: len(first) - 1]]


@pytest.mark.parametrize("language", FOREIGN_EXAMPLES)
def test_a_model_that_repeats_an_example_tells_nothing(language: str) -> None:
    said = next(each["said"] for each in DIALOGUES if each["language"] == language)
    echoed = json.loads(FOREIGN_EXAMPLES[language][2][1])["facts"][0]
    assert extracted(said, echoed)[1].changes == ()
