from memory.facts.changes import Outcome, Refusal, reasons


def test_a_log_shows_reasons_and_numbers_only() -> None:
    refused = (Refusal(reason="secret"), Refusal(reason="duplicate", content="x"), Refusal(reason="secret"))

    assert reasons(refused) == {"duplicate": 1, "secret": 2}
    assert reasons(Outcome().refused) == {}
