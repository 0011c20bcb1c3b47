"""Vectors of what can be recalled: how they are kept and made, off the turn, and which are close to a question.

numpy does the ranking where it is installed (5,500 vectors of 384 numbers take it 0.4 ms, Python itself 50 ms); without
it there is none, and recall goes by words alone.

An item of `vectors` has the key of its fact or journal entry, and holds the vectors of what an index has of its texts
(`memory.recall.documents`) by a digest of each: what was edited since has another digest, so that no vector is ever
taken for that of another text. It goes with its item (`memory.door.with_vectors`), whoever deletes that.
"""

import base64
import functools
import importlib
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

from langgraph.store.base import Item

from memory.control import read_rows, write_rows
from memory.door import scan, side_by_side, transaction
from memory.facts.fact import from_item
from memory.facts.rows import read_fact_set
from memory.forms import read_as
from memory.journal.entry import JournalEntry
from memory.namespaces import Owner, vectors_key
from memory.recall.documents import turn_documents
from memory.recall.past import read_past
from memory.text import digest

_CHUNK: Final = 1024
"""Rows that are widened at a time: so many stay in the processor's cache."""
_STEPS: Final = 127
"""Of a number of eight bits, to either side of zero."""
_LEAST_TEXTS: Final = 100
"""The mean of fewer is what these texts say."""
_LEAST_CLOSE: Final = 0.1
"""What is less close has nothing to do with a question, and takes time to rank."""
_NO_LENGTH: Final = 1e-6
_NO_DIRECTION: Final = "a vector must have a length that is finite and not zero"


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
        raise ValueError(_NO_DIRECTION)
    return [value / length for value in values]


def packed(values: Sequence[float]) -> bytes:
    """Return a vector as it is kept: at unit length, two bytes a number (IEEE float16, the lowest first)."""
    return struct.pack(f"<{len(values)}e", *unit(values))


class VectorIndex:
    """The vectors of one owner's documents by id, all of one embedder, in a byte a number.

    Without their mean: all texts of one user are alike to an embedder, and what they have in common says nothing about
    a question (Mu and Viswanath, "All-but-the-Top", 2018). It needs numpy (`can_rank`).

    Args:
        embedder: Whose vectors.
        vectors: As they are kept, by document id; at least one.

    Raises:
        ValueError: If the bytes of one are no vector, or one of another length than the first.
    """

    def __init__(self, embedder: str, vectors: Mapping[str, bytes]) -> None:
        numpy: Any = importlib.import_module("numpy")
        self.embedder = embedder
        self._rows = {document_id: row for row, document_id in enumerate(vectors)}
        width = len(next(iter(vectors.values()))) // 2
        if not width or any(len(vector) != 2 * width for vector in vectors.values()):
            raise ValueError(f"a vector must hold {width} numbers of two bytes, as the others do")
        values = numpy.frombuffer(b"".join(vectors.values()), "<f2").astype(numpy.float32).reshape(-1, width)
        lengths = numpy.linalg.norm(values, axis=1)
        if not (numpy.isfinite(lengths) & (lengths > 0)).all():
            raise ValueError(_NO_DIRECTION)
        self._mean: Any = values.sum(axis=0) / max(len(values), _LEAST_TEXTS)
        values -= self._mean
        # Texts that all say the same have nothing of their own.
        values /= numpy.maximum(numpy.linalg.norm(values, axis=1, keepdims=True), _NO_LENGTH)
        self._scales: Any = abs(values).max(axis=1) / _STEPS
        self._steps: Any = numpy.rint(values / numpy.maximum(self._scales[:, None], _NO_LENGTH)).astype(numpy.int8)

    @classmethod
    def of(cls, embedder: str, texts: Mapping[str, str], vectors: Mapping[str, bytes]) -> Self | None:
        """Return the vectors of texts by the names of these; `None` where there are none, or they cannot be ranked.

        Args:
            embedder: Whose vectors.
            texts: By names of the caller's.
            vectors: As they are kept, by `vector_key`; a text without one is left out.
        """
        keys = {name: vector_key(text) for name, text in texts.items()}
        found = {name: vectors[key] for name, key in keys.items() if key in vectors}
        return cls(embedder, found) if found and can_rank() else None

    @property
    def size(self) -> int:
        """How many bytes its numbers take."""
        return int(self._steps.nbytes + self._scales.nbytes)

    def remove(self, document_ids: Iterable[str]) -> None:
        """Forget the vectors of these documents; an unknown id is no error."""
        rows = [self._rows[document_id] for document_id in document_ids if document_id in self._rows]
        self._steps[rows] = 0  # of an erased text only its share of the mean stays, until these are read again

    def similarity(self, query: QueryVector | None) -> dict[str, float] | None:
        """Return how close to a question, beyond what all are, the documents are that are close at all, by id.

        `None` where nothing can be told: no question's vector, or one of another embedder.
        """
        wanted = (self.embedder, self._steps.shape[1])
        if query is None or (query.embedder, len(query.values)) != wanted:
            return None
        numpy: Any = importlib.import_module("numpy")
        asked = numpy.array(query.values, numpy.float32) - self._mean
        asked /= max(float(numpy.linalg.norm(asked)), _NO_LENGTH)
        starts = range(0, len(self._steps), _CHUNK)
        found = [self._steps[start : start + _CHUNK].astype(numpy.float32) @ asked for start in starts]
        cosines = numpy.concatenate(found) * self._scales
        rows, names = numpy.flatnonzero(cosines > _LEAST_CLOSE), [*self._rows]
        return {names[row]: close for row, close in zip(rows.tolist(), cosines[rows].tolist(), strict=True)}


