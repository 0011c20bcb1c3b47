"""What a thread remembers of the messages that a summary replaced, and of those that left the view without one."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice, takewhile
from typing import Any, Self

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from memory import prompts
from memory.forms import read_as
from memory.message import GivenMessages, all_spoken, as_messages

SUMMARY_ID = "palimpsest-summary"
"""The id of every summary message, so that in a thread's messages a new summary takes the place of the old one."""

REMEMBERED_IDS = 32
"""How many summarized ids are kept beyond those that the state itself tells; the journal knows the rest."""

SYSTEM_CHARS = 4_000
"""So many characters of a client's later instructions are kept, beside the newest: one may tell the time each turn."""

LEFT_OUT = "left_out"
"""Where a state's `context` says which messages the view leaves out though no summary stands for them."""

HANDED_OVER = "handed_over"
"""Where a state's `context` says which messages the hook was given before a summary stands for them."""

WrittenSummary = dict[str, Any]
"""A summary that exists and is not used yet: its text, the ids that went into it, and a digest of all it is made of."""

_NO_INSTRUCTIONS = {HumanMessage, AIMessage, ToolMessage}


@dataclass
class RunningSummary:
    """The summary of a thread so far and what went into it. Its size does not grow with the thread.

    Attributes:
        summary: The text.
        summarized_message_ids: The newest 32 ids of messages that went into the summary. Which messages of a state
            are summarized, however many, is told by `summarized_ids`.
        last_summarized_message_id: The newest of them. In a thread that keeps its messages, all up to this one are
            summarized, but for the kept ones.
        kept: Ids of messages that stand for themselves though a later one is summarized: system messages, and the
            question of a turn whose first tool results were summarized.
        order: The summarized ids again, oldest first: a set forgets which of them are newest.
    """

    summary: str
    summarized_message_ids: set[str] = field(default_factory=set)
    last_summarized_message_id: str | None = None
    kept: set[str] = field(default_factory=set)
    order: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.summarized_message_ids = set(self.summarized_message_ids or self.order)

    def _asdict(self) -> dict[str, object]:
        """Return what rebuilds this from a checkpoint, each id once; LangGraph's serializer asks for it."""
        return {**vars(self), "summarized_message_ids": [], "order": self._oldest_first()}

    def extended(self, summary: str, ids: Sequence[str], *, last: str | None, kept: Iterable[str]) -> "RunningSummary":
        """Return the state after a further summary into which the messages with these ids went, oldest first."""
        newest = [*(one for one in self._oldest_first() if one not in ids), *ids][-REMEMBERED_IDS:]
        return RunningSummary(summary, set(newest), last, set(kept), newest)

    def _oldest_first(self) -> list[str]:
        ids = self.summarized_message_ids
        return self.order if set(self.order) == ids else sorted(ids)  # a client may have changed either


def rehydrate(value: object) -> RunningSummary | None:
    """Return the running summary that a state holds, in whatever form a checkpoint or a client handed it back.

    Args:
        value: A `RunningSummary`, langmem's object of that name, a mapping with the same names (ids as list or set),
            `None`, or anything else.

    Returns:
        The running summary, or `None` where there is no summary text in it.
    """
    if isinstance(value, RunningSummary) and value.summary and isinstance(value.summarized_message_ids, set):
        return value
    told = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
    summary = told.get("summary")
    try:
        if isinstance(summary, list):  # langmem keeps content blocks where a model answered with them
            summary = str(AIMessage(summary).text)
        return read_as(RunningSummary, {**told, "summary": summary}, needed=["summary"]) if summary else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class DividedMessages:
    """The messages of a state, parted by what a summary says of them.

    Attributes:
        system: The system messages, equal ones once, without a summary's.
        live: What no summary stands for, oldest first, without thoughts in its text.
        kept: How many of the live ones stand before the last summarized message.
        running: What stands for the rest.
    """

    system: tuple[BaseMessage, ...] = ()
    live: tuple[BaseMessage, ...] = ()
    kept: int = 0
    running: RunningSummary | None = None

    @property
    def summary(self) -> str:
        """The text of the running summary."""
        return self.running.summary if self.running else ""

    def fresh(self, ids: Collection[str | None]) -> list[BaseMessage]:
        """Return the live messages with these ids that are in no summary: one that a client sent again is not new."""
        summarized = self.running.summarized_message_ids if self.running else ()
        return [message for message in self.live if message.id in ids and message.id not in summarized]

    def summarized(self, summary: str, leaving: Sequence[BaseMessage]) -> "DividedMessages":
        """Return what is left after these of the live messages, oldest first, went into `summary`."""
        before = self.running or RunningSummary("")
        ids = [str(one.id) for one in leaving]
        # By object, not by id, as two messages may have one id, and the newest question stays.
        live, end, awaited = list[BaseMessage](), 0, [*reversed(leaving)]
        for at, one in enumerate(self.live, 1):
            if awaited and one is awaited[-1]:
                awaited.pop()
                end = at
            else:
                live.append(one)
        moves_on = end > self.kept
        passed = self.live[: end if moves_on else self.kept]
        kept = {str(message.id) for message in (*self.system, *passed)}.difference(ids)
        last = ids[-1] if moves_on else before.last_summarized_message_id
        return replace(self, live=tuple(live), running=before.extended(summary, ids, last=last, kept=kept))


