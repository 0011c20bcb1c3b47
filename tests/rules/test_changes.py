from memory import prompts
from memory.facts.changes import REASONS, Outcome, Refusal, reasons


def test_a_log_shows_reasons_and_numbers_only() -> None:
    refused = (Refusal(reason="secret"), Refusal(reason="duplicate", content="x"), Refusal(reason="secret"))

    assert reasons(refused) == {"duplicate": 1, "secret": 2}
    assert reasons(Outcome().refused) == {}


def test_a_model_is_told_of_reasons_that_there_are() -> None:
    assert prompts.NOT_REMEMBERED.keys() <= {*REASONS}
