"""What a thread remembers of the messages that a summary replaced."""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from memory import prompts
from memory.message import GivenMessages, all_spoken, as_messages
from memory.text import digest, without_middle

SUMMARY_ID = "palimpsest-summary"
"""The id of every summary message, so that in a thread's messages a new summary takes the place of the old one."""

REMEMBERED_IDS = 32
"""How many summarized ids are kept beyond those that the state itself tells; the journal knows the rest."""

_NO_INSTRUCTIONS = {HumanMessage, AIMessage, ToolMessage}

_SLICE = 16

SYSTEM_CHARS = 4_000
"""What of a client's later instructions is told at most, but for the newest: one that tells the time is never old."""


@dataclass
class RunningSummary:
    """The summary of a thread so far and what went into it. Its size does not grow with the thread.

    Attributes:
        summary: The text.
        summarized_message_ids: The newest 32 ids of messages that went into the summary. Which messages of a state
            are summarized, however many, is told by `summarized_ids`.
        last_summarized_message_id: The newest of them. In a thread that keeps its messages, all up to this one are
            summarized, but for the kept ones.
        kept: Messages that stand for themselves though a later one is summarized, by their ids, each with its place
            in the thread: system messages, and the question of a turn whose first tool results were summarized. What
            is summarized need not be looked through for them.
        order: The same ids, oldest first: a set forgets which of them are newest.
        forgotten: How many older ids are no longer among them.
    """

    summary: str
    summarized_message_ids: set[str]
    last_summarized_message_id: str | None
    kept: dict[str, int] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    forgotten: int = 0

    def __post_init__(self) -> None:
        stored: object = self.summarized_message_ids  # as a checkpoint holds it, until here
        if isinstance(stored, bytes):
            ids = _inflated(stored)
            self.summarized_message_ids, self.order = set(ids), ids

    def _asdict(self) -> dict[str, object]:
        """Return the arguments that rebuild this from a checkpoint; LangGraph's serializer asks every object for them.

        Ids are mostly hexadecimal digits: 32 of them take 0.6 KB deflated, in their order, instead of 1.3 KB.
        """
        return {
            "summary": self.summary,
            "summarized_message_ids": zlib.compress(json.dumps(self._oldest_first()).encode(), 9),
            "last_summarized_message_id": self.last_summarized_message_id,
            "kept": self.kept,
            "forgotten": self.forgotten,
        }

    def extended(
        self, summary: str, ids: Sequence[str], *, last: str | None, kept: Mapping[str, int]
    ) -> "RunningSummary":
        """Return the state after a further summary into which the messages with these ids went, oldest first."""
        fresh = set(ids)
        remembered = [*(identity for identity in self._oldest_first() if identity not in fresh), *ids]
        newest = remembered[-REMEMBERED_IDS:]
        forgotten = self.forgotten + len(remembered) - len(newest)
        return RunningSummary(summary, set(newest), last, dict(kept), newest, forgotten)

    def _oldest_first(self) -> list[str]:
        ids = sorted(self.summarized_message_ids)
        return self.order if sorted(self.order) == ids else ids  # a client may have changed either


def _inflated(stored: bytes) -> list[str]:
    try:
        return _strings(json.loads(zlib.decompress(stored)))
    except (ValueError, zlib.error):  # no form of ours
        return []


def rehydrate(value: object) -> RunningSummary | None:
    """Return the running summary that a state holds, in whatever form a checkpoint or a client handed it back.

    Args:
        value: A `RunningSummary`, langmem's object of that name, a mapping with the same names (ids as list or set),
            `None`, or anything else. A checkpoint's own form of the ids, deflated, is one that it knows.

    Returns:
        The running summary, or `None` where there is no summary text in it.
    """
    if isinstance(value, RunningSummary) and value.summary and isinstance(value.summarized_message_ids, set):
        return value

    def read(name: str) -> object:
        return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)

    summary, last = read("summary"), read("last_summarized_message_id")
    if isinstance(summary, list):  # langmem keeps content blocks where a model answered with them
        summary = "".join(str(one.get("text", "")) if isinstance(one, dict) else str(one) for one in summary)
    if not isinstance(summary, str) or not summary:
        return None
    stored, forgotten, kept = read("summarized_message_ids"), read("forgotten"), read("kept")
    ids = _inflated(stored) if isinstance(stored, bytes) else _strings(stored)
    return RunningSummary(
        summary,
        set(ids),
        last if isinstance(last, str) else None,
        {one: at for one, at in kept.items() if isinstance(one, str) and isinstance(at, int) and at >= 0}
        if isinstance(kept, Mapping)
        else {},
        ids if isinstance(stored, bytes) else _strings(read("order")),
        forgotten if isinstance(forgotten, int) else 0,
    )


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, (list, set, tuple, frozenset)) else []


@dataclass(frozen=True, slots=True)
class DividedMessages:
    """The messages of a state, parted by what a summary says of them.

    Attributes:
        system: The system messages, equal ones once, without a summary's.
        live: What no summary stands for, oldest first, without thoughts in its text.
        kept: How many of the live ones stand before the last summarized message.
        thread: All of them.
    """

    system: tuple[BaseMessage, ...]
    live: tuple[BaseMessage, ...]
    kept: int = 0
    thread: Sequence[BaseMessage] = ()

    def summarized(self, running: RunningSummary | None, summary: str, leaving: Sequence[int]) -> RunningSummary:
        """Return the running summary after the live messages at these indices went into `summary`."""
        before = running or RunningSummary("", set(), None)
        ids = [identity for index in leaving if (identity := self.live[index].id) is not None]
        moves_on = leaving[-1] >= self.kept
        passed = self.live[: leaving[-1] if moves_on else self.kept]
        stay = {message.id for message in (*self.system, *passed)}.difference(ids)
        kept = {one.id: at for at, one in enumerate(self.thread) if one.id is not None and one.id in stay}
        last = ids[-1] if moves_on else before.last_summarized_message_id
        return before.extended(summary, ids, last=last, kept=kept)


