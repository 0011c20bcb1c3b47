"""Turns that ended before they were written down, as a thread's state names them: by ids, without a word of text.

The checkpoint keeps their messages. Whoever comes by next, the thread's next turn or a look at checkpoints, writes each
down as its own turn: under its own epochs, never behind an erase, never in a mode that does not learn.
"""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from typing_extensions import TypedDict

from memory.forms import plain, read_as
from memory.namespaces import Owner
from memory.turn import Closing, TurnEpochs, learnable
from memory.updates.outbox import Late
from memory.updates.transcript import latest_turn

logger = logging.getLogger(__name__)

HAS_UNWRITTEN = "has_unwritten"
"""Where a state says that it names such turns, for a search."""
MOST = 200
"""So many turns of a thread are named, the newest; each checkpoint holds them."""
MOST_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwritten(Late):
    """One turn that was not written down in time.

    Attributes:
        owner: Whose memory it is, as the owner's `due_key`.
        epochs: Under which epochs it began, as far as anybody knows.
        model: The assistant's choice as `provider:model`, for whoever reads it later.
        time_zone: The assistant's choice.
        tries: How often it could not be written while other turns could.
    """

    owner: str
    epochs: TurnEpochs
    model: str = ""
    time_zone: str = ""
    tries: int = 0

    def closing(self, thread_id: str, owner: Owner, messages: Sequence[BaseMessage], learn_from: str) -> Closing | None:
        """Return what is to be written down of the turn now; `None` if there is nothing, or it may not be learned.

        Args:
            thread_id: The thread.
            owner: Whose thread it is, as a server or a program says: a client may have written the state.
            messages: The thread's messages as they are now: what was edited away since, or has left, is not learned
                here.
            learn_from: Id of the first message of the thread that no erase came after; empty if there was no erase.
        """
        named = Owner.from_due_key(self.owner)
        epochs = self.epochs._replace(learn_from=learn_from)
        newest = epochs.newest_turn(self._slice(messages, learn_from))
        if named is None or named.segment != owner.segment or not learnable(latest_turn(newest)):
            return None
        return Closing(
            owner=named,
            thread_id=thread_id,
            kind="turn",
            messages=newest,
            epochs=epochs,
            model=self.model,
            time_zone=self.time_zone,
            late=self,
        )

    def _slice(self, messages: Sequence[BaseMessage], learn_from: str) -> Sequence[BaseMessage]:
        """Return the thread up to the end of this turn; nothing if it is not there, or an erase came after it."""
        newest_first = range(len(messages) - 1, -1, -1)  # it is seldom long ago
        begin = next((at for at in newest_first if messages[at].id == self.asked), None)
        if begin is None:
            return ()
        rest = range(begin + 1, len(messages))
        end = next((at for at in rest if isinstance(messages[at], HumanMessage)), len(messages))
        if learn_from and any(message.id == learn_from for message in messages[end:]):
            return ()
        return messages[:end]


def unwritten_of(kept: object) -> tuple[Unwritten, ...]:
    """Return the turns that a state names, oldest first; what a client wrote there instead is left out."""
    turns = []
    for one in kept if isinstance(kept, list | tuple) else ():
        with suppress(ValueError):
            turns.append(read_as(Unwritten, one))
    return tuple(turns)


class Named(TypedDict, total=False):
    """What a thread's state keeps of its unwritten turns; nothing where there are none."""

    unwritten: list[dict[str, Any]]
    has_unwritten: bool
    """Whether there are any, for a server's search of threads."""


def named(turns: Iterable[Unwritten]) -> Named:
    """Return what a state keeps of the turns, each once, the newest last; the oldest go where there are too many."""
    by_question = {one.asked: one for one in turns}
    if len(by_question) > MOST:
        logger.warning("%d turns that were not written down are too many and are dropped", len(by_question) - MOST)
    newest = list(by_question.values())[-MOST:]
    kept = [{name: each for name, each in plain(one).items() if each} for one in newest]
    return Named(unwritten=kept, has_unwritten=True) if kept else Named()


def tried_again(turn: Unwritten) -> list[Unwritten]:
    """Return a turn that could not be written though others could; none after three tries, as it never will be."""
    if turn.tries + 1 >= MOST_TRIES:
        logger.error("a turn cannot be written down, %d tries, and is dropped", MOST_TRIES)
        return []
    return [replace(turn, tries=turn.tries + 1)]
