"""Why a turn has no memory: one reason, the one to mend first; each is logged once."""

import logging
from typing import Any

import pytest

from graphs.turn.state import SENTENCES, Warnings, why_without

WORKS: dict[str, Any] = {"has_owner": True, "has_store": True, "enabled": True, "mode": "normal", "is_read": True}


@pytest.mark.parametrize(
    ("circumstances", "reason"),
    [
        ({}, None),
        ({"mode": "read_only"}, None),
        ({"has_store": False}, "no_store"),
        ({"has_store": False, "has_owner": False, "is_read": False}, "no_store"),
        ({"has_owner": False, "is_read": False}, "no_identity"),
        ({"has_owner": False, "enabled": False, "is_read": False}, "no_identity"),
        ({"mode": "incognito", "is_read": False}, "incognito"),
        ({"mode": None, "is_read": False}, "unreadable"),
        ({"is_read": False}, "unreadable"),
        ({"enabled": False}, "switched_off"),
    ],
)
def test_the_reason_is_the_one_to_mend_first(circumstances: dict[str, Any], reason: str | None) -> None:
    assert why_without(**{**WORKS, **circumstances}) == reason


def test_each_reason_is_said_once_and_in_full(caplog: pytest.LogCaptureFixture) -> None:
    warnings = Warnings()
    for _ in range(3):
        for reason in SENTENCES:
            warnings.say(reason)
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * len(SENTENCES)
    for (reason, sentence), record in zip(SENTENCES.items(), caplog.records, strict=True):
        assert record.getMessage() == f"turns go on without memory ({reason}): {sentence}"
