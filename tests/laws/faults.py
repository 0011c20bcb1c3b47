"""Where today's memory breaks a law: each place is excused, and has to be struck here once it is mended."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.laws.interruptions import How

Places = tuple[range, ...]


def at(first: int, last: int = 0) -> range:
    return range(first, (last or first) + 1)


@dataclass(frozen=True)
class Fault:
    """One broken law.

    Attributes:
        operation: Of which operation.
        places: Under which interruptions, at which places: where a store writes a batch in pieces, and where it writes
            it whole, if those are others.
        laws: Names of the laws.
        why: What is wrong.
        in_pieces: Only where a store writes a batch in pieces.
    """

    operation: str
    places: Mapping[How, Places]
    laws: tuple[str, ...]
    why: str
    in_pieces: bool = False

    def is_of(self, operation: str, how: How, *, is_atomic: bool) -> bool:
        return operation == self.operation and how in self.places and not (is_atomic and self.in_pieces)

    def excuses(self, complaint: str, how: How, place: int, *, is_atomic: bool) -> bool:
        return complaint.startswith(self.laws) and place in self.places[how][-is_atomic]


_HALF = "a batch that was written half leaves a fact without the row of history that it needs, or with one too many"
_IN_PIECES: Mapping[str, Mapping[How, Places]] = {
    "fact": {"kill": (at(2),), "fail once": (at(6),), "fail on": (at(4),)},
    "undo": {"kill": (at(2),), "fail once": (at(7),), "fail on": (at(4),)},
    "delete": {"kill": (at(5),), "fail once": (at(12),), "fail on": (at(8),)},
    "add": {"kill": (at(1, 2),), "fail once": (at(3, 4),), "fail on": (at(2, 3),)},
}
_ERASED_IN_PART: Mapping[How, Places] = {
    "kill": (at(12, 30), at(6, 10)),
    "fail once": (at(35, 67), at(29, 47)),
    "fail on": (at(18, 41), at(12, 21)),
    "hang": (at(29, 47),),
}

AS_IN_ORDER = ("nothing_", "ids_are_kept", "confirmed_", "history_is_whole")
FAULTS = (
    Fault("edit", _IN_PIECES["fact"], ("history_is_whole",), _HALF, in_pieces=True),
    Fault("pin", _IN_PIECES["fact"], ("history_is_whole",), _HALF, in_pieces=True),
    Fault("delete", _IN_PIECES["delete"], ("history_is_whole", "nothing_comes_back"), _HALF, in_pieces=True),
    Fault("undo", _IN_PIECES["undo"], ("history_is_whole",), _HALF, in_pieces=True),
    Fault(
        "edit", {"worker": (at(4),)}, ("nothing_comes_back", "undo_stops_at_an_erase"),
        "an edit between the read and the write of a correcting update leaves both, the edited fact and the correction",
    ),
    Fault(
        "add", _IN_PIECES["add"],
        ("nothing_above_the_cap", "nothing_comes_back", "history_is_whole", "undo_stops_at_an_erase"),
        "a batch that was written half holds the new fact without the eviction that it needs: one fact too many until "
        "something is learned", in_pieces=True,
    ),
    Fault(
        "pin", {"edit": (at(4),)}, AS_IN_ORDER,
        "of two edits by hand of one fact at once, the one that read first and wrote last takes the other back",
    ),
    Fault(
        "edit", {"edit": (at(4),)}, ("history_is_whole",),
        "as `pin`: history has no row of the edit that was written over",
    ),
    Fault(
        "learn", {"edit": (at(8),)}, ("confirmed_and_pinned_as_often_as_said",),
        "what is added by hand while an update learns the same is not counted as said twice",
    ),
    Fault(
        "erase source", {"edit": (at(17, 21),)}, ("history_is_whole", "erased_words_are_nowhere"),
        "an edit of a fact while its source is taken back leaves what the fact said in history",
    ),
    Fault(
        "erase fact", _ERASED_IN_PART, ("nothing_comes_back", "undo_stops_at_an_erase", "erased_words"),
        "an erase that breaks off after the fact is gone is answered 404 when it is asked for again: journal, profile "
        "and pending updates keep the words",
    ),
    Fault(
        "erase fact", {"worker": (at(27),)}, ("nothing_comes_back", "erased_words"),
        "an update that writes its journal lines after the erase has looked at the journal keeps them",
    ),
    Fault(
        "erase thread", {"edit": (at(36, 40),)}, ("history_is_whole", "erased_words_are_nowhere"),
        "an edit of a fact while its thread is erased leaves what the fact said in history",
    ),
)  # fmt: skip
