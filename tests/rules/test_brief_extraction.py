"""Extraction with a small model: one message at a time, sentences for an answer, the rest by rules."""

import json

import pytest

from graphs.local.notes import rules
from graphs.local.notes.category import category_of
from graphs.local.notes.rules import is_statement, without_requests
from memory.config import Category, MemoryConfig
from memory.extraction.extraction import extract_facts
from memory.facts.changes import Extraction
from tests.extracting import known, said
from tests.fakes import RecordingModel

BRIEF = MemoryConfig(extraction_form="brief", note_rules=rules)


def notes(*sentences: str) -> str:
    return json.dumps({"facts": sentences})


def contents(extraction: Extraction) -> list[str]:
    return [change.content for change in extraction.changes]


def test_each_message_is_asked_alone_and_is_the_source_of_what_it_tells() -> None:
    model = RecordingModel(replies=[notes("User's name is Ines."), notes("User likes climbing.")])
    extraction = extract_facts(
        model,
        [said("I'm Ines.", name="m1"), said("Hi, Ines!", role="assistant"), said("I like climbing.", name="m2")],
        config=BRIEF,
    )
    assert [(change.content, change.sources) for change in extraction.changes] == [
        ("User's name is Ines.", ("m1",)),
        ("User likes climbing.", ("m2",)),
    ]
    assert [prompt[-1].text for prompt in model.prompts] == ["I'm Ines.", "I like climbing."]


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("My name is Ada and I am allergic to peanuts.", ("User's name is Ada.", "User is allergic to peanuts.")),
        ("I am a vegan and my husband is a butcher.", ("User is a vegan.", "User's husband is a butcher.")),
        ("My friend Ola is a pilot and I am afraid.", ("User's friend Ola is a pilot.", "User is afraid.")),
    ],
)
def test_two_clauses_with_two_subjects_keep_their_subjects(text: str, noted: tuple[str, ...]) -> None:
    model = RecordingModel(replies=[notes(*noted)])
    assert contents(extract_facts(model, [said(text)], config=BRIEF)) == list(noted)


def test_what_is_told_of_somebody_else_is_not_told_of_the_user() -> None:
    model = RecordingModel(replies=[notes("User's sister is called Vera.", "User lives in Cork.")])
    told = contents(extract_facts(model, [said("My sister Vera lives in Cork.")], config=BRIEF))
    assert told == ["User's sister is called Vera.", "User's sister Vera lives in Cork."]


def test_each_prompt_continues_the_one_before_so_that_a_server_reads_only_what_is_new() -> None:
    model = RecordingModel(replies=[notes("User's name is Ines."), notes(), notes("User likes tea.")])
    extract_facts(model, [said("I'm Ines."), said("It rains here."), said("I like tea.")], config=BRIEF)
    first, second, third = ([message.text for message in prompt] for prompt in model.prompts)
    assert second[: len(first)] == first
    # A model that saw itself note nothing goes on to note nothing.
    assert third == [*first, notes("User's name is Ines."), "I like tea."]


def test_what_only_asks_or_thanks_costs_no_call() -> None:
    model = RecordingModel()
    asked = [
        "What is a fjord?",
        "Thanks a lot!",
        "Hello there!",
        "OK, thanks. Bye!",
        "Haha, good one. Which is longer?",
        "And which one is the deepest? How deep is it?",
    ]
    assert extract_facts(model, [said(text) for text in asked], config=BRIEF) == Extraction()
    assert model.prompts == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("I like tea. Which one is best?", "I like tea."),
        ("I can't eat nuts, what could I bake?", "I can't eat nuts, what could I bake?"),
        ("Could you always answer in one sentence? Thanks.", "Please always answer in one sentence. Thanks."),
        ("Hello. Can you plan a trip for me?", "Hello."),
        ("Gibt es hier Feigen?", "Gibt es hier Feigen?"),
        ("Ok, so where do I begin?", ""),
        ("Please shorten this sentence: The meeting is on the second floor.", ""),
        ("Thanks. Write me a limerick about a goat. I like goats.", "Thanks. I like goats."),
        ("Write a poem for my wife Eleni.", "Write a poem for my wife Eleni."),
        ("Please write to me in capital letters.", "Please write to me in capital letters."),
        ("Tell me the truth from now on.", "Tell me the truth from now on."),
    ],
)
def test_questions_and_tasks_are_left_out_and_what_states_something_stays(text: str, left: str) -> None:
    assert without_requests(text) == left


