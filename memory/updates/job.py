"""Work that needs a store and a model: a generator that yields what it needs, under the terms of a worker."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langgraph.store.base import Op

from memory.config import MemoryConfig
from memory.message import iso_time
from memory.updates.lease import Worker

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelCall:
    """The wish for one model call; what `use` returns is sent back.

    Attributes:
        model: `provider:model`; empty means the deployment's own.
        use: Asks the model. It runs on a thread of its own and may block.
    """

    model: str
    use: Callable[[BaseChatModel], Any]


@dataclass(frozen=True, slots=True)
class Start:
    """The wish to start work that asks a model, once the process may start another one; nothing is sent back."""


Wish = Sequence[Op] | ModelCall | Start
Job = Generator[Wish, Any, T]
"""Yields store operations, model calls and starts, is sent results or thrown errors, and returns its value."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which terms a worker works.

    Attributes:
        config: Limits and switches.
        worker: Who it is.
        clock: Returns seconds since the epoch.
        is_alive: Whether a process of this host exists.
    """

    config: MemoryConfig
    worker: Worker
    clock: Callable[[], float]
    is_alive: Callable[[int], bool]

    def now(self) -> str:
        """Return the time as ISO 8601 in UTC."""
        return iso_time(self.clock())
