"""Which extractions were applied last, so that one that is applied again after a crash changes nothing.

The rules alone give that while there is room; at the limit a fact that was evicted would come back.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from langgraph.store.base import Op

from memory.control import belongs
from memory.core.changes import REASONS, Applied, Extraction, Refusal, one_of
from memory.core.shelf import APPLIED
from memory.namespaces import Owner
from memory.storage import Steps, put, read
from memory.text import digest

KEPT: Final = 32


def extraction_mark(extraction: Extraction, thread_id: str) -> str:
    """Return what an extraction is recognized by: a digest, no text."""
    return digest("applied", thread_id, json.dumps(extraction.to_json(), sort_keys=True))[:32]


Done = list[list[Any]]
"""`[mark, what applying it did]` of each extraction that was applied lately, oldest first."""


def done_before(done: Done, mark: str) -> Applied | None:
    """Return what applying this extraction did, or `None` if it was not applied lately."""
    return next((_applied(value) for each, value in done if each == mark and isinstance(value, Mapping)), None)


def note_done(owner: Owner, epoch: str, done: Done, mark: str, applied: Applied) -> Op:
    """Return the write that notes what applying this did, in ids and reasons; the newest 32 are kept."""
    value = {
        "created": list(applied.created),
        "confirmed": list(applied.confirmed),
        "superseded": list(applied.superseded),
        "refused": [refusal.reason for refusal in applied.refused],
    }
    kept = [*(each for each in done if each[0] != mark), [mark, value]][-KEPT:]
    return put(owner.namespace("history"), APPLIED, {"epoch": epoch, "done": kept})


def read_done(owner: Owner, epoch: str) -> Steps[Done]:
    """Read which extractions were applied lately."""
    item = yield from read(owner.namespace("history"), APPLIED)
    done = item.value.get("done") if item and belongs(item.value, epoch) else None
    return [each for each in done if isinstance(each, list) and len(each) == 2] if isinstance(done, list) else []


def _applied(value: Mapping[str, Any]) -> Applied:
    return Applied(
        created=tuple(value["created"]),
        confirmed=tuple(value["confirmed"]),
        superseded=tuple(value["superseded"]),
        refused=tuple(Refusal(reason=one_of(REASONS, reason)) for reason in value["refused"]),
    )
