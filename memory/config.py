"""What memory may hold and when it works: one frozen, validated value (it reads no environment)."""

import functools
from collections.abc import Mapping, Sequence
from datetime import date, tzinfo
from typing import Annotated, Literal, Protocol, get_args, runtime_checkable
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, ConfigDict, Field, Strict
from pydantic.dataclasses import dataclass

ExtractionForm = Literal["full", "brief"]
Category = Literal["preference", "knowledge", "context", "behavior", "goal", "correction"]
MEANINGS: Mapping[Category, str] = {
    "preference": "likes, dislikes, how to answer",
    "knowledge": "who the user is, people, places, health, skills",
    "context": "current work and circumstances",
    "behavior": "habits",
    "goal": "plans and wishes",
    "correction": "the assistant was wrong",
}
"""Every category with what belongs into it, in the words that the memory model reads."""
CATEGORIES: tuple[Category, ...] = tuple(MEANINGS)
Topic = Literal["none", "health", "money", "people"]
"""What the memory model may mark a fact with; all but `none` are sensitive, and `people` are others than the user."""
Approval = Literal["off", "sensitive", "all"]
"""What of what is learned waits for the user's yes, from the least to the most."""
APPROVALS: tuple[Approval, ...] = get_args(Approval)
Hold = Literal["approval", "secret", "order"]
"""Why a past message waits for a yes: the user wants to be asked, it may hold a secret, or is an order."""
HOLDS: tuple[Hold, ...] = get_args(Hold)


def stricter(one: Approval, other: Approval) -> Approval:
    """Return that of two choices which asks about more."""
    return max(one, other, key=APPROVALS.index)


@runtime_checkable
class NoteRules(Protocol):
    """What makes facts of the sentences that a small model notes down, message by message."""

    def examples(self, said: str) -> Sequence[tuple[str, str]]:
        """Return messages and answers that the model reads before the first of these messages."""

    def stated(self, text: str, day: date | None) -> str:
        """Return what a message of that day states; empty if it only asks, thanks or greets."""

    def kept(self, notes: Sequence[str], told: str, heard: str, longest: int) -> Sequence[tuple[str, Category]]:
        """Return the facts of a message that states this, with their categories.

        Args:
            notes: What the model noted down.
            told: What the message states.
            heard: All that was said: a name that does not stand there was made up.
            longest: Characters of the longest fact.
        """

    def replaces(self, said: str, content: str, older: str) -> bool:
        """Say whether a fact of a message takes the place of an older one."""


def checked_time_zone(name: str) -> str:
    """Return the name; `ValueError` if no time zone has it."""
    if zone_named(name) is None:
        raise ValueError(f"time_zone must be an IANA time zone such as Europe/Oslo, not {name!r}")
    return name


@functools.lru_cache(maxsize=1024)
def zone_named(name: str) -> tzinfo | None:
    """Return the time zone of an IANA name such as `Europe/Oslo`; `None` if there is none of that name."""
    try:
        # Reads a file of 2 KB, also on an event loop: `langgraph dev` allows that, and it is read once.
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


ZoneName = Annotated[str, AfterValidator(checked_time_zone)]
_Count = Annotated[int, Field(ge=1)]
_Whole = Annotated[int, Field(ge=0)]
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1)]


_FIELDS = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)


