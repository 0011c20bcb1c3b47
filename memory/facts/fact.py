"""What a fact is: the value, what may be in it, how its key and id are made, and its form as a store item. Pure."""

import re
import uuid
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import count
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict, TypeAdapter, ValidationError

from memory.config import Category, Topic
from memory.forms import plain, read_as
from memory.message import day_of
from memory.screening.door import may_be_shown, screened
from memory.text import digest, normalize, sanitize

Status = Literal["active", "quarantined", "waiting", "superseded", "ended", "evicted"]
Why = Literal["", "secret", "order", "number"]
Held = Literal[Why, "approval"]
Source = Literal["conversation", "library", "page", "api", "cli"]

HISTORY: Final[frozenset[Status]] = frozenset({"superseded", "ended", "evicted"})
# Nothing uses these until a person has looked at them: what reads as an order, may hold a secret, or waits for a yes.
HELD: Final[frozenset[Status]] = frozenset({"quarantined", "waiting"})
# What a person wrote by hand is evicted last.
BY_HAND: Final[frozenset[Source]] = frozenset({"page", "api", "cli"})
MAX_CONTENT_CHARS: Final = 10_000

DAY_SECONDS: Final = 86_400.0
# A time's offset and the user's zone are at most a day each.
_FARTHEST_ZONES: Final = timedelta(days=2)
_PERIOD = re.compile(r"\d{4}(?:-\d\d){0,2}", re.ASCII)
# The last place on earth where a day ends is twelve hours behind UTC.
_LAST_ZONE_SECONDS: Final = 12 * 3600.0
_FACT_ID = re.compile("fact_[0-9a-f]{8}")
_IDS = uuid.uuid5(uuid.NAMESPACE_URL, "https://palimpsest.invalid/fact")


class FactNotFound(KeyError):
    """No fact has this id (`fact_id`), or none with it has the status asked for."""

    def __init__(self, fact_id: str) -> None:
        super().__init__(fact_id)
        self.fact_id = fact_id

    def __str__(self) -> str:
        return f"no fact has the id {self.fact_id!r}"


class DuplicateFact(ValueError):
    """Another fact already says what this one was to say; `fact_id` tells which."""

    def __init__(self, fact_id: str) -> None:
        super().__init__(f"content: {fact_id} already says this; delete one of them instead")
        self.fact_id = fact_id


class FactChanged(ValueError):
    """Somebody changed the fact after the caller had read it; `fact` is what is there now."""

    def __init__(self, fact: "Fact") -> None:
        super().__init__(f"revision: {fact.id} was changed meanwhile, it is {fact.revision} now")
        self.fact = fact


class MemoryFull(ValueError):
    """Every fact that is there is protected, so the new one was refused; `max_facts` tells the limit."""

    def __init__(self, max_facts: int) -> None:
        super().__init__(
            f"memory is full: all {max_facts} facts are protected; delete or unpin one, or raise max_facts"
        )
        self.max_facts = max_facts


def checked_content(value: object, max_chars: int = MAX_CONTENT_CHARS) -> str:
    """Return sanitized content; `ValueError` naming the field if nothing is left or it is too long."""
    if not isinstance(value, str):
        raise ValueError(f"content must be a string, not {type(value).__name__}")
    content = sanitize(value).strip()
    if len(content) > max_chars:
        raise ValueError(f"content must have at most {max_chars} characters, not {len(content)}")
    if not (content.isascii() and content[:1].isalnum()) and not normalize(content):  # the first is faster
        raise ValueError("content must say something, not only white space or punctuation")
    return content


def checked(**given: Any) -> dict[str, Any]:
    """Return the values of a fact's fields as they are stored; `ValueError` naming a field and what it must be."""
    try:
        fact = _ADAPTER.validate_python({"content": "said", "category": "context", "confidence": 1.0, **given})
    except ValidationError as error:
        wrong = error.errors(include_context=False, include_input=False, include_url=False)[0]
        name, why = str(wrong["loc"][0]), wrong["msg"].replace("Input should", "must")
        raise ValueError(f"{name} {why.removeprefix(f'Value error, {name} ')}") from None
    return {name: getattr(fact, name) for name in given}


