"""What one extraction found and what applying it did: frozen values that survive the way through JSON."""

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Final, Literal, get_args

from memory.config import Category, Topic
from memory.facts.fact import moment

Action = Literal["new", "confirms", "corrects", "ends"]
Reason = Literal[
    "low_confidence",
    "unknown_category",
    "bad_confidence",
    "empty",
    "too_long",
    "duplicate",
    "instruction_like",
    "secret",
    "suspected",  # it may hold a secret, or was said together with one: it waits for review
    "malformed",  # no object with a fact in it
    "not_said",  # taken from no new message of the user, or from words that do not stand in it
    "unfounded",  # with a number or a date that nobody said: it waits for review
    "placeholder",  # a blank where a name should be
    "small_talk",  # thanks or a greeting
    "too_many",  # beyond what one answer may bring
    "full",  # all that is there is protected
    "forgotten",  # said before the user deleted it, or changed what it says
    "edited",  # said before the user changed by hand what it is about
    "older",  # said, in an imported conversation, before what it would change
    "protected",  # only a person may end it
    "stale",  # the user erased their memory meanwhile
]

REASONS: Final[tuple[Reason, ...]] = get_args(Reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing to do to the facts.

    Attributes:
        action: Add a `new` fact; note that one was said again (`confirms`); replace one (`corrects`); end one.
        content: What the fact says; empty where only the target matters.
        category: Its category.
        confidence: From 0.0 to 1.0.
        target: Id of the existing fact; `None` for a new one.
        sources: Ids of the user's messages it was taken from.
        said_at: When the newest of them was said, ISO 8601.
        said_after: The number of the user's newest edit by hand then (`memory.control`); 0 if unknown.
        target_revision: The revision of the existing fact that the model was shown; 0 if unknown.
        valid_from: From when what it says holds (`Fact`).
        valid_to: Until when.
        topic: What the model marked it with; empty if it marked nothing, which counts as sensitive.
    """

    action: Action = "new"
    content: str = ""
    category: Category = "context"
    confidence: float = 1.0
    target: str | None = None
    sources: tuple[str, ...] = ()
    said_at: str = ""
    said_after: int = 0
    target_revision: int = 0
    valid_from: str = ""
    valid_to: str = ""
    topic: Topic | Literal[""] = ""

    def refused(self, reason: Reason) -> "Refusal":
        """Return the refusal of this change."""
        return Refusal(reason=reason, **{each.name: getattr(self, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal(Change):
    """One thing that was not stored, and why. The content is for review, never for a log."""

    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of the profile that changed.

    Attributes:
        name: As `user.work`.
        text: Its new text.
        said_at: When the newest message that it was made from was said, ISO 8601.
        said_after: The number of the user's newest edit by hand then (`memory.control`); 0 if unknown.
    """

    name: str
    text: str
    said_at: str = field(default="", compare=False)
    said_after: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What one model call found: changes to make, sections that changed, and what was refused, each with a reason.

    Attributes:
        harmless: Ids of the user's messages that the model read, and found nothing sensitive in.
        secrets: Values of secrets that were told.
        orders: Ids of the user's messages that are orders to an assistant: what rests on them waits.
    """

    changes: tuple[Change, ...] = ()
    refused: tuple[Refusal, ...] = ()
    profile: tuple[Section, ...] = ()
    harmless: frozenset[str] = frozenset()
    secrets: tuple[str, ...] = ()
    orders: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What applying an extraction did, as fact ids; `waiting` ones wait for a yes. Applied again, it only confirms."""

    created: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    waiting: tuple[str, ...] = ()


def reasons(refused: tuple[Refusal, ...]) -> dict[str, int]:
    """Return how many were refused for each reason: all that a log or a receipt may show of them."""
    return dict(sorted(Counter(refusal.reason for refusal in refused).items()))


def was_said_before(said: Change | Section, time: str, edit: object) -> bool:
    """Say whether something was said before a change by hand; where nobody can tell, it was.

    Args:
        said: What was said.
        time: When the change was made, ISO 8601; it counts where the numbers of the edits do not tell.
        edit: The number of the change (`memory.control`).
    """
    # Numbers before times: clocks of two processes differ, and may be set back.
    if said.said_after and isinstance(edit, int) and edit:
        return said.said_after < edit
    then, changed = moment(said.said_at), moment(time)
    return then is None or changed is None or then <= changed