@dataclass(frozen=True, slots=True, kw_only=True, config=_FIELDS)
class MemoryConfig:
    """Limits and switches of one deployment's memory; bad values raise `ValueError` naming the field.

    Attributes:
        enabled: `False` turns learning off: nothing is queued, written or sent to a model.
        max_facts: How many active facts one user and agent may hold.
        confidence_threshold: Extracted facts below it are refused as `low_confidence`.
        protected_categories: Categories that an eviction spares while another fact can go.
        approval: What of what a conversation tells is used only after the user's yes: nothing (`off`), all but what
            the memory model marked as harmless (`sensitive`), or `all`; users may ask to be asked about more.
        approval_days: What waits for a yes so many days ends; 0 lets it wait.
        max_waiting: So many facts of one user and agent wait for a yes; of more, those that have waited longest go.
        extraction_prompt: What the memory model is told to do; empty means `memory.prompts.EXTRACTION`. The form of its
            answer and the checks of what it says stay.
        extraction_form: How the memory model answers: `full` as one object with all fields of each fact, `brief` as
            plain sentences, message by message, which a small model can do.
        note_rules: What makes facts of such sentences; without them each is a fact of the category `knowledge`.
        max_fact_chars: Longer extracted facts are refused as `too_long`.
        debounce_seconds: Quiet time of one conversation before its update runs.
        max_wait_seconds: The longest an update waits under steady traffic.
        update_spacing_seconds: The least time between the starts of two updates in one process.
        model_timeout_seconds: One extraction call may take this long.
        store_timeout_seconds: One store call of an update, a roll-up or a sweep may take this long; then the work ends,
            and is tried again later.
        portion_messages: One extraction reads no more messages than this; a backlog is read in several.
        lease_seconds: How long one worker's claim on a pending update keeps others from asking the model too.
        max_attempts: After so many failed tries a pending update becomes a dead letter.
        retry_base_seconds: Delay after the first failure; it doubles with each further one.
        retry_max_seconds: The longest delay between two tries.
        sweep_seconds: How often a server looks for updates that nobody's turn will trigger.
        drain_seconds: The longest that shutting down waits for pending updates.
        read_timeout_seconds: A turn waits this long in all to read memory, then it goes on without.
        write_timeout_seconds: A turn waits this long in all to be written down; then it ends, and is written later.
        seen_limit: How many message hashes are remembered for one user and thread.
        journal_days: Days of the daily journal that are kept.
        journal_bytes: So many bytes of text the journal of one user and agent keeps; then the oldest go, once a day.
        prepare_summary_share: After a turn that fills so large a share of a thread's budget, the summary that the next
            cut will need is written in the background; 1 switches that off, where turns wait for summaries.
        history_days: Days that history keeps what facts said before; 0 keeps it, within its bounds.
        budget_calls: So many model calls memory may make for one user on a day: summaries, extraction, roll-ups; 0 is
            no limit. What is used up waits for the next day.
        time_zone: Where a budget's days begin at midnight, as an IANA name.
        recall_megabytes: What one process may hold in memory to recall from, for all users together; those who were
            served longest ago make room.
    """

    enabled: bool = True
    max_facts: _Count = 500
    confidence_threshold: _Share = 0.5
    protected_categories: Annotated[frozenset[Category], Strict(False)] = frozenset()
    approval: Approval = "off"
    approval_days: _Whole = 0
    max_waiting: _Count = 200
    extraction_prompt: str = ""
    extraction_form: ExtractionForm = "full"
    note_rules: NoteRules | None = None
    max_fact_chars: _Count = 500
    debounce_seconds: _Seconds = 30.0
    max_wait_seconds: _Seconds = 120.0
    update_spacing_seconds: _Seconds = 0.5
    model_timeout_seconds: _Seconds = 120.0
    store_timeout_seconds: _Seconds = 60.0
    portion_messages: _Count = 20
    lease_seconds: _Seconds = 180.0
    max_attempts: _Count = 8
    retry_base_seconds: _Seconds = 5.0
    retry_max_seconds: _Seconds = 3600.0
    sweep_seconds: Annotated[_Seconds, Field(gt=0)] = 60.0
    drain_seconds: _Seconds = 10.0
    read_timeout_seconds: _Seconds = 2.0
    write_timeout_seconds: _Seconds = 2.0
    seen_limit: _Count = 2000
    journal_days: _Count = 90
    journal_bytes: _Count = 8_000_000
    prepare_summary_share: _Share = 0.7
    history_days: _Whole = 0
    budget_calls: _Whole = 0
    time_zone: ZoneName = "UTC"
    recall_megabytes: _Count = 512