def known_day(time: str, zone: tzinfo | None) -> str:
    """Return the day of a time in a zone, or in UTC; empty for a text that is no time."""
    return day_of(time, zone) if moment(time) else ""


def period_end(text: str) -> date | None:
    """Return the last day of `2026-05-08`, `2026-05` or `2026`; `None` for any other text."""
    try:
        if not _PERIOD.fullmatch(text):
            return None
        year, *rest = map(int, text.split("-"))
        month = rest[0] if rest else 12
        return date(year, month, rest[1] if len(rest) == 2 else monthrange(year, month)[1])
    except ValueError:
        return None


def checked_period(value: object) -> str:
    """Return a day, month or year of ISO 8601; empty for anything else."""
    return value if isinstance(value, str) and period_end(value) is not None else ""


@lru_cache(4096)
def moment(text: str) -> datetime | None:
    """Return the time that ISO 8601 text names, UTC where it has no offset; `None` for any other text.

    A time at the very ends of the calendar is none: some zones have no day for it.
    """
    try:
        moment = datetime.fromisoformat(text)
        _ = moment - _FARTHEST_ZONES, moment + _FARTHEST_ZONES
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _checked_time(text: str) -> str:
    if text and moment(text) is None:
        raise ValueError("it must be a time of ISO 8601")
    return text


