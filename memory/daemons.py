"""Calls that nothing waits for at exit: a hung one must not keep the process alive."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_daemon_thread(call: Callable[[], T], name: str = "palimpsest-model") -> Future[T]:
    """Start the call on a daemon thread of its own, with no context variables of the caller, and return its future."""
    future: Future[T] = Future()

    def work() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            value = call()
        except BaseException as error:  # whatever it is belongs to the one who waits, not to this thread
            future.set_exception(error)
        else:
            future.set_result(value)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future
