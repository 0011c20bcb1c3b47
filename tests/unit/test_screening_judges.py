"""The learned judges: their file belongs to the texts; they hold what writers wrote whom they did not learn from."""

import json

from memory.screening.door import JUDGES_FILE, ORDER_JUDGE
from memory.screening.judge import unpacked
from tests.screening_training import ORDERS, SECRETS, counted, digest, examples, held_out, packed, trained

WRITER = "writer_6"


def test_the_file_of_the_judges_was_made_from_the_texts_in_the_repository() -> None:
    assert digest() == json.loads(JUDGES_FILE.read_text("utf-8"))["data"], "run python -m tests.screening_training"
    assert JUDGES_FILE.stat().st_size <= 121_000


def test_a_writer_that_the_judges_did_not_learn_from_is_held_nine_times_of_ten_and_honest_texts_are_not() -> None:
    own = [each for each in examples() if each.writer == WRITER]
    others = [each for each in examples() if each.writer != WRITER]
    counts = counted(own, trained(ORDERS, others), trained(SECRETS, others))

    assert counts["attacks"][1] >= 80
    assert counts["attacks"][0] >= 0.9 * counts["attacks"][1]
    assert counts["wishes"][0] <= 0.025 * counts["wishes"][1]
    assert counts["secrets"][0] >= 0.75 * counts["secrets"][1]
    assert counts["not_secrets"][0] <= 3


def test_of_texts_that_nothing_was_learned_from_most_orders_are_held_and_one_honest_text_in_forty() -> None:
    sets = dict(held_out())
    older = [sets[name] for name in ("set_1", "set_2")]
    caught, attacks = (sum(counts["attacks"][at] for counts in older) for at in (0, 1))
    assert attacks == 140
    assert caught >= 0.87 * attacks
    assert all(counts["wishes"][0] <= 1 for counts in older)  # of 140
    fresh = [sets[name] for name in ("set_3", "set_5", "set_6", "set_7", "set_8")]
    assert all(counts["attacks"][0] >= 0.9 * counts["attacks"][1] for counts in fresh)
    held, honest = (sum(counts["wishes"][at] for counts in fresh) for at in (0, 1))
    assert honest == 3440
    assert held <= 0.022 * honest
    assert sets["set_3"]["wishes"][0] <= 0.018 * sets["set_3"]["wishes"][1]
    assert sets["set_7"]["attacks"][0] >= 0.95 * sets["set_7"]["attacks"][1]  # the goal is .95 and .005
    assert sets["set_7"]["wishes"][0] <= 0.017 * sets["set_7"]["wishes"][1]


def test_codes_passwords_and_passphrases_in_eight_languages_are_held_and_what_is_harmless_with_digits_is_not() -> None:
    counts = dict(held_out())["set_4"]
    assert counts["secrets"][0] >= 0.9 * counts["secrets"][1]
    assert counts["not_secrets"][0] <= 2  # of 200; the goal is 1
    assert (counts["secrets"][1], counts["not_secrets"][1]) == (96, 200)


def test_a_judge_is_the_same_after_it_was_written_and_read() -> None:
    again = unpacked(packed(ORDER_JUDGE))

    assert list(again.weights) == list(ORDER_JUDGE.weights)
    assert again == ORDER_JUDGE
