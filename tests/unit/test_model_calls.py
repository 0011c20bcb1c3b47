import asyncio
import contextlib
import threading
from contextvars import ContextVar
from functools import partial

import pytest

from memory.door import in_daemon_thread
from memory.updates.updater import ModelCalls

PATIENCE = 60.0
whose: ContextVar[str] = ContextVar("whose", default="nobody's")


async def test_B5_at_most_four_calls_run_at_a_time_and_the_loop_stays_free() -> None:
    calls, lock, release = ModelCalls(), threading.Lock(), threading.Event()
    running: set[int] = set()
    most = 0
    four = threading.Event()

    def call(number: int) -> int:
        nonlocal most
        with lock:
            running.add(number)
            most = max(most, len(running))
            if len(running) == 4:
                four.set()
        assert release.wait(PATIENCE)
        with lock:
            running.discard(number)
        return number

    tasks = [asyncio.create_task(asyncio.to_thread(calls.run, partial(call, number), PATIENCE)) for number in range(9)]
    assert await asyncio.to_thread(four.wait, PATIENCE)
    release.set()
    assert await asyncio.gather(*tasks) == list(range(9))
    assert most == 4


def test_B5_calls_that_hang_do_not_pile_up_and_the_rest_goes_on_when_one_ends() -> None:
    calls, release, begun = ModelCalls(), threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        begun.release()
        assert release.wait(PATIENCE)

    for _ in range(12):
        with pytest.raises(TimeoutError):
            calls.run(hang, timeout=0.02)
    for _ in range(8):
        assert begun.acquire(timeout=PATIENCE)  # a call may be given up before its thread has run at all
    with pytest.raises(TimeoutError, match="every place"):
        calls.run(lambda: "no place", timeout=0.02)
    assert not begun.acquire(blocking=False)
    release.set()
    answer = ""
    while not answer:  # the last threads are about to end
        with contextlib.suppress(TimeoutError):
            answer = calls.run(lambda: "next", timeout=PATIENCE)


async def test_B5_one_who_waits_for_a_place_fails_when_hung_calls_took_the_last() -> None:
    calls = ModelCalls(max_workers=1, max_abandoned=0)
    begun, release = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        release.wait(PATIENCE)

    hung = asyncio.create_task(asyncio.to_thread(calls.run, hang, 0.2))
    await asyncio.to_thread(begun.wait, PATIENCE)
    waiting = asyncio.create_task(asyncio.to_thread(calls.run, lambda: "next", 0.2))
    with pytest.raises(TimeoutError):
        await hung
    with pytest.raises(TimeoutError, match="every place"):
        await waiting
    release.set()


def test_a_call_sees_no_context_of_the_run_that_asked() -> None:
    token = whose.set("the user's stream")
    assert in_daemon_thread(whose.get).result(PATIENCE) == "nobody's"
    whose.reset(token)
