"""One turn's memory: its mode, the one read that opens it, and the one write that closes it.

A graph, a middleware or a program of one's own keeps between two turns what `TurnEpochs` and
`memory.injection.injected.Injected` give it as JSON. Nothing here knows in what kind of state.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Literal, NamedTuple, Self, TypeVar, get_args

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from memory.config import MemoryConfig
from memory.control import change_control, read_control
from memory.door import side_by_side, transaction
from memory.facts.rows import MemorySnapshot
from memory.forget.threads import erased_between, read_thread_erase
from memory.injection.injected import read_snapshot_with
from memory.journal.journal import JournalRevision, read_revision
from memory.message import iso_time, stored_id, to_stored
from memory.namespaces import Owner
from memory.updates import outbox
from memory.updates.entry import Entry, EntryKind
from memory.updates.outbox import Late
from memory.updates.receipts import UpdateReceipt, read_receipts
from memory.updates.transcript import ThreadView, to_turn

MemoryMode = Literal["normal", "read_only", "incognito"]
MODES: tuple[MemoryMode, ...] = get_args(MemoryMode)
"""From the loosest to the strictest."""

MODE_KEY = "memory_mode"
"""Where a mode stands: in a thread's metadata, an assistant's context, and what a message carries."""

Message = TypeVar("Message", bound=BaseMessage)


def effective_mode(*declared: object) -> MemoryMode:
    """Return the strictest of the modes that were declared; `None` declares nothing.

    What is no mode counts as `incognito`: a misspelt wish for less memory must not mean all of it.
    """
    ranks = [MODES.index(mode) if mode in MODES else len(MODES) - 1 for mode in declared if mode is not None]
    return MODES[max(ranks, default=0)]


def may_read(mode: MemoryMode) -> bool:
    """Say whether memory may be put before the model."""
    return mode != "incognito"


def may_learn(mode: MemoryMode) -> bool:
    """Say whether what is said may be queued, journaled and learned."""
    return mode == "normal"


def with_mode(message: Message, mode: MemoryMode) -> Message:
    """Return the message with the mode in which it was said, so that a later, looser mode does not learn it."""
    if may_learn(mode):
        return message
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, MODE_KEY: mode}})


def unanswered_with_mode(messages: Sequence[BaseMessage], mode: MemoryMode) -> list[BaseMessage]:
    """Return the messages that no answer follows yet, each with the mode in which it was said; none in `normal`.

    A client may have sent one with a stricter mode than its run has: that one holds.
    """
    if may_learn(mode):
        return []
    # From the end: a thread is long.
    unanswered = list(takewhile(lambda message: not isinstance(message, AIMessage), reversed(messages)))
    return [with_mode(message, effective_mode(mode, mode_of(message))) for message in reversed(unanswered)]


def mode_of(message: BaseMessage | None) -> MemoryMode:
    """Return the mode in which a message was said."""
    return effective_mode(message.additional_kwargs.get(MODE_KEY) if message else None)


def mode_of_newest(messages: Sequence[BaseMessage]) -> MemoryMode:
    """Return the mode in which the newest user message was said."""
    return mode_of(next((message for message in reversed(messages) if isinstance(message, HumanMessage)), None))


def learnable(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return the messages that were said in `normal` mode.

    What follows a user message of another mode, up to the next user message, belongs to it, whatever it carries itself.
    """
    kept: list[BaseMessage] = []
    is_turn_open = True
    for message in messages:
        is_open = may_learn(mode_of(message))
        if isinstance(message, HumanMessage):
            is_turn_open = is_open
        if is_turn_open and is_open:
            kept.append(message)
    return kept


