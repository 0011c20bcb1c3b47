"""Debounce per conversation with a maximum wait, on one daemon thread; it calls the function it was given.

The queue is a trigger, not the record: it holds contexts in memory only, and they are gone with the process. The graph
writes a turn down in the outbox before it adds a context, so that nothing is lost with it; in a program of one's own, a
context is written down when `MemoryUpdater.process` gets it, and until then the queue alone has it. One conversation's
quiet period never waits for another's, updates of one user run one after the other and those of different users side by
side. It spaces their starts itself, as the function it was given may be anybody's; `memory.updates.effects.UpdateGate`
spaces what one drain makes of several conversations, and what sweeps do beside the queue.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from memory.config import MemoryConfig
from memory.effects import tolerated
from memory.updates.schedule import ConversationContext, Pending, UpdateKey, enqueue, failed, plan, put_back

__all__ = ["ConversationContext", "MemoryUpdateQueue", "Process", "StartThread", "start_daemon_thread"]

logger = logging.getLogger(__name__)

# A flush without a known wake-up looks again after so many seconds; nothing depends on it but a lost notification.
_LOOK_AGAIN = 1.0
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


class MemoryUpdateQueue:
    """Pending updates of this process, one for each `(thread_id, user_id, agent_name)`.

    Args:
        process: Runs one update; called on daemon threads, for one user never twice at a time. What it raises is
            logged, and its context waits for another try, longer each time.
        memory_config: Limits and switches, or a function that returns them; `enabled`, `debounce_seconds`,
            `max_wait_seconds`, `update_spacing_seconds`, `retry_base_seconds` and `retry_max_seconds` are read
            whenever they count.
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
        self._pending: dict[UpdateKey, Pending] = {}
        self._busy_users: set[str] = set()
        self._earliest = float("-inf")
        self._wake: float | None = None
        self._has_news = False
        self._has_scheduler = False
        self._closed = self._has_refused = False

    def add(self, context: ConversationContext) -> None:
        """Process the context after a quiet period of its conversation, at the latest after the maximum wait."""
        self._add(context, quiet=True)

    def add_nowait(self, context: ConversationContext) -> None:
        """Process the context at once, on a background thread."""
        self._add(context, quiet=False)

    def pending(self) -> tuple[ConversationContext, ...]:
        """Return what waits, in the order it was first added; running updates are not in it."""
        with self._changed:
            return tuple(one.context for one in self._pending.values())

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
            self._pending = {
                key: replace(one, due=min(one.due, now), context=replace(one.context, at_once=True))
                for key, one in self._pending.items()
            }
            before = {key: one.failures for key, one in self._pending.items()}
        while True:
            delay = self.tick()
            with self._changed:
                left = end - time.monotonic()
                # What has failed since is left for later.
                is_untried = any(one.failures <= before.get(key, 0) for key, one in self._pending.items())
                if left <= 0 or not (is_untried or self._busy_users):
                    return not (self._pending or self._busy_users)
                self._changed.wait(min(left, _LOOK_AGAIN if delay is None else delay))

    def close(self, timeout: float | None = None) -> bool:
        """Flush, then take nothing more; `True` if nothing was left. A timeout of 0 starts nothing of what waits.

        What is left is dropped here. It is still in the outbox if the graph added it, or `MemoryUpdater.process` was
        at work on it; in a program of one's own, `flush` first, and `pending()` tells what else would be lost.
        """
        done = self.flush(timeout) if timeout is None or timeout > 0 else False
        with self._changed:
            done = done or not (self._pending or self._busy_users)
            self._closed = True
            self._pending.clear()
            self._tell()
        return done

    def tick(self) -> float | None:
        """Start what is due and return in how many seconds to look again (`None`: nothing waits for a time)."""
        while (taken := self._begin()) is not None:
            if not self._can_start("palimpsest-update", partial(self._run, taken)):
                with self._changed:
                    self._earliest = self._clock() + _NO_THREAD
                    self._end(taken, taken)
        with self._changed:
            return None if self._wake is None else max(0.0, self._wake - self._clock())

    def _add(self, context: ConversationContext, quiet: bool) -> None:
        config = self._config()
        if not config.enabled:
            return
        with self._changed:
            if self._closed:
                if not self._has_refused:  # who closes it in the middle of a program would wait in vain
                    logger.warning("the update queue was closed: nothing is learned in this process any more")
                self._has_refused = True
                return
            one = enqueue(self._clock(), self._pending.get(context.key), context, config, quiet)
            self._pending[context.key] = one
            if self._wake is None or one.due < self._wake:  # else the scheduler does not sleep for too long
                self._tell()
            needs_scheduler, self._has_scheduler = not self._has_scheduler, True
        if needs_scheduler and not self._can_start("palimpsest-scheduler", self._schedule):
            self._lose_scheduler()

    def _can_start(self, name: str, target: Callable[[], None]) -> bool:
        """Start a thread; without one to be had, neither a turn nor the scheduler may fail."""
        try:
            self._start_thread(name, target)
        except RuntimeError as error:
            logger.warning("thread %s could not be started: %s", name, type(error).__name__)
            return False
        return True

    def _end(self, taken: Pending, left: Pending | None) -> None:
        """Free the user whose update was taken, and let wait what is left of it."""
        key = taken.context.key
        self._busy_users.discard(key.user_id)
        if left is not None and not self._closed:
            self._pending[key] = put_back(left, self._pending.get(key))
        self._tell()

    def _tell(self) -> None:
        self._has_news = True
        self._changed.notify_all()

    def _config(self) -> MemoryConfig:
        return self._memory_config if isinstance(self._memory_config, MemoryConfig) else self._memory_config()

    def _begin(self) -> Pending | None:
        """Take the update that starts now, if any, and note when to look again."""
        config = self._config()
        with self._changed:
            if not config.enabled:
                self._pending.clear()
            now = self._clock()
            key, self._wake = plan(now, self._pending, self._busy_users, self._earliest)
            if key is None:
                return None
            self._busy_users.add(key.user_id)
            self._earliest = now + config.update_spacing_seconds
            return self._pending.pop(key)

    def _run(self, taken: Pending) -> None:
        again, is_done = None, False
        try:
            # What failed waits for another try, and others go on.
            with tolerated(logger, "update of thread %s failed", taken.context.thread_id, level=logging.ERROR):
                again, is_done = self._process(taken.context), True
        finally:  # also where the thread is made to end, or its user would wait for ever
            config, now = self._config(), self._clock()
            with self._changed:
                left = None if is_done else failed(taken, now, config)
                if again is not None and taken.context.key not in self._pending:
                    left = Pending(taken.context, now, now + again)  # what the update itself asked for
                self._end(taken, left)

    def _schedule(self) -> None:
        try:
            while not self._closed:
                delay = self.tick()
                with self._changed:
                    if not self._has_news:
                        self._changed.wait(delay)
                    self._has_news = False
        finally:
            self._lose_scheduler()

    def _lose_scheduler(self) -> None:
        """Let the next add start another one."""
        with self._changed:
            self._has_scheduler = False
