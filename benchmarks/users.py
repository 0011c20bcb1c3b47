"""What a turn costs where many users are remembered: 1,000 users with 500 facts each against 10, on the SQLite store.

    python -m benchmarks.users [--users 1000] [--facts 500] [--turns 300]

The CPU time of the process is measured, threads included, without a model. Turns with few and with many users
alternate, so that a slow moment hits both. All users had a turn before; of the many, each turn takes another one.
"""

import argparse
import asyncio
import gc
import random
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore, PutOp

from benchmarks.measuring import Row, megabytes, milliseconds, progress, table
from graphs.chat import build_graph
from graphs.persistence.sqlite_store import open_store
from graphs.process.embedders import NONE
from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.context.tokens import shared_counter
from memory.facts.fact import Fact, fact_ids, to_item
from memory.namespaces import Owner
from tests.fakes import RecordingModel

FEW = 10
SEED = 7
RESAMPLES = 1000
GOAL = 1.2
_AT = "2026-01-01T00:00:00+00:00"
# So many different words are in what one person has said of themselves; some are common, most are not.
_WORDS = [f"{first}{middle}{last}" for first in "bdfgklmnprst" for middle in ("a", "ei", "ou") for last in "bdgklmnrst"]


def facts_of(user: int, count: int) -> list[Fact]:
    """Return facts of ten words each, others for each user."""
    chance = random.Random(f"{SEED}.{user}")
    found = []
    for number in range(count):
        text = f"User {' '.join(_WORDS[int(len(_WORDS) * chance.random() ** 2)] for _ in range(9))} {number}"
        fact = Fact(
            id=next(fact_ids(str(user), text)),
            content=text,
            category="knowledge",
            confidence=0.8,
            created_at=_AT,
            updated_at=_AT,
        )
        found.append(fact)
    return found


class Users:
    """A process that serves so many users, with a store of their own in a folder."""

    def __init__(self, store: BaseStore, count: int, facts: int) -> None:
        self._store, self._count, self._facts = store, count, facts
        model = RecordingModel(respond=lambda _: "Noted, that is good to know.")
        memory = MemoryConfig(debounce_seconds=3600, max_wait_seconds=7200)
        self.service = MemoryService(Settings(memory=memory, embedder=NONE), lambda *_: model)
        self._graph = build_graph(service=self.service, tools=()).compile(checkpointer=InMemorySaver(), store=store)
        self._turns = 0

    async def fill(self) -> None:
        """Write everybody's facts, and let everybody have a turn."""
        for user in range(self._count):
            namespace = Owner.of(str(user)).namespace("facts")
            rows = [(fact.id, to_item(fact)) for fact in facts_of(user, self._facts)]
            await self._store.abatch([PutOp(namespace, key, value, index=False) for key, value in rows])
        for user in range(self._count):
            await self.turn(user)

    async def turn(self, user: int) -> float:
        """Return the milliseconds of CPU that one user's turn takes, in a new thread."""
        self._turns += 1
        asked = HumanMessage(" ".join(random.Random(self._turns).sample(_WORDS, 8)))
        who = {"thread_id": str(self._turns), "langgraph_auth_user_id": str(user)}
        began = time.process_time()
        await self._graph.ainvoke({"messages": [asked]}, {"configurable": who})
        return 1000 * (time.process_time() - began)

    def held(self) -> tuple[int, int]:
        """Return of how many users an index is held, and how many bytes all of them take."""
        indexes = self.service.recalling._stores[self._store]
        return len(indexes), sum(each.size() for each in indexes.values())


async def measured(users: int, facts: int, turns: int) -> tuple[list[float], list[float], tuple[int, int]]:
    """Return the milliseconds of turns with few users and with many, and what is held of the many."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides = []
        for count in (FEW, users):
            progress(f"{count:,} users with {facts:,} facts each")
            store = await stack.enter_async_context(open_store(folder / f"{count}.sqlite"))
            sides.append(Users(store, count, facts))
            await sides[-1].fill()
        gc.collect()
        progress(f"{turns:,} turns with each")
        few, many = [], []
        others = random.Random(SEED).sample(range(users), min(turns, users))
        for number in range(turns):
            few.append(await sides[0].turn(number % FEW))
            many.append(await sides[1].turn(others[number % len(others)]))
        return few, many, sides[1].held()


def interval(few: list[float], many: list[float]) -> tuple[float, float]:
    """Return the bootstrap 95 % interval of the ratio of the medians."""
    chance = random.Random(SEED)
    ratios = sorted(
        statistics.median(chance.choices(many, k=len(many))) / statistics.median(chance.choices(few, k=len(few)))
        for _ in range(RESAMPLES)
    )
    return ratios[round(0.025 * RESAMPLES)], ratios[round(0.975 * RESAMPLES) - 1]


def main() -> int:
    """Measure, print the table, and return the exit code: 1 when the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--facts", type=int, default=500)
    parser.add_argument("--turns", type=int, default=300)
    options = parser.parse_args()
    shared_counter().tokenizer.warm_up()
    few, many, (held, size) = asyncio.run(measured(options.users, options.facts, options.turns))
    ours, peer = statistics.median(many), statistics.median(few)
    row = Row(
        f"turn, {options.users:,} users with {options.facts} facts, against {FEW}",
        milliseconds(ours / 1000),
        milliseconds(peer / 1000),
        ours / peer,
        GOAL,
    )
    low, high = interval(few, many)
    print(table([row]))
    print(f"n={len(few)} each, 95 % interval of the ratio {low:.3f} to {high:.3f}.")
    print(f"In memory: {megabytes(size)} for {held:,} users, {size / held / 1e6:.2f} MB a user.")
    return 0 if row.holds(1) else 1


if __name__ == "__main__":
    sys.exit(main())
