"""Real processes on one SQLite file: nothing lost, nothing doubled."""

import asyncio
import subprocess
import sys
from pathlib import Path

from graphs.persistence.sqlite_store import open_store
from memory.facts.fact import Fact
from memory.facts.store import FactStore

HERE = Path(__file__).parents[2]
WRITER = """
import asyncio, sys
from pathlib import Path
from graphs.persistence.sqlite_store import open_store
from memory.config import MemoryConfig
from memory.facts.store import FactStore

async def main(path: str, number: str) -> None:
    async with open_store(Path(path)) as store:
        facts = FactStore(store, "ada", config=MemoryConfig(max_facts=int(sys.argv[3])))
        for n in range(10):
            await facts.acreate(f"shared {n}", "context", 0.5)
            await facts.acreate(f"own {number}-{n}", "context", 0.9)

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def write_from_processes(path: Path, processes: int, max_facts: int) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n), str(max_facts)], cwd=HERE)
        for n in range(processes)
    ]
    assert [process.wait(240) for process in running] == [0] * processes


async def read(path: Path) -> list[Fact]:
    async with open_store(path) as store:
        return await FactStore(store, "ada").alist()


def test_four_processes_writing_the_same_and_different_facts_lose_and_double_none(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"

    write_from_processes(path, 4, max_facts=500)

    facts = asyncio.run(read(path))
    expected = {f"shared {n}" for n in range(10)} | {f"own {process}-{n}" for process in range(4) for n in range(10)}
    assert sorted(fact.content for fact in facts) == sorted(expected)
    assert len({fact.id for fact in facts}) == len(facts)


def test_F8_four_processes_never_pass_the_limit_for_good(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"

    write_from_processes(path, 4, max_facts=12)

    assert len(asyncio.run(read(path))) <= 12
