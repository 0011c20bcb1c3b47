"""A write is one transaction of one user: nothing is lost, doubled or half done, whoever writes beside it."""

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore

from palimpsest import FactStore, MemoryConfig, open_store

CAP = MemoryConfig(max_facts=12)

_WRITER = """
import asyncio, sys
from palimpsest import FactStore, MemoryConfig, open_store
async def main(path, name):
    async with open_store(path) as store:
        facts = FactStore(store, "ada", config=MemoryConfig(max_facts=12))
        for n in range(15):
            await facts.acreate(f"Likes {name}{n}", "preference", 0.5)
            await facts.acreate(f"Likes both{n}", "preference", 0.9)
asyncio.run(main(*sys.argv[1:]))
"""

_FORKING = """
import os, sys
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from palimpsest import FactStore
class Forking(InMemoryStore):
    child = None
    def batch(self, ops):
        ops = list(ops)
        if any(isinstance(op, PutOp) for op in ops) and self.child is None:
            self.child = os.fork()
            if self.child == 0:
                FactStore(InMemoryStore(), "ada").create("Likes figs", "preference", 0.5)
                os._exit(0)
            ended = os.waitpid(self.child, 0)[1]
            assert ended == 0
        return super().batch(ops)
FactStore(Forking(), "ada").create("Likes figs", "preference", 0.5)
"""


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[BaseStore]:
    if kind == "memory":
        yield InMemoryStore()
    else:
        async with open_store(folder / "store.sqlite") as store:
            yield store


async def contents(store: BaseStore) -> Counter[str]:
    return Counter(fact.content for fact in await FactStore(store, "ada").alist())


async def test_two_processes_over_one_file_double_nothing_and_keep_to_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    async with open_store(file) as store:
        ends = asyncio.gather(*[(await begun(file, name)).wait() for name in ("figs", "plums")])
        while not ends.done():
            held = await contents(store)
            assert held.total() <= CAP.max_facts
            assert set(held.values()) <= {1}
        assert await ends == [0, 0]
        assert (await contents(store)).total() == CAP.max_facts


async def begun(file: Path, name: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-c", _WRITER, file, name)


async def test_a_process_that_is_killed_while_it_writes_leaves_whole_facts_and_no_lock(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    async with open_store(file) as store:
        program = await begun(file, "figs")
        while not await contents(store):
            assert program.returncode is None
        program.kill()
        await program.wait()
        facts = FactStore(store, "ada", config=CAP)
        await facts.acreate("Likes limes", "preference", 1.0)
        for fact in await facts.alist():
            assert [each.content for each in await facts.ahistory(fact.id)][-1] == fact.content


async def test_a_process_that_is_forked_in_the_middle_of_a_write_waits_for_nobody_of_its_parent() -> None:
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", _FORKING)
    assert await program.wait() == 0


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_threads_and_the_event_loop_write_beside_each_other(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        facts = FactStore(store, "ada")

        def write(name: str) -> None:
            for n in range(10):
                facts.create(f"Likes {name}{n}", "preference", 0.5)
                facts.create("Likes all", "preference", 0.5)

        threads = [threading.Thread(target=write, args=(name,)) for name in ("figs", "plums", "limes")]
        for each in threads:
            each.start()
        await asyncio.gather(*(facts.acreate(f"Likes kiwis{n}", "preference", 0.5) for n in range(10)))
        for each in threads:
            await asyncio.to_thread(each.join)
        held = await contents(store)
        assert set(held.values()) == {1}
        assert held.total() == 41
        (common,) = [fact for fact in await facts.alist() if fact.content == "Likes all"]
        assert (await facts.aconfirmations(common.id)).count == 29


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_write_that_is_cancelled_is_there_whole_or_not_at_all(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        facts = FactStore(store, "ada", config=MemoryConfig(max_facts=1))
        await facts.acreate("Likes figs", "preference", 0.5)
        for steps in range(40):
            (before,) = await facts.alist()
            writing = asyncio.ensure_future(facts.aupdate(before.id, content=f"Likes {steps} figs"))
            for _ in range(steps):
                await asyncio.sleep(0)
            writing.cancel()
            await asyncio.wait({writing})
            # A write that was cancelled at its commit may end between two of these reads.
            (first,) = await facts.alist()
            said = [fact.content for fact in await facts.ahistory(before.id)]
            (last,) = await facts.alist()
            assert (said[-1], len(said)) in [(fact.content, fact.revision) for fact in (first, last)]


async def test_a_synchronous_call_on_the_loop_of_its_store_says_at_once_what_to_do(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.sqlite") as store:
        with pytest.raises(asyncio.InvalidStateError, match="await its async twin"):
            FactStore(store, "ada").create("Likes figs", "preference", 0.5)
        await asyncio.to_thread(FactStore(store, "ada").create, "Likes figs", "preference", 0.5)
        assert await contents(store) == {"Likes figs": 1}


def test_a_write_to_a_store_whose_loop_has_ended_says_so_and_begins_nothing(tmp_path: Path) -> None:
    async def stored() -> BaseStore:
        async with open_store(tmp_path / "store.sqlite") as store:
            return store

    # A coroutine that nobody awaits would fail this test.
    with pytest.raises(RuntimeError, match="has ended"):
        FactStore(asyncio.run(stored()), "ada").create("Likes figs", "preference", 0.5)


async def test_one_users_write_waits_for_no_other_user() -> None:
    class Held(InMemoryStore):
        async def abatch(self, ops: Iterable[Op]) -> list[Result]:
            batch = list(ops)
            if any("Likes figs" in repr(op) for op in batch):
                writes.set()
                await goes_on.wait()
            return await super().abatch(batch)

    writes, goes_on = asyncio.Event(), asyncio.Event()
    store = Held()
    held = asyncio.ensure_future(FactStore(store, "ada").acreate("Likes figs", "preference", 0.5))
    await writes.wait()
    waits = asyncio.ensure_future(FactStore(store, "ada").acreate("Likes plums", "preference", 0.5))
    for content in ("Likes kiwis", "Likes limes"):  # time enough for who waits
        await FactStore(store, "bob").acreate(content, "preference", 0.5)
    assert not waits.done()
    goes_on.set()
    await asyncio.gather(held, waits)
    assert await contents(store) == {"Likes figs": 1, "Likes plums": 1}


async def test_many_writers_of_one_user_keep_no_other_waiting_for_the_file(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.sqlite") as store:
        many = [
            asyncio.ensure_future(FactStore(store, "ada").acreate(f"Likes figs {n}", "preference", 0.5))
            for n in range(20)
        ]
        await asyncio.sleep(0)  # they have begun
        await FactStore(store, "bob").acreate("Likes plums", "preference", 0.5)
        assert sum(each.done() for each in many) < 5
        await asyncio.gather(*many)


async def test_a_store_whose_search_never_ends_well_is_told_as_that_and_no_write_counts_as_done() -> None:
    class Disturbed(InMemoryStore):
        def batch(self, ops: Iterable[Op]) -> list[Result]:
            raise RuntimeError("dictionary changed size during iteration")

        async def abatch(self, ops: Iterable[Op]) -> list[Result]:
            return self.batch(ops)

    facts = FactStore(Disturbed(), "ada")
    with pytest.raises(RuntimeError, match="during iteration"):
        await facts.acreate("Likes figs", "preference", 0.5)
    with pytest.raises(RuntimeError, match="during iteration"):
        facts.create("Likes figs", "preference", 0.5)