class TurnEpochs(NamedTuple):
    """What tells, when a turn is written down, whether an erase or an edit by hand came after it began, and who spoke.

    Each part is empty, or 0, where it was not read.

    Attributes:
        epoch: The user's epoch when the turn began.
        thread_epoch: The thread's epoch then.
        edit: The user's newest edit by hand then; what is said after it may change what it says.
        learn_from: Id of the first message of the thread that no erase came after; empty if there was no erase.
        speaker: The name that the user's messages carry (`memory.message.speaker_of`).
        first: Id of the first question of the thread's branch.
        alone_until: What was begun before that time (seconds since the epoch) is no branch beside it.
    """

    epoch: str = ""
    thread_epoch: str = ""
    edit: int = 0
    learn_from: str = ""
    speaker: str = ""
    first: str = ""
    alone_until: float = 0.0

    @classmethod
    def from_state(cls, kept: Mapping[str, Any]) -> Self:
        """Return what `to_state` gave; what a client wrote there instead counts as not read."""
        defaults = cls._field_defaults.items()
        return cls(**{name: kept[name] for name, each in defaults if isinstance(kept.get(name), type(each))})

    def to_state(self) -> dict[str, Any]:
        """Return the JSON form that a thread keeps."""
        return {name: value for name, value in self._asdict().items() if value}

    def followed_by(self, now: "TurnEpochs | None", asked: str) -> "TurnEpochs":
        """Return the epochs of the turn after this one.

        Args:
            now: What was read at its beginning. `None` where that was not possible: then all stays what it was. An
                erase that is not seen yet must not be forgotten, and what is written down under an old epoch is
                cancelled.
            asked: Id of the message that the turn answers: after an erase, the thread may be learned from there on.
        """
        if now is None:
            return self
        is_user_erased = bool(self.epoch) and self.epoch != now.epoch
        is_thread_erased = erased_between(self.thread_epoch, now.thread_epoch)
        learn_from = asked if asked and (is_user_erased or is_thread_erased) else self.learn_from
        now = now._replace(speaker=self.speaker, first=self.first, alone_until=self.alone_until)
        return now._replace(edit=now.edit or self.edit, learn_from=learn_from)

    def newest_turn(self, messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
        """Return the end of the thread: the newest turn that may be learned, and the exchange that it replies to.

        It never reaches back behind an erase. Only the end is looked at, however long the thread is.
        """
        is_asked = is_answered = False
        for at in range(len(messages) - 1, -1, -1):
            message = messages[at]
            if self.learn_from and message.id == self.learn_from:
                return messages[at:]
            is_open = may_learn(mode_of(message))
            if isinstance(message, HumanMessage):
                # This question was answered, and a newer one asked: the newer one may reply to that answer.
                if is_open and is_asked and is_answered:
                    return messages[at:]
                is_asked, is_answered = is_asked or is_open, False
            elif is_open and isinstance(message, AIMessage) and not message.tool_calls:
                is_answered = True
        return messages

    def not_erased(self, leaving: Sequence[BaseMessage], messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return those of the messages that leave a thread that no erase came after.

        Args:
            leaving: What a summary is about to take the place of.
            messages: The whole thread.
        """
        if not self.learn_from:
            return list(leaving)
        newest_first = range(len(messages) - 1, -1, -1)  # an erase is seldom long ago
        start = next((at for at in newest_first if messages[at].id == self.learn_from), 0)
        erased = {message.id for message in messages[:start]}
        return [message for message in leaving if message.id not in erased]


@dataclass(frozen=True, slots=True)
class Opening:
    """What a turn found when it began.

    Attributes:
        mode: What memory may do in it; `None` if that cannot be read, and so nothing may be done.
        snapshot: What may be shown of the user's memory; `None` if nothing may, or it cannot be read.
        epochs: Under which epochs it began; `None` if it is not learned, or they cannot be read.
        updates: The receipts of updates since the turn before, oldest first.
        revision: The journal's.
    """

    mode: MemoryMode | None
    snapshot: MemorySnapshot | None = None
    epochs: TurnEpochs | None = None
    updates: tuple[UpdateReceipt, ...] = ()
    revision: JournalRevision = JournalRevision()  # noqa: RUF009 - a frozen value


async def open_turn(
    owner: Owner, thread_id: str, mode: MemoryMode, before: float | None, lines: Sequence[tuple[str, str]] = ()
) -> Opening:
    """Read what a turn begins with: all of it at one moment, in one batch.

    Args:
        owner: Whose memory it is.
        thread_id: The thread.
        mode: What assistant, thread and run declare; nothing is read in a mode that may not read.
        before: When the thread's turn before read its memory, seconds since the epoch. Of later updates the receipts
            are told; `None` in a first turn, which is told of none.
        lines: The past turns that the thread's prompt shows (`Injected.lines`).
    """
    if not may_read(mode):
        return Opening(mode)
    snapshot, (revision, receipts), erase = await side_by_side(
        read_snapshot_with(owner, lines),
        side_by_side(read_revision(owner), read_receipts(owner, iso_time(before or 0))),
        read_thread_erase(thread_id),
    )
    control = snapshot.control
    if not control.learning:  # the user may have paused it
        mode = effective_mode(mode, "read_only")
    epochs = TurnEpochs(control.epoch, erase.epoch, control.edit) if may_learn(mode) else None
    told = () if before is None else tuple(receipts)
    return Opening(mode, snapshot, epochs, told, revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """What is written down before a turn ends, or before a summary takes the place of messages.

    Attributes:
        owner: Whose memory it is.
        thread_id: The thread.
        kind: `turn`, the newest one of these messages, or `cut`, exactly these messages.
        messages: Messages of the thread, oldest first; those of other modes than `normal` are left out.
        epochs: Under which epochs the turn began; an erase since then cancels it. What is empty counts as the current.
        model: The assistant's choice as `provider:model`, for whoever reads it later.
        view: What the thread holds now: what the user edited away is no longer learned. `None` learns all.
        time_zone: The assistant's choice, for a user who set none.
        late: When it was said, if it is written down after the turn ended; `None` if it is written down now.
        began: When the turn began, seconds since the epoch: a person's yes to a call may come days later.
    """

    owner: Owner
    thread_id: str
    kind: EntryKind
    messages: Sequence[BaseMessage]
    epochs: TurnEpochs = field(default_factory=TurnEpochs)
    model: str = ""
    view: ThreadView | None = None
    time_zone: str = ""
    late: Late | None = None
    began: float = math.inf


@transaction
async def close_turn(closing: Closing, now: float, config: MemoryConfig) -> Entry | None:
    """Write a turn down for a later update of memory; doing it twice changes nothing.

    Args:
        closing: What is written down.
        now: Seconds since the epoch.
        config: How long the update may wait, and the limit of facts.

    Returns:
        What was written down; `None` if nothing was said that may be learned, the user has paused learning, or all of
        it was erased meanwhile.
    """
    # "Tomorrow" counts from the day on which it was said.
    said_at, epochs = closing.late.at if closing.late else now, closing.epochs
    messages, time = learnable(closing.messages), iso_time(min(closing.began, said_at))
    said = (to_turn if closing.kind == "turn" else to_stored)(messages, time, epochs.speaker)
    if all(message.seen for message in said):
        return None
    # A cut may reach back behind the edit after which the turn began.
    edit = epochs.edit if closing.kind == "turn" else 0
    draft = Entry(
        kind=closing.kind,
        owner=closing.owner,
        thread_id=closing.thread_id,
        epoch=epochs.epoch,
        created=said_at,
        due=said_at + config.max_wait_seconds,
        messages=tuple(replace(message, edit=edit) for message in said),
        speaker=epochs.speaker,
        first=epochs.first,
        model=closing.model,
    )
    recorded = await outbox.record(
        draft, closing.view, thread_epoch=epochs.thread_epoch, late=closing.late, config=config
    )
    zone = closing.time_zone
    if recorded and zone and (await read_control(closing.owner)).assistants_time_zone != zone:
        await change_control(closing.owner, assistants_time_zone=zone)
    return recorded


class NewestFirst:
    """Ids of a thread, read from the newest message on: what is pending is new, and a turn must not pay for all.

    Args:
        messages: The thread's messages.
        more: Ids of messages that its summary remembers to stand for.
    """

    def __init__(self, messages: Sequence[BaseMessage], more: Iterable[str]) -> None:
        self._unread = reversed(messages)
        self._read = set(map(stored_id, more))

    def __contains__(self, identity: object) -> bool:
        while identity not in self._read:
            message = next(self._unread, None)
            if message is None:
                return False
            self._read.add(stored_id(message.id))
        return True
