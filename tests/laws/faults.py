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

FAULTS = (
    Fault("edit", BROKEN_OFF, ("history_is_whole",), _HALF, in_pieces=True),
    Fault("pin", BROKEN_OFF, ("history_is_whole",), _HALF, in_pieces=True),
    Fault("delete", BROKEN_OFF, ("history_is_whole",), _HALF, in_pieces=True),
    Fault("undo", BROKEN_OFF, ("history_is_whole",), _HALF, in_pieces=True),
    Fault(
        "edit", ("worker",), ("nothing_comes_back", "undo_stops_at_an_erase"),
        "an edit between the read and the write of a correcting update leaves both, the edited fact and the correction",
    ),
    Fault(
        "erase fact", (*BROKEN_OFF, "hang"), ("nothing_comes_back",),
        "an erase that breaks off after the fact is gone is answered 404 when it is asked for again: journal, profile "
        "and pending updates keep the words",
    ),
    Fault(
        "erase fact", ("worker",), ("nothing_comes_back",),
        "an update that writes its journal lines after the erase has looked at the journal keeps them",
    ),
    Fault(
        "erase thread", BROKEN_OFF, ("confirmed_and_pinned_as_often_as_said",),
        "a confirmation that outlives its fact is counted for the next fact that says the same", in_pieces=True,
    ),
    Fault(
        "erase thread", ("edit",), ("history_is_whole", "erased_words_are_nowhere"),
        "an edit of a fact while its thread is erased leaves what the fact said in history",
    ),
)  # fmt: skip
