"""Loops of a small model's summary are cut; what is said once stays as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.context.summary_prompt import without_loops
from tests.fakes import RecordingModel
from tests.summarizing import summarize, talk

SENTENCE = "The user moved to Bergen in March 2027."


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (f"{SENTENCE} {SENTENCE} {SENTENCE}", SENTENCE),
        (f"{SENTENCE} It rains. {SENTENCE} It rains.", f"{SENTENCE} It rains. It rains."),
        (f"{SENTENCE}\n{SENTENCE}\nTom stays.", f"{SENTENCE}\nTom stays."),
        ("She likes figs" + ", and figs" * 40, "She likes figs, and figs"),
        ("They spoke of the boat" + " and the boat" * 50 + " and the", "They spoke of the boat and the"),
        ("no no no, she said", "no no no, she said"),
        ("Ada, Ben and Cy: 5017, 5017", "Ada, Ben and Cy: 5017, 5017"),
    ],
)
def test_what_repeats_itself_is_kept_once(written: str, kept: str) -> None:
    assert without_loops(written) == kept


@given(st.text(alphabet="ab .\n", max_size=200))
def test_cutting_only_leaves_out_and_is_done_once(written: str) -> None:
    kept = without_loops(written)
    letters = iter(written)

    assert all(letter in letters for letter in kept)
    assert without_loops(kept) == kept or len(without_loops(kept)) < len(kept)


@given(st.lists(st.integers(), unique=True, max_size=30))
def test_a_text_in_which_nothing_is_said_twice_stays_as_it_is(numbers: list[int]) -> None:
    written = " ".join(f"The user counted {number} moon jellies that morning." for number in numbers)

    assert without_loops(written) == written


def test_a_summary_that_fell_into_a_loop_is_stored_without_it() -> None:
    result = summarize(talk(5), RecordingModel(respond=lambda _: f"{SENTENCE} " * 4))

    assert result.running_summary
    assert result.running_summary.summary == SENTENCE
