"""A user's control: the epoch, counts of edits and erases, switches, time zones. One item of the store, read at once.

The epoch is a random token compared for equality. Every row of a user carries the epoch it was written under, and rows
of other epochs do not count: `write_rows` and `read_rows` see to that, so that nobody else has to know.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Annotated, Any, Final

from langgraph.store.base import Item, Op
from pydantic import Field

from memory.config import Approval, ZoneName, zone_named
from memory.door import StoreEffects, ask, delete, put, read, read_many, scan, side_by_side, transaction
from memory.forms import of_item, plain
from memory.namespaces import Kind, Owner
from memory.screening.values import NO_SECRETS, SecretValues

INITIAL_EPOCH: Final = "initial"
INITIAL_EDIT: Final = 1
"""The number of a user who never changed anything by hand."""
_KEY: Final = "control"


@dataclass(frozen=True, slots=True)
class Control:
    """What holds for a user, for all agents. A garbled field has its default.

    Attributes:
        epoch: That of the rows that count; the initial one until everything is erased.
        epoch_at: When it began, seconds since 1970; 0 if it is the initial one.
        edit: The number of the newest change by hand. What is said from now on is written down with it, so nobody
            compares two processes' clocks.
        erased: How often facts were erased.
        erased_at: When an agent's facts were erased last, ISO 8601. No undo reaches behind it.
        learning: Whether memory learns.
        learning_at: When that was chosen, seconds since 1970; 0 if never.
        use: Whether memory is shown to models. Learning has a switch of its own.
        approval: About what the user is asked before it is used.
        secrets: What secrets that the user told are recognized by.
        time_zone: Which one the user set.
        assistants_time_zone: That of the assistant they talked to last.
    """

    epoch: Annotated[str, Field(min_length=1)] = INITIAL_EPOCH
    epoch_at: float = 0.0
    edit: Annotated[int, Field(ge=1)] = INITIAL_EDIT
    erased: int = 0
    erased_at: Mapping[str, str] = field(default_factory=dict)
    learning: bool = True
    learning_at: float = 0.0
    use: bool = True
    approval: Approval = "off"
    secrets: SecretValues = NO_SECRETS
    time_zone: ZoneName | None = None
    assistants_time_zone: ZoneName | None = None

    def put(self, owner: Owner) -> Op:
        """Return the write of it."""
        return put(owner.control, _KEY, plain(self))

    @property
    def zone(self) -> tzinfo | None:
        """The time zone that the user set, else the assistant's; `None` where nobody knows."""
        name = self.time_zone or self.assistants_time_zone
        return zone_named(name) if name else None


async def read_control(owner: Owner) -> Control:
    """Read the user's control."""
    return of_item(Control, await read(owner.control, _KEY))


@transaction
async def change_control(owner: Owner, **changes: Any) -> Control:
    """Give fields of the user's control new values, and return it."""
    control = replace(await read_control(owner), **changes)
    await ask(control.put(owner))
    return control


async def count_edit(owner: Owner) -> int:
    """Count a change that a person makes by hand, as a part of it, and return its number."""
    edit = (await read_control(owner)).edit + 1
    return (await change_control(owner, edit=edit)).edit


async def read_rows(
    owner: Owner, kind: Kind, keys: Collection[str] | None = None, *, where: Mapping[str, str] | None = None
) -> list[Item]:
    """Read an owner's rows of one kind that count, all or those of these keys, in their order.

    A row that a hand added has no epoch, and counts.

    Args:
        owner: Whose.
        kind: Which kind.
        keys: Which ones; `None` reads all, sorted by key.
        where: What fields of all of them have to be; by default anything.
    """
    place = owner.namespace(kind)
    if keys is not None and not keys:
        return []
    found: StoreEffects[Any] = scan(place, where=where) if keys is None else read_many(place, [*keys])
    control, items = await side_by_side(read(owner.control, _KEY), found)
    epoch = of_item(Control, control).epoch
    return [item for item in items if item and item.value.get("epoch", epoch) == epoch]


async def write_rows(owner: Owner, kind: Kind, rows: Mapping[str, Mapping[str, object] | None]) -> None:
    """Write an owner's rows by their keys, as a part of what a caller writes; `None` deletes one."""
    if rows:
        place, epoch = owner.namespace(kind), (await read_control(owner)).epoch
        await ask(
            *[put(place, key, {**row, "epoch": epoch}) if row else delete(place, key) for key, row in rows.items()]
        )
