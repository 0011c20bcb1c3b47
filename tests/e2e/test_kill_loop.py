"""What `kill -9` at any moment, SIGTERM, SIGINT and a hung model leave of the memory: everything, once."""

import asyncio
import json
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import IO, Any

import pytest

from graphs.persistence.sqlite_saver import open_checkpointer
from graphs.persistence.sqlite_store import open_store
from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory.context.running_summary import RunningSummary
from memory.door import arun
from memory.facts.store import FactStore
from memory.journal.journal import read_journal
from memory.namespaces import Owner
from memory.updates.outbox import due_owners
from tests.e2e.support.talker import TURNS_A_THREAD, Orders
from tests.stories.serving import PROJECT

LOCAL = Owner.of("local")
PATIENCE = 180.0

SLACK_SECONDS = 120
"""Beyond its grace period, for a busy machine to end a process; what hangs, hangs for an hour."""


class Talker:
    """A talking process, and what it said so far."""

    def __init__(self, orders: Orders, errors: IO[str]) -> None:
        command = [sys.executable, "-m", "tests.e2e.support.talker", json.dumps(vars(orders))]
        self.process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.lines: list[str] = []
        self._said = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            with self._said:
                self.lines.append(line.strip())
                self._said.notify_all()

    def wait_for(self, pattern: str, times: int = 1) -> None:
        """Return once so many lines match."""

        def is_said() -> bool:
            return sum(1 for line in self.lines if re.fullmatch(pattern, line)) >= times

        with self._said:
            assert self._said.wait_for(is_said, PATIENCE)

    def written(self) -> list[int]:
        return [int(line.split()[1]) for line in self.lines if line.startswith("written")]

    def answered(self) -> list[int]:
        """The turns that ended: written down, or not in time, and then by a later turn or by a look."""
        return [int(line.split()[1]) for line in self.lines if line.startswith(("written", "forgotten"))]

    def end(self, number: signal.Signals | None = None) -> int:
        """Send the signal, if any, wait for the end, and return the exit code."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self.process.stdout
        self.process.stdout.close()
        return code


@contextmanager
def talking(folder: Path, **orders: Any) -> Iterator[Talker]:
    with (folder / "errors.log").open("a") as errors:
        talker = Talker(Orders(folder=str(folder), **orders), errors)
        try:
            yield talker
        finally:
            if talker.process.poll() is None:
                talker.end(signal.SIGKILL)


def drain(folder: Path, **orders: Any) -> None:
    with talking(folder, drain=True, **orders) as talker:
        assert talker.end() == 0, (folder / "errors.log").read_text()
        assert "drained" in talker.lines


def drain_by_two_at_once(folder: Path, **orders: Any) -> None:
    orders |= {"drain": True, "thinks": 0.1}
    with talking(folder, **orders) as one, talking(folder, **orders) as other:
        assert (one.end(), other.end()) == (0, 0), (folder / "errors.log").read_text()


def facts(folder: Path) -> list[str]:
    async def read() -> list[str]:
        async with open_store(folder / "store.sqlite") as store:
            assert await arun(store, due_owners(inf)) == []
            return [fact.content for fact in await FactStore(store, LOCAL).alist()]

    return asyncio.run(read())


def journaled(folder: Path) -> set[int]:
    """The numbers of the turns that the journal tells of, each message once."""

    async def read() -> list[str]:
        async with open_store(folder / "store.sqlite") as store:
            entries = await arun(store, read_journal(LOCAL))
            ids = [message.id for entry in entries for message in entry.messages]
            assert len(ids) == len(set(ids))
            return [message.text for entry in entries for message in entry.messages]

    return {int(number) for text in asyncio.run(read()) for number in re.findall(r"I like thing(\d+)", text)}


def said(folder: Path, threads: int, **orders: Any) -> tuple[list[int], int]:
    """The numbers of the turns that are in the newest checkpoints of the threads, and how many have a summary."""

    async def read() -> tuple[list[int], int]:
        numbers: list[int] = []
        summaries = 0
        async with open_checkpointer(folder / "checkpoints.sqlite") as saver:
            talked = Orders(folder=str(folder), **orders)
            graph = talked.chat(MemoryService(Settings(), talked.models()), checkpointer=saver)
            for thread in range(threads):
                values = (await graph.aget_state({"configurable": {"thread_id": f"T{thread}"}})).values
                texts = [message.text for message in values.get("messages", []) if message.type == "human"]
                numbers += [int(number) for text in texts for number in re.findall(r"I like thing(\d+)", text)]
                summaries += isinstance(talked.kept(values)[1], RunningSummary)
        return numbers, summaries

    return asyncio.run(read())


def check_files(folder: Path) -> None:
    for name in ("store.sqlite", "checkpoints.sqlite"):
        connection = sqlite3.connect(folder / name)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


def things(numbers: list[int]) -> list[str]:
    return sorted(f"Likes thing{number}" for number in numbers)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("door", ["graph", "agent", "agent sync", "deep agent", "deep agent sync"])
def test_killed_at_random_points_every_answered_turn_is_remembered_once(tmp_path: Path, kills: int, door: str) -> None:
    if door.startswith("deep"):
        pytest.importorskip("deepagents")
    random.seed(7)
    written: list[int] = []
    answered: list[int] = []
    first = 0
    for kill in range(max(3, kills)):
        with talking(tmp_path, first=first, turns=100, thinks=0.2, door=door) as talker:
            # Once a whole thread, which has a summary then, however slow the machine is.
            talker.wait_for(r"written \d+", 1 if kill else TURNS_A_THREAD)
            time.sleep(random.uniform(0, 1.5))
            talker.end(signal.SIGKILL)
            written += talker.written()
            answered += talker.answered()
            # the killed turn may or may not be written down; it is never said again
            first = answered[-1] + 2
    drain_by_two_at_once(tmp_path)
    check_files(tmp_path)
    learnt = facts(tmp_path)
    assert len(learnt) == len(set(learnt))
    assert set(things(written)) <= set(learnt)
    assert len(learnt) <= len(answered) + max(3, kills)
    assert len(written) > kills
    numbers, summaries = said(tmp_path, threads=first // TURNS_A_THREAD + 1, door=door)
    assert len(numbers) == len(set(numbers))
    assert set(written) <= set(numbers)
    assert summaries
    assert set(written) <= journaled(tmp_path) <= set(range(first))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_told_to_stop_drains_first(tmp_path: Path, number: signal.Signals) -> None:
    turns = list(range(TURNS_A_THREAD))
    with talking(tmp_path, turns=len(turns), debounce=3600.0, stays=3600.0) as talker:
        talker.wait_for("talked")
        began = time.monotonic()
        talker.end(number)
        assert time.monotonic() - began < Orders(folder="").grace + SLACK_SECONDS
        assert talker.lines[-1] == "stopped"
    assert sorted(facts(tmp_path)) == things(turns)
    assert said(tmp_path, threads=1) == (turns, 1)
