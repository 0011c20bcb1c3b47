"""The SQLite files themselves: who may read what people said."""

import asyncio
from pathlib import Path

import pytest

from graphs.persistence.sqlite_store import open_store


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_file_that_a_group_reads_by_choice_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(0o755)  # a folder that was there before, and that everybody may read
    path = tmp_path / "store.sqlite"
    path.touch(mode=mode)

    async def write() -> None:
        async with open_store(path) as store:
            await store.aput(("people",), "ada", {"content": "Likes figs"})

    asyncio.run(write())
    assert path.stat().st_mode & 0o777 == mode
