"""The folder in which memory and checkpoints are kept as files."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from graphs.process.failures import cause_of

CHECKPOINTS, STORE = FILES = ("checkpoints.sqlite", "store.sqlite")
_ELSEWHERE = "choose another folder with PALIMPSEST_DATA_DIR"
_LEAST_ROOM = 1_000_000  # bytes
_SECONDS = 2.0  # how long a look waits for another process


def unfit(data_dir: Path) -> str:
    """Return why memory cannot be kept in a folder, and what to do; empty where it can. Nothing is changed."""
    there = next(each for each in (data_dir.absolute(), *data_dir.absolute().parents) if os.path.lexists(each))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return f"{there} cannot be written: {_ELSEWHERE}, or let this user write there"
    if shutil.disk_usage(there).free < _LEAST_ROOM:
        return f"the disk of {there} is full: make room"
    for path in (data_dir / name for name in FILES if os.path.lexists(data_dir / name)):
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=_SECONDS)) as opened:
                opened.execute("BEGIN IMMEDIATE")
                tables = {name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except sqlite3.Error as error:
            return f"{path}: {cause_of(error) or error}"
        if tables and not any(path.stem in name for name in tables):
            return f"{path} is another program's: {_ELSEWHERE}"
    return ""