def test_a_reply_is_read_with_the_question_that_it_answers() -> None:
    model = RecordingModel(replies=[notes("User is allergic to penicillin.")])
    asked = said("Any allergies?", role="assistant")
    assert contents(extract_facts(model, [asked, said("Penicillin.")], config=BRIEF)) == [
        "User is allergic to penicillin."
    ]
    assert model.prompts[0][-1].text == 'Asked "Any allergies?", the user says: Penicillin.'


def test_what_the_assistant_says_of_itself_is_not_shown() -> None:
    model = RecordingModel(replies=[notes()])
    extract_facts(model, [said("Beijing. I love big cities.", role="assistant"), said("Yes, I do too.")], config=BRIEF)
    assert model.prompts[0][-1].text == "Yes, I do too."


@pytest.mark.parametrize("sentence", ["User wants to learn Norwegian.", "User is allergic to nuts.", "Tom is a nurse."])
def test_what_tells_something_is_a_statement_and_what_tells_nothing_of_the_user_is_none(sentence: str) -> None:
    assert is_statement(sentence)
    assert not any(map(is_statement, ("What do people do here?", "He agreed to stop.")))


@pytest.mark.parametrize(
    ("sentence", "source", "category"),
    [
        ("User prefers tea to what others will drink.", "", "preference"),
        ("User decided to run the half marathon.", "", "context"),
        ("User will run the half marathon.", "", "goal"),
        ("User gets up at five every day.", "", "behavior"),
        ("User's cat is called Biscuit.", "", "knowledge"),
        ("The model is overrated.", "It rains. Honestly, the model is overrated.", "preference"),
        ("The report is due on Friday.", "I promised it: the report is due on Friday.", "goal"),
    ],
)
def test_the_first_telling_word_of_a_fact_or_of_its_source_is_its_category(
    sentence: str, source: str, category: Category
) -> None:
    assert category_of(sentence, source) == category


def test_a_correction_takes_the_place_of_the_known_fact_it_is_about() -> None:
    model = RecordingModel(replies=[notes("Tom comes to Bergen in April already, not in June.")])
    facts = [known("User has a cat, Biscuit.", 1), known("Tom comes to Bergen in June.", 2)]
    extraction = extract_facts(
        model, [said("Tom comes to Bergen in April already, not in June.")], existing=facts, config=BRIEF
    )
    assert [(change.action, change.target) for change in extraction.changes] == [("corrects", facts[1].id)]


def test_a_correction_takes_nothing_along_that_it_does_not_say_anew() -> None:
    """What the local model noted of our dialogue, where the name and the school went with the birthday."""
    known_of_her = [
        "User's daughter's name is Maja.",
        "User's daughter was born on 14 May 2019.",
        "User's daughter goes to a school in Graz.",
    ]
    corrected = "User's daughter's birth date is now corrected to 15 May 2019."
    messages = [
        said("My daughter Maja was born on 14 May 2019 and goes to a school in Graz."),
        said("Sorry, I said it wrong: Maja was born on 15 May 2019, not on the 14th."),
    ]
    model = RecordingModel(replies=[notes(*known_of_her), notes(corrected)])
    found = contents(extract_facts(model, messages, config=BRIEF))
    assert {known_of_her[0], known_of_her[2]} <= set(found)
    assert known_of_her[1] not in found


def test_the_answer_is_bounded() -> None:
    """A small model may repeat itself without end."""
    model = RecordingModel(replies=[notes(*(f"User likes tea{'!' * n}" for n in range(80)))])
    extraction = extract_facts(model, [said("I like tea.")], config=BRIEF)
    assert len(extraction.changes) + len(extraction.refused) < 6


@pytest.mark.parametrize("noted", [notes(), notes("User prefers answers in two sentences at most, always.")])
def test_how_the_user_wants_to_be_answered_is_kept_once_also_where_the_model_notes_nothing(noted: str) -> None:
    asked = said("Could you always answer me in two sentences at most?")
    found = extract_facts(RecordingModel(replies=[noted]), [asked], config=BRIEF)
    assert [change.category for change in found.changes] == ["preference"]
    assert "two sentences" in contents(found)[0]
