"""The SQLite files themselves: who may read what people said."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphs.persistence.sqlite_store import open_store


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A folder that was there before, and that everybody may read."""
    tmp_path.chmod(0o755)
    return tmp_path


def modes(folder: Path) -> Iterator[tuple[str, int]]:
    return ((path.name, path.stat().st_mode & 0o777) for path in sorted(folder.iterdir()))


@pytest.mark.parametrize("mode", [0o600, 0o640])
async def test_a_file_that_a_group_reads_by_choice_keeps_its_mode(open_folder: Path, mode: int) -> None:
    (open_folder / "store.sqlite").touch(mode=mode)
    async with open_store(open_folder / "store.sqlite") as store:
        await store.aput(("people",), "ada", {"content": "Likes figs"})
    assert dict(modes(open_folder))["store.sqlite"] == mode
