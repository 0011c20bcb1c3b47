"""The SQLite files themselves: who may read what people said."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graphs.persistence.sqlite_saver import open_checkpointer
from graphs.persistence.sqlite_store import open_store

STORE = ("store.sqlite", "store.sqlite-shm", "store.sqlite-wal")


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A folder that was there before, and that everybody may read."""
    tmp_path.chmod(0o755)
    return tmp_path


def modes(folder: Path) -> Iterator[tuple[str, int]]:
    return ((path.name, path.stat().st_mode & 0o777) for path in sorted(folder.iterdir()))


async def test_only_their_owner_reads_the_files(open_folder: Path) -> None:
    checkpoints = open_checkpointer(open_folder / "checkpoints.sqlite")
    async with open_store(open_folder / "store.sqlite") as store, checkpoints:
        await store.aput(("people",), "ada", {"content": "Likes figs"})
        found = dict(modes(open_folder))
    assert set(found) >= {*STORE, "checkpoints.sqlite"}
    assert set(found.values()) == {0o600}


@pytest.mark.parametrize("mode", [0o600, 0o640])
async def test_a_file_that_a_group_reads_by_choice_keeps_its_mode(open_folder: Path, mode: int) -> None:
    (open_folder / "store.sqlite").touch(mode=mode)
    async with open_store(open_folder / "store.sqlite") as store:
        await store.aput(("people",), "ada", {"content": "Likes figs"})
    assert dict(modes(open_folder))["store.sqlite"] == mode


@pytest.mark.parametrize("opened", [open_store, open_checkpointer])
async def test_a_file_that_an_earlier_version_encrypted_is_refused_with_what_to_do(tmp_path: Path, opened: Any) -> None:
    path = tmp_path / "file.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE palimpsest_key (probe BLOB NOT NULL)")
    with pytest.raises(sqlite3.DatabaseError, match=rf"{path} was encrypted .* move it away"):
        async with opened(path):
            pass
