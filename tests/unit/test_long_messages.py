"""What a user said is read, however long it is: in pieces that name their message, as much as anyone can have said."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.dialogue import MAX_USER_CHARS, in_pieces, render_dialogue
from memory.extraction.extraction import extract_facts
from memory.message import StoredMessage
from memory.text import one_line
from memory.worker.reading import CHARS_PER_MESSAGE, portions
from tests.fakes import RecordingModel, learns
from tests.memory_bench import CONFIG, MemoryBench

NOW = "2026-11-22T10:00:00+00:00"
# So much stands between two facts that no piece holds both: `learns` finds one fact a line.
FILLER = "And so it went on for a while. " * 130


def user(text: str, name: str = "u1") -> StoredMessage:
    return StoredMessage(name, "user", text, NOW)


def long_text(facts: int) -> str:
    return "".join(f"I like thing{number}. {FILLER}\n" for number in range(facts))


def test_a_long_message_makes_no_prompt_that_is_too_long_for_a_small_model() -> None:
    bench = MemoryBench(config=replace(CONFIG, portion_messages=6))
    bench.say(long_text(8))
    bench.drain()
    assert len(bench.facts()) == 8
    read = [len(prompt[-1].text.split("Messages:")[1]) for prompt in bench.model.prompts]
    assert len(read) > 3
    assert max(read) < 6 * CHARS_PER_MESSAGE + 500


def test_a_long_message_is_read_whole_by_one_extraction_too() -> None:
    found = extract_facts(RecordingModel(respond=learns), [user(long_text(4))])
    assert len(found.changes) == 4
    assert {change.sources for change in found.changes} == {("u1",)}


@given(st.text("ab .\n", max_size=300), st.integers(8, 40))
def test_the_pieces_of_a_message_are_all_of_it_in_order_and_none_is_too_long(text: str, limit: int) -> None:
    message = replace(user(text), time=NOW)
    pieces = in_pieces([message], limit)
    assert "".join("".join(piece.text.split()) for piece in pieces) == "".join(text.split())
    assert all(len(one_line(piece.text)) <= limit for piece in pieces)
    assert {(piece.id, piece.role, piece.time) for piece in pieces} == {("u1", "user", NOW)}


def test_what_fits_is_left_as_it_is_and_so_is_what_is_only_context() -> None:
    messages = [
        user("Hi. " + "x" * (MAX_USER_CHARS - 4)),
        replace(user(FILLER * 2, "u0"), seen=True),
        StoredMessage("a1", "assistant", FILLER * 2, NOW),
    ]
    assert in_pieces(messages) == messages


def test_a_piece_ends_with_a_sentence_where_it_can() -> None:
    pieces = in_pieces([user("One sentence here. Another sentence. The last one of them.")], 40)
    assert [piece.text for piece in pieces] == ["One sentence here. Another sentence.", "The last one of them."]


def test_what_is_read_together_fits_one_prompt_however_long_each_message_is() -> None:
    bench = MemoryBench()
    for number in range(1, 4):
        bench.say(f"Story {number}. {long_text(2)}", begin=number)
    receipts = bench.drain().receipts
    assert [len(receipt.messages) for receipt in receipts] == [4, 2]


def test_pieces_have_numbers_of_their_own() -> None:
    lines = render_dialogue(in_pieces([user("a" * 30 + " " + "b" * 30)], 40)).splitlines()
    assert [line[:3] for line in lines] == ["[1]", "[2]"]


def test_portions_hold_pieces_of_one_message_apart_from_each_other() -> None:
    cut = portions([user(long_text(8)), StoredMessage("a1", "assistant", "Noted.", NOW)], 6)
    assert len(cut) > 3
    assert cut[-1][-1].id == "a1"
    assert "".join(one.text.strip() for portion in cut for one in portion).count("thing") == 8