_Id = Annotated[str, Field(pattern=f"^({_FACT_ID.pattern})?$")]
Time = Annotated[str, AfterValidator(_checked_time)]
_Period = Annotated[str, BeforeValidator(checked_period)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that is known about a user.

    Attributes:
        id: `fact_` and 8 hex digits; the same for life, also when the content is edited.
        content: One statement, sanitized.
        category: One of `memory.config.CATEGORIES`.
        confidence: From 0.0 to 1.0.
        created_at: ISO 8601 in UTC; never changes.
        updated_at: ISO 8601 in UTC of the newest revision.
        source: Who wrote it: a conversation (extracted), the library, the page, the API or the command line.
        status: `active` ones are injected; `quarantined` ones read as an order, may hold a secret, or have a number
            that nobody said, and wait for review; `waiting` ones wait for a person's yes; the others are history:
            `superseded` by another one, `ended`, or `evicted` at the limit.
        pinned: `True` if a person asked that it be kept.
        revision: Counts the edits, from 1.
        thread_id: The thread it was said in; empty if it was not extracted.
        message_ids: The user's messages it was taken from.
        replaced_by: Id of the fact that superseded it.
        ended_by: Id of the imported conversation that ended it; empty for any other.
        edited_at: ISO 8601 in UTC of the newest change by hand; empty if there was none.
        edit: The number of that change (`memory.control`).
        reviewed: The digest of the content that a person released from quarantine; empty if none did.
        valid_from: From when it holds, ISO 8601, as exact as its text says: `2026-05-08`, `2026-05` or `2026`; empty
            where it does not.
        valid_to: Until when, that day, month or year included; then it is history, and no prompt shows it as current.
        topic: What the model marked it as, where it had to wait for a person's yes; else empty.
        why: Why it was quarantined as it was learned; a release empties it. Empty: its words tell why.
        replaces: Id of the fact that it corrected, or, where it waits, whose place it takes once a person says yes.
    """

    id: _Id = ""
    content: Annotated[str, BeforeValidator(checked_content)]
    category: Category
    confidence: Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
    created_at: Annotated[Time, Field(alias="createdAt")] = ""
    updated_at: Annotated[Time, Field(alias="updatedAt")] = ""
    source: Source = "library"
    status: Status = "active"
    pinned: Annotated[bool, Strict()] = False
    revision: Annotated[int, Field(strict=True, ge=1)] = 1
    thread_id: str = ""
    message_ids: tuple[str, ...] = ()
    replaced_by: str = ""
    ended_by: Annotated[str, Field(alias="endedBy")] = ""
    edited_at: Annotated[Time, Field(alias="editedAt")] = field(default="", compare=False)
    edit: int = field(default=0, compare=False)
    reviewed: str = ""
    valid_from: Annotated[_Period, Field(alias="validFrom")] = ""
    valid_to: Annotated[_Period, Field(alias="validTo")] = ""
    topic: Topic | Literal[""] = ""
    why: Why = ""
    replaces: _Id = ""

    @property
    def held(self) -> Held:
        """Why it waits for a person; empty where it does not."""
        if self.status not in HELD:
            return ""
        if self.status == "waiting":
            return "approval"
        return self.why or ("order" if screened(self.content) == "instruction_like" else "secret")


_ADAPTER: Final = TypeAdapter(Fact)


def is_over(fact: Fact, now: float) -> bool:
    """Say whether a fact holds no longer: the day until which it holds has ended everywhere on earth.

    Args:
        fact: Any fact; one without an end is never over.
        now: Seconds since 1970.
    """
    last = period_end(fact.valid_to)
    return last is not None and datetime.fromtimestamp(now - _LAST_ZONE_SECONDS, UTC).date() > last


def may_be_used(fact: Fact) -> bool:
    """Say whether a prompt may show what a fact says, or a person has released these very words."""
    return may_be_shown(fact.content) or (
        fact.reviewed == review_digest(fact.content) and may_be_shown(fact.content, is_released=True)
    )


def review_digest(content: str) -> str:
    """Return the digest that a release stores: words that a hand writes later in their place are not released by it."""
    return digest("reviewed", content)[:32]


def strongest_first(facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts sorted by confidence, highest first; of equal ones the newer first, then by id."""
    return sorted(facts, key=lambda fact: (fact.confidence, fact.updated_at, fact.id), reverse=True)


def is_protected(fact: Fact, categories: frozenset[Category] = frozenset()) -> bool:
    """Say whether an eviction spares the fact: pinned, written by hand, or of a protected category."""
    return fact.pinned or fact.source in BY_HAND or fact.category in categories


def is_fact_id(value: object) -> bool:
    """Say whether a value has the form of a fact's id."""
    return isinstance(value, str) and _FACT_ID.fullmatch(value) is not None


def fact_ids(salt: str, content: str) -> Iterator[str]:
    """Yield the ids that a fact of this content may get, in the order they are tried; the salt names the owner."""
    said = normalize(content)
    for n in count():
        yield f"fact_{uuid.uuid5(_IDS, digest(salt, said, str(n))).hex[:8]}"


SCHEMA: Final = 1
_NEEDED: Final = ("content", "category", "confidence", "status", "source")


def to_item(fact: Fact) -> dict[str, object]:
    """Return the JSON form of a fact that the store keeps; an empty text, or no edit, says nothing, and is left out."""
    item = plain(fact)
    said = {name: value for name, value in item.items() if value != "" and (name, value) != ("edit", 0)}
    return {**said, "schema": SCHEMA}


def from_item(value: Mapping[str, object], *, created_at: str) -> Fact:
    """Return the fact of a store item, also of one that a person edited or added by hand.

    Content, category and confidence must be there and valid; what else is missing is filled in. An item without a
    source was written by hand.

    Args:
        value: The item's value.
        created_at: The creation time (ISO 8601) of an item that has none.

    Raises:
        ValueError: If it cannot be read as a fact; the message names the field.
    """
    fact = read_as(Fact, {"source": min(BY_HAND), **value}, _NEEDED)
    if fact.created_at and fact.updated_at:
        return fact
    created_at = fact.created_at or created_at
    return replace(fact, created_at=created_at, updated_at=fact.updated_at or created_at)


def checked_expiry(value: object) -> str:
    """Return the day, month or year until which a fact holds, that included; empty is no end.

    Raises:
        ValueError: If it is none; the message names the field.
    """
    if value == "" or checked_period(value):
        return str(value)
    raise ValueError(
        f"expires_at must be a day (2026-05-08), a month (2026-05) or a year (2026), or empty, not {value!r}"
    )
