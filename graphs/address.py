"""Where the server of a folder listens: it leaves its address beside its files, and takes it away when it ends."""

import json
import os
from pathlib import Path

FILE = "server.json"


def leave(folder: Path, url: str) -> None:
    """Write down that this process serves the folder at a URL."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps({"url": url, "pid": os.getpid()}))


def take_away(folder: Path) -> None:
    """Remove what this process wrote down; another server's address stays."""
    if _read(folder)[1] == os.getpid():
        (folder / FILE).unlink(missing_ok=True)


def address_of(folder: Path) -> str:
    """Return the URL of the server that serves a folder; empty if none does, or it was killed and left its address."""
    url, process = _read(folder)
    try:
        os.kill(process, 0)  # asks whether there is such a process
    except PermissionError:
        return url  # another user's
    except OSError:
        return ""
    return url


def _read(folder: Path) -> tuple[str, int]:
    try:
        left = json.loads((folder / FILE).read_text())
        return str(left["url"]), max(int(left["pid"]), 1)  # 0 and below mean groups of processes
    except (OSError, ValueError, KeyError, TypeError):
        return "", os.getpid()