def divide(messages: Sequence[BaseMessage], running: RunningSummary | None) -> DividedMessages:
    """Part the messages of a state: instructions are of all of it, whatever a summary stands for.

    The live messages begin behind the last summarized one. If that is gone (edited away, or replaced by its summary),
    they begin behind the summary message, or else behind the newest summarized message that is left.
    """
    start, stay = 0, list[BaseMessage]()
    if running and (start := _first_live(messages, running)):
        # In compact mode a system message that came since the summary stands before the summary's, too.
        stay += takewhile(lambda one: isinstance(one, SystemMessage), islice(messages, start))
        # Without kept ones, what is summarized need not be looked through for them.
        behind = islice(messages, len(stay), start) if running.kept else ()
        stay += [one for one in behind if one.id in running.kept]
    live = messages[start:]
    # Classes first: a look at each message of a long thread takes as long as all else.
    if not set(map(type, live)) <= _NO_INSTRUCTIONS:
        stay += [one for one in live if isinstance(one, SystemMessage)]
        live = [one for one in live if not isinstance(one, SystemMessage)]
    system = [one for one in stay if isinstance(one, SystemMessage)]
    kept = [one for one in stay if not isinstance(one, SystemMessage)]
    return DividedMessages(_told(system, running), all_spoken([*kept, *live]), len(kept), running)


def _first_live(messages: Sequence[BaseMessage], running: RunningSummary) -> int:
    """Return where the messages begin that no summary stands for, but for kept ones before them."""
    for ends in ({running.last_summarized_message_id, SUMMARY_ID} - {None}, running.summarized_message_ids):
        # The end first: what is summarized is hardly ever looked at.
        for at in range(len(messages), 0, -1):
            if messages[at - 1].id in ends:
                return at
    return 0


def _told(given: Sequence[BaseMessage], running: RunningSummary | None) -> tuple[BaseMessage, ...]:
    """Return equal system messages once: the first, and of the others the newest of `SYSTEM_CHARS`."""
    # langmem's summary messages have no stable id, but their text.
    summary = running and summary_text(running.summary)
    once = {str(one.text): one for one in given if one.id != SUMMARY_ID and one.text != summary}
    chars = accumulate(len(text) for text in [*once][:0:-1])
    newest = max(1, sum(so_far <= SYSTEM_CHARS for so_far in chars))
    told = [*once.values()]
    return (*told[:1], *told[1:][-newest:])


def summarized_ids(messages: GivenMessages, running: object) -> set[str]:
    """Return the ids of all summarized messages of a state, exactly, and of the newest that have left it.

    Args:
        messages: The thread's messages: `state["messages"]`.
        running: Its running summary: `state["context"]["running_summary"]`, in whatever form it came back; `None`
            if nothing was summarized yet.
    """
    running, messages = rehydrate(running), as_messages(messages)
    if running is None:
        return set()
    live = {message.id for message in divide(messages, running).live}
    passed = {message.id for message in messages if message.id is not None and message.type != "system"}
    return running.summarized_message_ids | (passed - live - {SUMMARY_ID})


def summary_text(summary: str) -> str:
    """Return the text of the message that stands for the summarized ones."""
    return prompts.SUMMARY_MESSAGE.replace("{summary}", summary)


def state_of(context: object) -> dict[str, Any]:
    """Return what a state holds under `context`, or an empty one where a client put something else there."""
    return dict(context) if isinstance(context, Mapping) else {}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The oldest messages of a conversation, without some that were kept, such as the question of the turn in progress.

    The newest of them stands for all before it, so that a state keeps a bounded number of ids.

    Attributes:
        messages: How many they are.
        ids: Ids of the newest 32 of them, oldest first. One is enough to find their place, should others be removed.
        kept: Ids of messages before the newest of them that are none of them.
    """

    messages: int = 0
    ids: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @classmethod
    def of(cls, live: Sequence[BaseMessage], left_out: Collection[str | None]) -> Self:
        """Return the value for those of a conversation's messages that have these ids."""
        if not left_out:
            return cls()
        places = [at for at, message in enumerate(live) if message.id in left_out]
        newest = tuple(str(live[at].id) for at in places[-REMEMBERED_IDS:])
        kept = tuple(str(one.id) for one in live[: max(places, default=0)] if one.id not in left_out)
        return cls(len(places), newest, kept)

    @classmethod
    def from_state(cls, value: object) -> Self:
        """Return what a state keeps; nothing where a client put something else there."""
        with suppress(ValueError):
            return read_as(cls, value or {})
        return cls()

    def among(self, live: Sequence[BaseMessage]) -> set[str | None]:
        """Return the ids of those of a conversation's messages that this stands for."""
        if not self.ids:
            return set()
        newest = max((at for at, message in enumerate(live) if message.id in self.ids), default=-1)
        return {message.id for message in live[: newest + 1]}.difference(self.kept)
