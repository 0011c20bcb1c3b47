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
    "edit": {"kill": (at(2, 3),), "fail once": (at(6, 7),), "fail on": (at(3, 4),)},
    "pin": {"kill": (at(2),), "fail once": (at(5),), "fail on": (at(3),)},
    "undo": {"kill": (at(2),), "fail once": (at(5),), "fail on": (at(3),)},
    "delete": {"kill": (at(3),), "fail once": (at(6),), "fail on": (at(4),)},
    "add": {"kill": (at(1, 2),), "fail once": (at(4, 5),), "fail on": (at(2, 3),)},
}
_ERASED_IN_PART: Mapping[How, Places] = {
    "kill": (at(2, 3),),
    "fail once": (at(13, 14),),
    "fail on": (at(3, 4),),
}

FAULTS = (
    Fault("edit", _IN_PIECES["edit"], ("history_is_whole",), _HALF, in_pieces=True),
    Fault("pin", _IN_PIECES["pin"], ("history_is_whole",), _HALF, in_pieces=True),
    Fault("delete", _IN_PIECES["delete"], ("nothing_comes_back",), _HALF, in_pieces=True),
    Fault("undo", _IN_PIECES["undo"], ("history_is_whole",), _HALF, in_pieces=True),
    Fault(
        "add", _IN_PIECES["add"],
        ("nothing_above_the_cap", "nothing_comes_back", "history_is_whole", "undo_stops_at_an_erase"),
        "a batch that was written half holds the new fact without the eviction that it needs: one fact too many until "
        "something is learned", in_pieces=True,
    ),
    Fault(
        "erase fact", _ERASED_IN_PART, ("nothing_comes_back", "undo_stops_at_an_erase", "erased_words"),
        "an erase that breaks off after the fact is gone is answered 404 when it is asked for again: journal, profile "
        "and pending updates keep the words", in_pieces=True,
    ),
)  # fmt: skip
