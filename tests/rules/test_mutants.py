"""Every mutant changes what is there: text that moved away would only be noticed when all of them are tried."""

from pathlib import Path

import palimpsest
from tests.mutants import MUTANTS, PROJECT

PACKAGES = Path(palimpsest.__file__).parents[1]


def test_what_a_mutant_changes_stands_once_in_its_file() -> None:
    wrong = [mutant.name for mutant in MUTANTS if (PACKAGES / mutant.file).read_text().count(mutant.old) != 1]
    assert not wrong


def test_the_tests_that_a_mutant_names_are_there() -> None:
    named = {test.partition("::")[0] for mutant in MUTANTS for test in mutant.tests}
    assert not [test for test in named if not (PROJECT / test).is_file()]


def test_mutants_have_names_of_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
