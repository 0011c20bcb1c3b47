"""What a server does in its folder: it leaves its address, takes it away when it ends, and closes what it keeps.

And which addresses are this machine's.
"""

import json
import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

FILE = "server.json"
ROWS = Path(".langgraph_api")
"""Where `langgraph dev` keeps its rows of threads, with what is said in them."""


def is_loopback(name: str | None) -> bool:
    """Return whether a host's name or address means this machine; `--host 0.0.0.0` prints links to that one."""
    if not name or name == "localhost" or name.endswith(".localhost"):
        return bool(name)
    try:
        address = ip_address(name)
    except ValueError:
        return False
    # A socket for both protocols calls this machine `::ffff:127.0.0.1`.
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def leave(folder: Path, url: str) -> None:
    """Write down that this process serves the folder at a URL, unless another one does."""
    if address_of(folder) in ("", url):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / FILE).write_text(json.dumps({"url": url, "pid": os.getpid()}))


def take_away(folder: Path, url: str) -> None:
    """Remove what this process wrote down, as the server at a URL; another server's address stays."""
    if _read_left(folder) == (url, os.getpid()):
        (folder / FILE).unlink(missing_ok=True)


def address_of(folder: Path) -> str:
    """Return the URL of the server that serves a folder; empty if none does, or it was killed and left its address.

    Another program may have its port then, or its process's number.
    """
    left, process = _read_left(folder)
    with suppress(OSError, ValueError):
        url = urlsplit(left)
        with suppress(PermissionError):  # another user's
            os.kill(process, 0)  # asks whether there is such a process
        with socket.create_connection((url.hostname or "", url.port or 0), timeout=1.0):
            return left
    return ""


def _read_left(folder: Path) -> tuple[str, int]:
    try:
        left = json.loads((folder / FILE).read_text())
        return str(left["url"]), max(int(left["pid"]), 1)  # 0 and below mean groups of processes
    except (OSError, ValueError, KeyError, TypeError):
        return "", os.getpid()


def close_to_others(paths: Iterable[Path]) -> None:
    """Take the rights of all other users off these files and folders, where they are this user's.

    If only a group has rights beside the owner, somebody chose that, and it stays.
    """
    for path in paths:
        if path.exists() and path.stat().st_mode & 0o007:
            with suppress(PermissionError):
                path.chmod(path.stat().st_mode & 0o700)
