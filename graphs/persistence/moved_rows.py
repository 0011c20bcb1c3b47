"""A process that empties logs and overwrites unused bytes of SQLite pages: moved rows leave copies in both.

`secure_delete` overwrites what is deleted, not what was moved before; `VACUUM` stops all writers while it rewrites a
file (10 seconds for 500 MB). It is a process of its own: closing a file ends all locks that SQLite has on it there.
"""

import itertools
import os
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

_PORTION_PAGES = 2_000  # 8 MB: a writer waits some 30 ms for it
_PATIENCE_SECONDS, _PAUSE_SECONDS = 600.0, 0.1
_INTERIOR, _LEAF = (2, 5), (10, 13)
# Pages of other kinds begin with the number of a page, whose first byte looks like a kind from here on (128 GB).
_MOST_PAGES = 2 << 24


def overwrite(path: Path) -> None:
    """Overwrite, portion by portion, what lies between the pointers and the cells of each page.

    Raises:
        sqlite3.Error: If the file is no database, or is written to for long.
        ValueError: If the file is too large for its pages to be told apart.
        TimeoutError: If others read from its log for long.
    """
    # The file is closed last: with it go the locks of this process.
    with path.open("r+b", buffering=0) as file, closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as db:
        names = ("page_size", "page_count", "user_version")
        size, pages, version = (int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in names)
        if pages >= _MOST_PAGES:
            raise ValueError(f"it has {pages} pages")
        for first in itertools.count(0, _PORTION_PAGES):
            _lock(db, path.with_name(f"{path.name}-wal"))
            file.seek(first * size)
            portion = file.read(_PORTION_PAGES * size)
            for at in range(0, len(portion), size):
                begin, stale = _unused(portion[at : at + size], header=0 if first + at else 100)
                if any(stale):
                    file.seek(first * size + at + begin)
                    file.write(bytes(len(stale)))
            os.fsync(file.fileno())
            # A commit that changes something: other connections drop the pages they hold, with the old bytes in them.
            db.execute(f"PRAGMA user_version = {version}")
            db.execute("COMMIT")
            if len(portion) < _PORTION_PAGES * size:
                return


def _lock(db: sqlite3.Connection, log: Path) -> None:
    """Begin a transaction while the log is empty: pages in a log count before those of the file."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        db.execute("BEGIN IMMEDIATE")
        if not log.stat().st_size:
            return
        db.execute("ROLLBACK")
        time.sleep(_PAUSE_SECONDS)
    raise TimeoutError("its log is being read")


def _unused(page: bytes, header: int) -> tuple[int, bytes]:
    """Return where the unused bytes of a page begin, and these; none of a page without cells of its own."""
    if (kind := page[header]) not in (*_INTERIOR, *_LEAF):
        return 0, b""
    cells, content = (int.from_bytes(page[header + at : header + at + 2], "big") for at in (3, 5))
    begin = header + (12 if kind in _INTERIOR else 8) + 2 * cells
    return begin, page[begin : content or 65_536]


if __name__ == "__main__":
    for each in sys.argv[1:]:
        overwrite(Path(each))