_ITEMS_AT_ONCE: Final = 32
"""So many items are embedded and written in one go: what is there is kept when the process ends."""


def vector_key(text: str) -> str:
    """Return what the vector of a text is kept under; no text."""
    return digest("vector", text)[:24]


async def read_vectors(owner: Owner, embedder: str) -> dict[str, bytes]:
    """Read the vectors of one embedder, as they are kept, by `vector_key`; those of another length are left out."""
    found: dict[str, bytes] = {}
    for item in await read_rows(owner, "vectors"):
        found.update(_kept_in(item, embedder))
    length = len(next(iter(found.values()), b""))
    return {key: vector for key, vector in found.items() if len(vector) == length}


def _kept_in(item: Item, embedder: str) -> dict[str, bytes]:
    """Return the vectors that an item holds of an embedder, by `vector_key`; none where a hand garbled it."""
    kept = item.value.get("vectors")
    if item.value.get("embedder") != embedder or not isinstance(kept, Mapping):
        return {}
    try:
        found = {str(key): base64.b64decode(vector, validate=True) for key, vector in kept.items()}
    except (TypeError, ValueError):
        return {}
    return {key: vector for key, vector in found.items() if vector and len(vector) % 2 == 0}


_Texts = Mapping[tuple[str, str], Sequence[str]]
"""What an index has of items, by their kind and key."""


async def make_vectors(owner: Owner, embedder: str, embed: Callable[[Sequence[str]], Sequence[bytes]]) -> int:
    """Make the vectors that an owner's active facts and journal entries lack, drop those of nothing; return how many.

    What nothing may tell of is sent to no embedder: what a deleted fact came from, and what waits for the user's yes.

    Args:
        owner: Whose memory.
        embedder: The embedder's name; vectors of another one are made anew.
        embed: Returns the vectors of texts, as they are kept; it may block.
    """
    facts, stored = await side_by_side(read_fact_set(owner, is_light=True), scan(owner.namespace("vectors")))
    journal = await read_past(owner)
    texts: _Texts = {
        **{("facts", facts.key_of(fact.id)): (fact.content,) for fact in facts.active()},
        **{("journal", entry.key): _of_entry(entry) for entry in journal},
    }
    there = {item.key: _kept_in(item, embedder).keys() for item in stored}
    if orphans := there.keys() - {vectors_key(*name) for name in texts}:
        await _drop(owner, orphans)
    made = 0
    lacking = [name for name, said in texts.items() if there.get(vectors_key(*name)) != set(map(vector_key, said))]
    for start in range(0, len(lacking), _ITEMS_AT_ONCE):
        some = {name: texts[name] for name in lacking[start : start + _ITEMS_AT_ONCE]}
        wanted = list(dict.fromkeys(text for said in some.values() for text in said))
        vectors = dict(zip(wanted, embed(wanted), strict=True))
        await _write(owner, embedder, some, vectors)
        made += len(wanted)
    return made


@transaction
async def _drop(owner: Owner, keys: Iterable[str]) -> None:
    await write_rows(owner, "vectors", dict.fromkeys(keys))


@transaction
async def _write(owner: Owner, embedder: str, texts: _Texts, vectors: Mapping[str, bytes]) -> None:
    """Write the vectors of items, but of what was erased, or says something else, since they were read."""
    found = await side_by_side(
        read_rows(owner, "facts", [key for kind, key in texts if kind == "facts"]),
        read_rows(owner, "journal", [key for kind, key in texts if kind == "journal"]),
    )
    there = {(str(item.namespace[-1]), item.key): _indexed_of(item) for items in found for item in items}
    # As text, for not every store can keep bytes.
    kept = {text: (vector_key(text), base64.b64encode(vector).decode()) for text, vector in vectors.items()}
    rows = {
        vectors_key(*name): {"embedder": embedder, "vectors": dict(kept[text] for text in said)}
        for name, said in texts.items()
        # An entry may hold more than may be told of it.
        if set(said) <= set(there.get(name, ()))
    }
    await write_rows(owner, "vectors", rows)


def _indexed_of(item: Item) -> Sequence[str]:
    """Return what an index has of a fact or a journal entry; nothing where a hand garbled it meanwhile."""
    with suppress(ValueError):
        if item.namespace[-1] == "journal":
            return _of_entry(read_as(JournalEntry, item.value))
        return (from_item(item.value, created_at=item.created_at.isoformat()).content,)
    return ()


def _of_entry(entry: JournalEntry) -> Sequence[str]:
    return tuple(document.text for document in turn_documents(entry))
