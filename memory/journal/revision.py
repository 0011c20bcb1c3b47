"""The journal's revision: an item of the user's control that changes whenever the journal does.

A turn reads the user's control anyway, so what holds the journal in memory can tell there whether it is current.
"""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

from langgraph.store.base import GetOp, Item, PutOp

from memory.effects import StoreEffects, delete, put
from memory.forms import plain, read_as
from memory.namespaces import Owner

_KEPT: Final = 16
_MAX_KEYS: Final = 64
_PREFIX: Final = "journal."


@dataclass(frozen=True, slots=True)
class JournalRevision:
    """A random token, compared for equality, and what the newest changes before it wrote.

    Attributes:
        token: Empty for a journal that nobody ever wrote.
        changes: The newest 16, oldest first: the token before, the token after, and the keys of what was written or
            deleted.
    """

    token: str = ""
    changes: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    @classmethod
    def of_item(cls, item: Item | None) -> Self:
        """Return the revision that the item (`revision_get`) tells; a garbled one is none, and all is read again."""
        with suppress(KeyError, ValueError):
            if item:
                return read_as(cls, {**item.value, "token": item.value["revision"]})
        return cls()

    def changed(self, keys: Sequence[str]) -> Self:
        """Return the revision after one more change, which wrote or deleted the items of these keys.

        Of many keys it is told as several changes: each is as long as one may be.
        """
        now = self
        for start in range(0, len(keys), _MAX_KEYS):
            token = _token()
            change = (now.token, token, tuple(keys[start : start + _MAX_KEYS]))
            now = type(self)(token, (*now.changes, change)[-_KEPT:])
        return now

    def keys_since(self, token: str) -> frozenset[str] | None:
        """Return the keys of what was written or deleted since a revision; `None` if all has to be read again."""
        keys: set[str] = set()
        at = self.token
        for before, after, written in reversed(self.changes):
            if at == token:
                break
            if after != at:  # two writers at once: nobody can tell what the other one wrote
                return None
            keys.update(written)
            at = before
        return frozenset(keys) if at == token else None

    def write(self, owner: Owner) -> PutOp:
        """Return the write of the revision."""
        return put(owner.control, _key(owner), {"revision": self.token, "changes": plain(self)["changes"]})


def revision_get(owner: Owner) -> GetOp:
    """Return the read of the item that tells the revision (`JournalRevision.of_item`)."""
    return GetOp(owner.control, _key(owner), refresh_ttl=False)


def read_revision(owner: Owner) -> StoreEffects[JournalRevision]:
    """Read the journal's revision."""
    (item,) = yield [revision_get(owner)]
    return JournalRevision.of_item(item)


def revision_put(owner: Owner) -> PutOp:
    """Return the write of a revision that nobody knows how to get to: who holds the journal has to read all of it."""
    return JournalRevision(_token()).write(owner)


def revision_drop(owner: Owner) -> PutOp:
    """Return the write that drops the revision: the journal is gone."""
    return delete(owner.control, _key(owner))


def _key(owner: Owner) -> str:
    return _PREFIX + owner.agent_name  # a user's agents share their control


def _token() -> str:
    return uuid.uuid4().hex
