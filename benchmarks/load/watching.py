"""What a load test sees beside the turns: how many updates wait, how many were done, and how much is kept."""

import sqlite3
import threading
import time
import urllib.request
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from prometheus_client.parser import text_string_to_metric_families

_EVERY_SECONDS = 0.5
_SETTLED = 3.0
"""So long nothing may wait before it counts as done: a turn's update is written down before the turn is answered."""
_WAITING = "SELECT COUNT(*) FROM store WHERE prefix LIKE 'palimpsest.%.outbox'"
_ROWS = "SELECT COUNT(*) FROM store"


@dataclass(frozen=True, slots=True)
class Size:
    """How many bytes store and checkpoints take, and how many items the store holds."""

    store: int
    checkpoints: int
    rows: int

    def since(self, before: "Size") -> "Size":
        return Size(self.store - before.store, self.checkpoints - before.checkpoints, self.rows - before.rows)


class Database(Protocol):
    """Where servers keep what they remember."""

    def waiting(self) -> int:
        """Return how many updates wait."""

    def size(self) -> Size:
        """Return how much is kept."""


class SqliteFiles:
    """The two files of a server of our own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def waiting(self) -> int:
        return self._count(_WAITING)

    def size(self) -> Size:
        store, checkpoints = (
            sum(path.stat().st_size for path in self._folder.glob(f"{name}.sqlite*"))
            for name in ("store", "checkpoints")
        )
        return Size(store, checkpoints, self._count(_ROWS))

    def _count(self, question: str) -> int:
        path = self._folder / "store.sqlite"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as file:
            return int(file.execute(question).fetchone()[0])


class Postgres:
    """One database that all servers share; checkpoints are part of its size."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def waiting(self) -> int:
        return self._number(_WAITING)

    def size(self) -> Size:
        return Size(self._number("SELECT pg_database_size(current_database())"), 0, self._number(_ROWS))

    def _number(self, question: str) -> int:
        import psycopg

        with psycopg.connect(self._uri, autocommit=True) as connection:
            found = connection.execute(question.replace("FROM store", "FROM palimpsest.store").encode()).fetchone()
        return int(found[0]) if found else 0


class Watch:
    """`with Watch(database) as watch:` notes at short intervals how many updates wait; without a database, nothing.

    Attributes:
        depths: Seconds since 1970, and how many waited.
    """

    def __init__(self, database: Database | None) -> None:
        self.depths: list[tuple[float, int]] = []
        self._database = database
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while self._database and not self._ended.wait(_EVERY_SECONDS):
            self.depths.append((time.time(), self._database.waiting()))

    def drained(self, longest: float) -> float | None:
        """Wait until nothing waits any more, and return since when; `None` if that took too long or is not known."""
        deadline = time.time() + longest
        while self._database and time.time() < deadline:
            since = drained_since(self.depths)
            if since is not None and self.depths[-1][0] - since >= _SETTLED:
                return since
            self._ended.wait(_EVERY_SECONDS)
        return None


def drained_since(depths: list[tuple[float, int]]) -> float | None:
    """Return since when nothing has waited; `None` if something does."""
    since = None
    for at, depth in reversed(depths):
        if depth:
            break
        since = at
    return since


def updates_done(urls: list[str]) -> int:
    """Return how many updates the servers have ended, by their metrics."""
    return sum(_updates_done(url) for url in urls)


def _updates_done(url: str) -> int:
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    families = text_string_to_metric_families(text)
    return int(sum(each.value for one in families for each in one.samples if each.name == "palimpsest_updates_total"))
