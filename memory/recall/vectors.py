"""Vectors of what can be recalled: how they are kept, and which are close to a question. Pure.

numpy does the ranking where it is installed (5,500 vectors of 384 numbers take it 0.4 ms, Python itself 50 ms); without
it there is none, and recall goes by words alone.
"""

import functools
import importlib
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_CHUNK: Final = 1024
"""Rows that are widened at a time: so many stay in the processor's cache."""
_STEPS: Final = 127
"""Of a number of eight bits, to either side of zero."""


@dataclass(frozen=True, slots=True)
class QueryVector:
    """What an embedder makes of a question.

    Attributes:
        embedder: The embedder's name; only vectors of the same one can be compared.
        values: Of unit length.
    """

    embedder: str
    values: tuple[float, ...]

    @classmethod
    def of(cls, embedder: str, values: Sequence[float]) -> "QueryVector":
        """Return the vector at unit length; `ValueError` if it has no direction."""
        return cls(embedder, tuple(unit(values)))


@functools.cache
def can_rank() -> bool:
    """Say whether vectors can be ranked here: whether numpy is installed. The first call imports it, which blocks."""
    try:
        importlib.import_module("numpy")
    except ImportError:
        return False
    return True


def unit(values: Sequence[float]) -> list[float]:
    """Return the vector at unit length; `ValueError` if it is empty, zero, or not finite."""
    length = math.hypot(*values)
    if not 0 < length < math.inf:
        raise ValueError("a vector must have a length that is finite and not zero")
    return [value / length for value in values]


def packed(values: Sequence[float]) -> bytes:
    """Return a vector as it is kept: at unit length, two bytes a number (IEEE float16, the lowest first)."""
    return struct.pack(f"<{len(values)}e", *unit(values))


class VectorIndex:
    """The vectors of one owner's documents by id, all of one embedder, in a byte a number.

    It needs numpy (`can_rank`).

    Args:
        embedder: Whose vectors.
        vectors: As they are kept, by document id; at least one.

    Raises:
        ValueError: If the bytes of one are no vector, or one of another length than the first.
    """

    def __init__(self, embedder: str, vectors: Mapping[str, bytes]) -> None:
        self.embedder = embedder
        self._numpy: Any = importlib.import_module("numpy")
        self._ids = list(vectors)
        self._rows = {document_id: row for row, document_id in enumerate(self._ids)}
        width = len(vectors[self._ids[0]]) // 2
        if not width or any(len(vector) != 2 * width for vector in vectors.values()):
            raise ValueError(f"a vector must hold {width} numbers of two bytes, as the others do")
        values = self._numpy.frombuffer(b"".join(vectors.values()), "<f2").astype(self._numpy.float32)
        values = values.reshape(len(vectors), width)
        self._scales: Any = abs(values).max(axis=1) / _STEPS
        if not (self._numpy.isfinite(self._scales) & (self._scales > 0)).all():
            raise ValueError("a vector must have a length that is finite and not zero")
        self._steps: Any = self._numpy.rint(values / self._scales[:, None]).astype(self._numpy.int8)

    @property
    def size(self) -> int:
        """How many bytes its numbers take."""
        return int(self._steps.nbytes + self._scales.nbytes)

    def remove(self, document_ids: Iterable[str]) -> None:
        """Forget the vectors of these documents; an unknown id is no error."""
        for document_id in document_ids:
            row = self._rows.pop(document_id, None)
            if row is None:
                continue
            last = self._ids.pop()
            if last != document_id:
                self._ids[row], self._rows[last] = last, row
                self._steps[row], self._scales[row] = self._steps[len(self._ids)], self._scales[len(self._ids)]
            self._steps[len(self._ids)] = 0  # of an erased text nothing stays

    def similarity(self, query: QueryVector | None) -> dict[str, float] | None:
        """Return how close each document is to a question, from -1.0 to 1.0, by id.

        `None` where nothing can be told: no question's vector, one of another embedder, or no documents.
        """
        if query is None or query.embedder != self.embedder or not self._ids:
            return None
        asked = self._numpy.array(query.values, dtype=self._numpy.float32)
        if asked.size != self._steps.shape[1]:
            return None
        found = self._numpy.empty(len(self._ids), self._numpy.float32)
        for start in range(0, len(found), _CHUNK):
            end = min(start + _CHUNK, len(found))
            found[start:end] = self._steps[start:end].astype(self._numpy.float32) @ asked
        return dict(zip(self._ids, (found * self._scales[: len(found)]).tolist(), strict=True))
