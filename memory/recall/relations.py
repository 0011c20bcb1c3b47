"""How documents stand to each other, and what share of its neighbours' scores each of them gets. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Self

# Chosen on some conversations, and checked on others (`make bench-quality`); results change little around them.
# A question and its answer are found together, a fact through what it was taken from, and the other way round.
_NEXT_TO: Final = 0.4
# Among people a second message often goes on with what was said before the first; an assistant's reply ends that.
_TWO_AWAY: Final = 0.15
_FROM_TURN: Final = 0.6
_FROM_FACT: Final = 0.2
_SAME_SESSION: Final = 0.1
# A long answer has all the words of its question; what the user said themselves tells more about them.
_REPLY: Final = 0.5
_GAP: Final = -1


class Relations(NamedTuple):
    """Documents by their numbers.

    Attributes:
        turns: All turns, session by session in their order, with a gap before, between and behind the sessions.
        people: The same with a gap for each reply, and one more at either end.
        links: Facts with the turns that they were taken from.
        sessions: The facts, and the turns, of each session.
        replies: What the assistant said.
        session_of: Of each document, the number of its session, facts and turns together; 0 has none.
        lengths: How many words each session has.
    """

    turns: list[int]
    people: list[int]
    links: list[tuple[int, list[int]]]
    sessions: list[list[int]]
    replies: list[int]
    session_of: list[int]
    lengths: list[int]

    @classmethod
    def of(
        cls,
        sessions: Iterable[tuple[str, list[int]]],
        links: list[tuple[int, list[int]]],
        replies: list[int],
        session_of: list[int],
        lengths: list[int],
    ) -> Self:
        """Return what follows from the sessions of each kind (`fact` or `turn`), in their order."""
        turns, rows = [_GAP], []
        for kind, row in sessions:
            rows.append(row)
            if kind == "turn":
                turns += [*row, _GAP]
        said = set(replies)
        people = [_GAP, *(_GAP if number in said else number for number in turns), _GAP]
        return cls(turns, people, links, rows, replies, session_of, lengths)

    def shared(self, own: Sequence[float]) -> list[float]:
        """Return the scores of all documents, by number, each with a share of those that belong to it."""
        scores = [*own, 0.0]  # the last one stands for the gaps
        self._add_neighbours(scores)
        self._add_sources(scores, own)
        for numbers in self.sessions:
            share = _SAME_SESSION * max([scores[number] for number in numbers])
            if share:
                for number in numbers:
                    scores[number] += share
        for number in self.replies:
            scores[number] *= _REPLY
        return scores[:-1]

    def _add_neighbours(self, scores: list[float]) -> None:
        people = self.people
        far = [scores[number] for number in people]
        row = [scores[number] for number in self.turns]
        for number, before, after in zip(self.turns[1:-1], row[:-2], row[2:], strict=True):
            if before or after:
                scores[number] += _NEXT_TO * (before if before > after else after)
        for number, last, following, before, after in zip(
            people[2:-2], people[1:-3], people[3:-1], far[:-4], far[4:], strict=True
        ):
            if number != _GAP and (before or after):
                scores[number] += _TWO_AWAY * max(before if last != _GAP else 0.0, after if following != _GAP else 0.0)

    def _add_sources(self, scores: list[float], own: Sequence[float]) -> None:
        lent: dict[int, float] = {}
        near = list(scores)
        for number, sources in self.links:
            scores[number] += _FROM_TURN * max(near[each] for each in sources)
            for each in sources:
                lent[each] = max(lent.get(each, 0.0), own[number])
        for number, score in lent.items():
            scores[number] += _FROM_FACT * score
