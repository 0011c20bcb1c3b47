"""Three processes over one Postgres, or one folder, killed with `kill -9` at random: nothing is lost, nothing twice."""

import asyncio
import random
import re
import signal
import time
from contextlib import ExitStack
from math import inf
from pathlib import Path
from typing import Any

import pytest

from memory.door import arun
from memory.facts.store import FactStore
from memory.journal.journal import read_journal
from memory.updates.outbox import due_owners, read_entries
from tests.e2e.support.talker import Orders
from tests.e2e.test_kill_loop import LOCAL, Talker, drain, drain_by_two_at_once, talking, things
from tests.postgres import Postgres

PROCESSES = 3
APART = 10_000  # a process's turns have numbers, and threads, of their own


class Crowd:
    """Processes that talk at the same time, as one user, each in threads of its own."""

    def __init__(self, folder: Path, stack: ExitStack, **orders: Any) -> None:
        self._folder, self._stack, self._orders = folder, stack, orders
        self.written: set[int] = set()
        self.answered: set[int] = set()
        self.kills = 0
        self._talkers = [self._start(APART * n) for n in range(PROCESSES)]

    def _start(self, first: int) -> Talker:
        return self._stack.enter_context(talking(self._folder, first=first, turns=1000, **self._orders))

    def wait(self, times: int = 1) -> None:
        """Return once every process has written so many turns down."""
        for talker in self._talkers:
            talker.wait_for(r"written \d+", times)

    def kill(self, at: int) -> None:
        talker = self._talkers[at]
        assert talker.end(signal.SIGKILL) == -signal.SIGKILL, (self._folder / "errors.log").read_text()[-2000:]
        self.kills += 1
        self.written.update(talker.written())
        self.answered.update(talker.answered())

    def restart(self, at: int) -> None:
        # The killed turn may or may not be written down; it is never said again.
        self._talkers[at] = self._start(max(self._talkers[at].answered()) + 2)

    def end(self) -> None:
        for at in range(PROCESSES):
            self.kill(at)


def kept(folder: Path, database: str) -> tuple[list[str], list[str], list[str]]:
    """Return the facts, and ids and texts of the journal, once nothing waits any more."""

    async def read() -> tuple[list[str], list[str], list[str]]:
        async with Orders(folder=str(folder), database=database).opened() as (store, _):
            assert await arun(store, due_owners(inf)) == []
            assert await arun(store, read_entries(LOCAL)) == []
            facts = [fact.content for fact in await FactStore(store, LOCAL).alist()]
            journal = await arun(store, read_journal(LOCAL))
            messages = [message for entry in journal for message in entry.messages]
            return facts, [message.id for message in messages], [message.text for message in messages]

    return asyncio.run(read())


def numbers(texts: list[str]) -> set[int]:
    return {int(number) for text in texts for number in re.findall(r"I like thing(\d+)", text)}


@pytest.fixture(params=["postgres", "one folder"])
def database(request: pytest.FixtureRequest) -> str:
    """Where they talk; empty for files."""
    if request.param == "one folder":
        return ""
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.database()


@pytest.mark.timeout(3600)
def test_killed_at_random_three_processes_lose_nothing_and_double_nothing(
    tmp_path: Path, database: str, kills: int
) -> None:
    random.seed(13)
    with ExitStack() as stack:
        crowd = Crowd(tmp_path, stack, thinks=0.1, database=database)
        for _ in range(max(3, kills)):
            crowd.wait()
            time.sleep(random.uniform(0, 1.5))
            at = random.randrange(PROCESSES)
            crowd.kill(at)
            crowd.restart(at)
        crowd.wait(2)
        crowd.end()
    drain_by_two_at_once(tmp_path, database=database)

    facts, ids, texts = kept(tmp_path, database)
    assert len(facts) == len(set(facts))
    assert set(things(sorted(crowd.written))) <= set(facts)
    assert len(facts) <= len(crowd.answered) + crowd.kills  # a killed turn may have been written down
    assert len(ids) == len(set(ids))
    assert crowd.written <= numbers(texts)
    assert len(crowd.written) > crowd.kills


@pytest.mark.timeout(900)
def test_killed_at_random_three_processes_keep_to_the_limit_of_facts_at_any_moment(
    tmp_path: Path, database: str
) -> None:
    async def look(crowd: Crowd) -> None:
        async with Orders(folder=str(tmp_path), database=database).opened() as (store, _):
            written = asyncio.create_task(asyncio.to_thread(crowd.wait, 4))
            while not written.done():
                assert len(await FactStore(store, LOCAL).alist()) <= 5
            await written

    with ExitStack() as stack:
        crowd = Crowd(tmp_path, stack, max_facts=5, database=database)
        asyncio.run(look(crowd))
        crowd.end()
    drain(tmp_path, max_facts=5, database=database)
    assert len(kept(tmp_path, database)[0]) == 5
