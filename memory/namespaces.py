"""Every store namespace and key, and whose it is. Pure, and the only place that builds one."""

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Self

from memory.text import digest

ROOT = "palimpsest"
DUE = ("palimpsest-due",)
"""Where it stands which owners have something pending, and when it is due, by their `due_key`."""
THREADS_ROOT = "palimpsest-threads"
DELETIONS = (THREADS_ROOT, "deletions")
"""Where requests to delete a thread are recorded until they are carried out."""
ERASED_ROOT = "palimpsest-erased"
ERASED_SHARD_DIGITS = 2
"""So many hex digits of a thread's digest name its shard: erasing reads one shard whole, to drop what is old."""
PROBE = ("palimpsest-probe",)
"""Where nothing stands: what asks a store whether it answers reads here, and deletes what is not there."""

Kind = Literal[
    "facts", "confirmations", "history", "profile", "journal", "outbox", "seen", "receipts", "vectors", "sources"
]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SEGMENT = re.compile(r"u_[0-9a-f]{32}")
_IMPORTED = re.compile(r"import:[A-Za-z0-9_-]{1,64}:[0-9a-f]{32}(?=:|$)")


def user_segment(user_id: str) -> str:
    """Return the namespace label of one user: `u_` and the first 32 hex digits of SHA-256 of the identity.

    No label is a prefix of another, none holds a dot, and no text of a client becomes part of a namespace.

    Raises:
        ValueError: If the identity is empty or no string.
    """
    if not isinstance(user_id, str) or not user_id:
        raise ValueError(f"user_id must be a non-empty string, not {user_id!r}")
    return "u_" + hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def user_root(user_id: str) -> tuple[str, str]:
    """Return what every namespace of one user begins with, whatever the agent."""
    return (ROOT, user_segment(user_id))


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose memory it is: one user (as a segment, never the identity itself) and one agent."""

    segment: str
    agent_name: str = "default"

    def __post_init__(self) -> None:
        if not _SEGMENT.fullmatch(self.segment):
            raise ValueError(f"segment must be made by user_segment(), not {self.segment!r}")
        if not _NAME.fullmatch(self.agent_name):
            raise ValueError(f"agent_name must match {_NAME.pattern}, not {self.agent_name!r}")

    @classmethod
    def of(cls, user_id: str, agent_name: str = "default") -> Self:
        """Return the owner for an authenticated identity; `ValueError` names the field that is wrong."""
        return cls(user_segment(user_id), agent_name)

    def namespace(self, kind: Kind) -> tuple[str, ...]:
        """Return where this owner's items of one kind live."""
        return (ROOT, self.segment, self.agent_name, kind)

    @property
    def control(self) -> tuple[str, ...]:
        """Where the user's epoch and switches live; shared by all agents of the user."""
        return (ROOT, self.segment, "control")

    @property
    def due_key(self) -> str:
        """The key of this owner's due marker: segment and agent, no text."""
        return f"{self.segment}.{self.agent_name}"

    @classmethod
    def from_due_key(cls, key: str) -> Self | None:
        """Return the owner that a due marker names; `None` if the key names none."""
        segment, _, agent_name = key.partition(".")
        with suppress(ValueError):
            return cls(segment, agent_name)
        return None


def owner_of(namespace: tuple[str, ...] | list[str]) -> Owner | None:
    """Return the owner of a namespace made by `Owner.namespace`, or `None` for any other."""
    is_owners = len(namespace) == 4 and namespace[0] == ROOT
    return Owner.from_due_key(".".join(namespace[1:3])) if is_owners else None


def vectors_of(namespace: tuple[str, ...], key: str) -> tuple[tuple[str, ...], str] | None:
    """Return where the vectors of an item stand: of a fact or a journal entry; of other items there are none."""
    if len(namespace) != 4 or namespace[0] != ROOT or namespace[3] not in ("facts", "journal"):
        return None
    return (*namespace[:3], "vectors"), vectors_key(namespace[3], key)


def vectors_key(kind: str, key: str) -> str:
    """Return the key of the vectors of a fact (`facts`) or a journal entry (`journal`)."""
    return f"{kind}.{key}"


def checked_source(source: str) -> str:
    """Return the name of what was imported together; `ValueError` if it cannot be one."""
    if not isinstance(source, str) or not _NAME.fullmatch(source):
        raise ValueError(f"source must be 1 to 64 letters, digits, _ or -, not {source!r}")
    return source


def source_unit(owner: Owner, source: str) -> str:
    """Return what the ids of all threads begin with that an owner imported together, and are erased together."""
    # Other users may name their imports alike, and what is noted of threads is noted for all users in one place.
    return f"import:{checked_source(source)}:{digest(owner.due_key)[:32]}"


def imported_thread(unit: str, conversation: str) -> str:
    """Return the id under which memory knows an imported conversation as a thread; the conversation's own is hashed."""
    return f"{unit}:{_thread_digest(conversation)}"


def unit_of(thread_id: str) -> str:
    """Return what a thread is erased with: all that was imported with it (`source_unit`), or only itself."""
    found = _IMPORTED.match(thread_id)
    return found[0] if found else thread_id


def is_imported(thread_id: str) -> bool:
    """Say whether memory knows a thread from an import; no server has one of such an id."""
    return _IMPORTED.match(thread_id) is not None


def thread_namespace(thread_id: str) -> tuple[str, ...]:
    """Return where it is noted whose memory a thread fed, an empty item an owner (`due_key`); the id is not in it."""
    return (THREADS_ROOT, _thread_digest(thread_id))


def deletion_key(thread_id: str, request: str) -> str:
    """Return the key of one request to delete a thread."""
    return f"{_thread_digest(thread_id)}.{request}"


def erased_threads_namespace(thread_id: str) -> tuple[str, ...]:
    """Return the shard in which it is noted that a thread was erased."""
    return (ERASED_ROOT, _thread_digest(unit_of(thread_id))[:ERASED_SHARD_DIGITS])


def erased_thread_key(thread_id: str) -> str:
    """Return the key of an erased thread in its shard; the id is not in it. What was imported together has one."""
    return _thread_digest(unit_of(thread_id))


def _thread_digest(thread_id: str) -> str:
    return digest(thread_id)[:32]
