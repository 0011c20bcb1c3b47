"""Debounce per conversation with a maximum wait, on one daemon thread; it calls the function it was given.

The queue is a trigger, not the record: it holds contexts in memory only, and they are gone with the process. The graph
writes a turn down in the outbox before it adds a context, so that nothing is lost with it. In a program of one's own, a
context is written down when `MemoryUpdater.process` gets it; until then only the queue has it. Each conversation has a
quiet period of its own. Updates of one user run one after another, those of different users side by side. The queue
spaces the starts of updates, whatever function it was given; `memory.updates.updater.ModelCalls` spaces model calls,
also those of one drain of several conversations, and of sweeps.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from memory.config import MemoryConfig
from memory.door import tolerated
from memory.updates.conversation import ConversationContext, UpdateKey
from memory.updates.entry import retry_delay

__all__ = ["ConversationContext", "MemoryUpdateQueue", "Process", "StartThread", "start_daemon_thread"]

logger = logging.getLogger(__name__)

# A process that has no thread to spare is asked again after so many seconds.
_NO_THREAD = 5.0

Process = Callable[[ConversationContext], float | None]
"""Runs one update on a flush thread. It may return in how many seconds the same conversation wants another one."""
StartThread = Callable[[str, Callable[[], None]], None]


def start_daemon_thread(name: str, target: Callable[[], None]) -> None:
    """Run the target on a daemon thread: it ends with the process, whatever it waits for.

    Raises:
        RuntimeError: If the process can have no further thread.
    """
    threading.Thread(target=target, name=name, daemon=True).start()


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A context that waits: since when, until when, and how often it has failed."""

    context: ConversationContext
    first: float
    due: float
    failures: int = 0


