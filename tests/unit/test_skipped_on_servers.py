"""What is skipped on servers over Postgres and Redis is there to be skipped."""

from pathlib import Path

import pytest

from tests.e2e.langhost.skipped import SKIPPED

E2E = Path(__file__).parents[1] / "e2e"


@pytest.mark.parametrize("name", SKIPPED)
def test_a_test_that_is_skipped_by_name_is_there(name: str) -> None:
    file, _, test = name.partition("::")
    assert f"def {test or 'test_'}" in (E2E / file).read_text()