def divide(messages: Sequence[BaseMessage], running: RunningSummary | None) -> DividedMessages:
    """Part the messages of a state: instructions are of all of it, whatever a summary stands for.

    Where the last summarized message is no longer there (edited away, or removed because its summary took its
    place), the summary message, or else the newest summarized message that is left, tells where the live ones begin.
    """
    start = _live_start(messages, running) if running else 0
    behind = messages[start:]
    before = _standing(messages, start, running)
    given = {at: messages[at] for at in (*before, *(start + at for at in _instructions(behind)))}
    kept = [given.pop(at) for at in before if not isinstance(messages[at], SystemMessage)]
    live = [one for at, one in enumerate(behind, start) if at not in given] if given else behind
    if running:
        live = [one for one in live if one.id != SUMMARY_ID]
    told = _told(given, running)
    return DividedMessages(tuple(given[at] for at in told), all_spoken([*kept, *live]), len(kept), messages)


def _instructions(messages: Sequence[BaseMessage]) -> list[int]:
    """Return where system messages stand among these."""
    # Classes first: a look at each message of a long thread takes as long as all else.
    if set(map(type, messages)) <= _NO_INSTRUCTIONS:
        return []
    return [at for at, message in enumerate(messages) if isinstance(message, SystemMessage)]


def _standing(messages: Sequence[BaseMessage], start: int, running: RunningSummary | None) -> list[int]:
    """Return where those before the live messages stand that no summary is for."""
    kept = running.kept if running else {}
    if all(at < len(messages) and messages[at].id == identity for identity, at in kept.items()):
        # In compact mode a system message that came since the summary stands before the summary's, too.
        first = takewhile(lambda at: bool(_instructions([messages[at]])), range(start))
        return sorted({*first, *(at for at in kept.values() if at < start)})
    # Some have left the thread: compact mode, or somebody edited it.
    return [at for at in range(start) if isinstance(messages[at], SystemMessage) or messages[at].id in kept]


def _told(given: Mapping[int, BaseMessage], running: RunningSummary | None) -> list[int]:
    """Return the places of equal system messages once: the first, and of the others the newest of `SYSTEM_CHARS`."""
    if not given:
        return []
    # langmem's summary messages have no stable id, but their text.
    summary = running and summary_text(running.summary)
    texts = {at: one.text for at, one in given.items() if one.id != SUMMARY_ID}
    once = [*{text: at for at, text in texts.items() if text != summary}.values()]
    chars = accumulate(len(texts[at]) for at in once[:0:-1])
    stay = max(1, sum(so_far <= SYSTEM_CHARS for so_far in chars))
    return [*once[:1], *once[1:][-stay:]]


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


def _live_start(messages: Sequence[BaseMessage], running: RunningSummary) -> int:
    newest_known, ends = 0, {running.last_summarized_message_id, SUMMARY_ID} - {None}
    # Several at once, from the end: a call for each message takes longer than the look at it.
    for stop in range(len(messages), 0, -_SLICE):
        start = max(0, stop - _SLICE)
        for index, message in reversed([*enumerate(messages[start:stop], start)]):
            if message.id in ends:
                return index + 1
            if not newest_known and message.id in running.summarized_message_ids:
                newest_known = index + 1
    return newest_known


UNFLUSHED = "unflushed_summary"
"""Where a state's `context` holds a summary that exists though the hook failed."""

WrittenSummary = dict[str, Any]
"""A summary that exists and is not used yet: its text, the ids that went into it, and a digest of all it is made of."""


def written_summary(summary: str, existing: str, messages: Sequence[BaseMessage]) -> WrittenSummary:
    """Return a summary as plain data, with what tells later whether it still stands for the same.

    Args:
        summary: The new summary.
        existing: The one before it, which went into it.
        messages: What else went into it.
    """
    return {"summary": summary, "ids": [message.id for message in messages], "of": _made_of(existing, messages)}


def still_leaving(kept: object, existing: str, live: Sequence[BaseMessage]) -> tuple[list[int], str] | None:
    """Return where the messages of a kept summary stand, and the summary; `None` unless nothing of them changed."""
    if not isinstance(kept, Mapping) or not isinstance(kept.get("ids"), list):
        return None
    ids, summary = {str(identity) for identity in kept["ids"]}, kept.get("summary")
    places = [at for at, message in enumerate(live) if message.id in ids]
    is_same = kept.get("of") == _made_of(existing, [live[at] for at in places])
    return (places, summary) if places and is_same and isinstance(summary, str) and summary else None


def _made_of(existing: str, messages: Sequence[BaseMessage]) -> str:
    return digest(existing, *(part for message in messages for part in (str(message.id), without_middle(message.text))))


def state_of(context: object) -> dict[str, Any]:
    """Return what a state holds under `context`, or an empty one where a client put something else there."""
    return dict(context) if isinstance(context, Mapping) else {}