class MemoryUpdateQueue:
    """Pending updates of this process, one for each `(thread_id, user_id, agent_name)`.

    Args:
        process: Runs one update; called on daemon threads, for one user never twice at a time. What it raises is
            logged, and its context waits for another try, longer each time, up to `sweep_seconds`.
        memory_config: Limits and switches, or a function that returns them; `enabled`, `debounce_seconds`,
            `max_wait_seconds`, `update_spacing_seconds`, `retry_base_seconds`, `retry_max_seconds` and `sweep_seconds`
            are read whenever they count.
        clock: Returns seconds; only differences matter.
        start_thread: Runs a named function in the background; where it raises `RuntimeError`, as Python does when
            there is no thread to be had, what waits is kept and tried again.
    """

    def __init__(
        self,
        process: Process,
        *,
        memory_config: MemoryConfig | Callable[[], MemoryConfig] = MemoryConfig(),  # noqa: B008 - a frozen value
        clock: Callable[[], float] = time.monotonic,
        start_thread: StartThread = start_daemon_thread,
    ) -> None:
        self._process = process
        self._memory_config = memory_config
        self._clock = clock
        self._start_thread = start_thread
        # Guards all that follows; whoever waits for work or for the end waits on it.
        self._changed = threading.Condition()
        self._waiting: dict[UpdateKey, _Waiting] = {}
        self._busy_users: set[str] = set()
        self._earliest = float("-inf")
        self._scheduler = 0  # the process that has its thread: one that is forked from it has none
        self._closed = self._has_refused = False

    def add(self, context: ConversationContext) -> None:
        """Process the context after a quiet period of its conversation, at the latest after the maximum wait."""
        self._add(replace(context, at_once=False))

    def add_nowait(self, context: ConversationContext) -> None:
        """Process the context at once, on a background thread."""
        self._add(replace(context, at_once=True))

    def pending(self) -> tuple[ConversationContext, ...]:
        """Return what waits, in the order it was first added; running updates are not in it."""
        with self._changed:
            return tuple(one.context for one in self._waiting.values())

    def flush(self, timeout: float | None = None) -> bool:
        """Process all that waits without its quiet period, and wait for it; what fails then is left for later.

        Args:
            timeout: Wait at most so many seconds; `None` waits without end.

        Returns:
            `True` if nothing waits or runs any more.
        """
        end = time.monotonic() + (threading.TIMEOUT_MAX if timeout is None else timeout)
        with self._changed:
            now = self._clock()
            for key, one in self._waiting.items():
                context = replace(one.context, at_once=True)
                self._waiting[key] = replace(one, due=min(one.due, now), context=context)
            before = {key: one.failures for key, one in self._waiting.items()}
        while True:
            self.tick()
            with self._changed:
                left, (_, delay) = end - time.monotonic(), self._next()
                is_untried = any(one.failures <= before.get(key, 0) for key, one in self._waiting.items())
                if left <= 0 or not (is_untried or self._busy_users):
                    return not (self._waiting or self._busy_users)
                self._changed.wait(left if delay is None else min(left, delay))

    def close(self, timeout: float | None = None) -> bool:
        """Flush, then take nothing more; `True` if nothing was left. A timeout of 0 starts nothing of what waits.

        What is left is dropped here. It is still in the outbox if the graph added it, or `MemoryUpdater.process` was
        at work on it; in a program of one's own, `flush` first, and `pending()` tells what else would be lost.
        """
        if timeout is None or timeout > 0:
            self.flush(timeout)
        with self._changed:
            done = not (self._waiting or self._busy_users)
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        return done

    def tick(self) -> float | None:
        """Start what is due and return in how many seconds to look again (`None`: nothing waits for a time)."""
        while True:
            config = self._config()
            with self._changed:
                if not config.enabled:
                    self._waiting.clear()
                first, delay = self._next()
                if first is None or delay:
                    return delay
                key = first.context.key
                self._busy_users.add(key.user_id)
                self._earliest = self._clock() + config.update_spacing_seconds
                del self._waiting[key]
            if not self._can_start("palimpsest-update", partial(self._run, first)):
                with self._changed:
                    self._earliest = self._clock() + _NO_THREAD
                    self._end(key, first)

    def _add(self, context: ConversationContext) -> None:
        config = self._config()
        if not config.enabled:
            return
        with self._changed:
            if self._closed:
                if not self._has_refused:  # who closes it in the middle of a program would wait in vain
                    logger.warning("the update queue was closed: nothing is learned in this process any more")
                self._has_refused = True
                return
            now, old = self._clock(), self._waiting.get(context.key)
            first = old.first if old else now
            due = now if context.at_once else min(now + config.debounce_seconds, first + config.max_wait_seconds)
            if old:
                context = context.replacing(old.context)
                due = min(due, old.due) if old.due <= now else due  # what is already due does not wait again
            self._waiting[context.key] = _Waiting(context, first, due, old.failures if old else 0)
            self._changed.notify_all()
            needs_scheduler, self._scheduler = self._scheduler != os.getpid(), os.getpid()
        if needs_scheduler and not self._can_start("palimpsest-scheduler", self._schedule):
            self._scheduler = 0  # the next who adds tries again

    def _can_start(self, name: str, target: Callable[[], None]) -> bool:
        """Start a thread; without one to be had, neither a turn nor the scheduler may fail."""
        try:
            self._start_thread(name, target)
        except RuntimeError as error:
            logger.warning("thread %s could not be started: %s", name, type(error).__name__)
            return False
        return True

    def _config(self) -> MemoryConfig:
        return self._memory_config if isinstance(self._memory_config, MemoryConfig) else self._memory_config()

    def _next(self) -> tuple[_Waiting | None, float | None]:
        """Return what starts first and in how many seconds: what is due longest, of users without a running update.

        Updates of one user follow each other, of all agents, so that a user whose model hangs holds only one of the
        process's few places for model calls.
        """
        free = (one for key, one in self._waiting.items() if key.user_id not in self._busy_users)
        first = min(free, key=lambda one: (one.due, one.first), default=None)
        return first, None if first is None else max(0.0, max(first.due, self._earliest) - self._clock())

    def _end(self, key: UpdateKey, left: _Waiting | None) -> None:
        """Free the user whose update was taken, and let wait what is left of it, with what came for it since."""
        self._busy_users.discard(key.user_id)
        if left is not None and not self._closed:
            if newer := self._waiting.get(key):
                left = replace(left, context=newer.context.replacing(left.context), due=min(left.due, newer.due))
            self._waiting[key] = left
        self._changed.notify_all()

    def _run(self, taken: _Waiting) -> None:
        context, failures, again = taken.context, taken.failures + 1, None
        try:
            with tolerated(logger, "update of thread %s failed", context.thread_id, level=logging.ERROR):
                again, failures = self._process(context), 0
        finally:  # also where the thread is made to end, or its user would wait for ever
            config, now, left = self._config(), self._clock(), None
            with self._changed:
                if failures:
                    # A store that is back must not wait for its turns: a model's failures are the entries' own.
                    delay = min(retry_delay(failures, config), config.sweep_seconds)
                    left = replace(taken, due=now + delay, failures=failures)
                elif again is not None and context.key not in self._waiting:
                    left = _Waiting(context, now, now + again)  # what the update itself asked for
                self._end(context.key, left)

    def _schedule(self) -> None:
        try:
            while not self._closed:
                self.tick()
                with self._changed:  # what was added meanwhile is due now, or told to whoever waits here
                    if not self._closed:
                        self._changed.wait(self._next()[1])
        finally:
            self._scheduler = 0  # the next who adds starts another one
