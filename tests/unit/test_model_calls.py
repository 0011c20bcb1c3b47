import asyncio
import subprocess
import sys
import threading
from contextvars import ContextVar
from functools import partial

import pytest

from memory.daemons import in_daemon_thread
from memory.updates.model_calls import ModelCalls

PATIENCE = 10.0
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

    tasks = [asyncio.create_task(calls.arun(partial(call, number), PATIENCE)) for number in range(9)]
    assert await asyncio.to_thread(four.wait, PATIENCE)
    release.set()
    assert await asyncio.gather(*tasks) == list(range(9))
    assert most == 4


def test_B5_a_hung_call_is_given_up_and_its_place_is_free_again() -> None:
    calls, hung = ModelCalls(max_workers=1), threading.Event()
    with pytest.raises(TimeoutError):
        calls.run(lambda: hung.wait(PATIENCE), timeout=0.02)
    assert calls.run(lambda: "next", timeout=PATIENCE) == "next"
    hung.set()


async def test_B5_a_calls_error_reaches_the_one_who_waits() -> None:
    def fail() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError):
        ModelCalls().run(fail, PATIENCE)
    with pytest.raises(LookupError):
        await ModelCalls().arun(fail, PATIENCE)


def test_a_call_sees_no_context_of_the_run_that_asked() -> None:
    token = whose.set("the user's stream")
    assert in_daemon_thread(whose.get).result(PATIENCE) == "nobody's"
    whose.reset(token)


def test_B5_a_hung_call_does_not_keep_the_process_from_ending() -> None:
    program = """
import threading
from memory.updates.model_calls import ModelCalls

begun = threading.Event()

def hang():
    begun.set()
    threading.Event().wait()

threading.Thread(target=lambda: ModelCalls().run(hang, 3600), daemon=True).start()
begun.wait()
print("leaving")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "leaving\n"
