"""Where today's memory breaks a law: each is excused, and has to be struck here once it is mended."""

from dataclasses import dataclass

from tests.laws.interruptions import How

BROKEN_OFF: tuple[How, ...] = ("kill", "fail once", "fail on")


@dataclass(frozen=True)
class Fault:
    """One broken law.

    Attributes:
        operation: Of which operation.
        hows: Under which interruptions.
        laws: Names of the laws.
        why: What is wrong.
        in_pieces: Only where a store writes a batch in pieces.
    """

    operation: str
    hows: tuple[How, ...]
    laws: tuple[str, ...]
    why: str
    in_pieces: bool = False

    def excuses(self, complaint: str) -> bool:
        return complaint.startswith(self.laws)


_HALF = "a batch that was written half leaves a fact without the row of history that it needs, or with one too many"

AS_IN_ORDER = ("nothing_", "ids_are_kept", "confirmed_", "history_is_whole")
FAULTS = (
    Fault("edit", BROKEN_OFF, ("history_is_whole",), _HALF, in_pieces=True),
    Fault("pin", BROKEN_OFF, ("history_is_whole",), _HALF, in_pieces=True),
    Fault("delete", BROKEN_OFF, ("history_is_whole", "nothing_comes_back"), _HALF, in_pieces=True),
    Fault("undo", BROKEN_OFF, ("history_is_whole",), _HALF, in_pieces=True),
    Fault(
        "edit", ("worker",), ("nothing_comes_back", "undo_stops_at_an_erase"),
        "an edit between the read and the write of a correcting update leaves both, the edited fact and the correction",
    ),
    Fault(
        "add", BROKEN_OFF,
        ("nothing_above_the_cap", "nothing_comes_back", "history_is_whole", "undo_stops_at_an_erase"),
        "a batch that was written half holds the new fact without the eviction that it needs: one fact too many until "
        "something is learned", in_pieces=True,
    ),
    Fault(
        "pin", ("edit",), AS_IN_ORDER,
        "of two edits by hand of one fact at once, the one that read first and wrote last takes the other back",
    ),
    Fault("edit", ("edit",), ("history_is_whole",), "as `pin`: history has no row of the edit that was written over"),
    Fault(
        "learn", ("edit",), ("confirmed_and_pinned_as_often_as_said",),
        "what is added by hand while an update learns the same is not counted as said twice",
    ),
    Fault(
        "erase source", ("edit",), ("history_is_whole", "erased_words_are_nowhere"),
        "an edit of a fact while its source is taken back leaves what the fact said in history",
    ),
    Fault(
        "erase fact", (*BROKEN_OFF, "hang"), ("nothing_comes_back", "undo_stops_at_an_erase", "erased_words"),
        "an erase that breaks off after the fact is gone is answered 404 when it is asked for again: journal, profile "
        "and pending updates keep the words",
    ),
    Fault(
        "erase fact", ("worker",), ("nothing_comes_back", "erased_words"),
        "an update that writes its journal lines after the erase has looked at the journal keeps them",
    ),
    Fault(
        "erase thread", ("edit",), ("history_is_whole", "erased_words_are_nowhere"),
        "an edit of a fact while its thread is erased leaves what the fact said in history",
    ),
)  # fmt: skip
