"""What a run of `benchmarks.quality` keeps in files, so that the next one goes on: vectors, and parts that are done."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

from langchain_core.embeddings import Embeddings

from benchmarks.measuring import progress
from benchmarks.quality_report import Rows

_BAR = 24


def _opened(path: Path, table: str) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=60)
    file.execute(f"CREATE TABLE IF NOT EXISTS {table} (key TEXT PRIMARY KEY, value TEXT)")
    return file


class KeptEmbeddings(Embeddings):
    """An embedder whose vectors are kept: peers and repeated runs ask for the same texts. Threads may share it."""

    def __init__(self, name: str, inner: Embeddings, path: Path) -> None:
        self._name, self.inner = name, inner
        self._file = _opened(path, "vectors")
        self._lock = threading.Lock()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._kept("document", text, lambda text: self.inner.embed_documents([text])[0]) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._kept("query", text, self.inner.embed_query)

    def _kept(self, kind: str, text: str, embed: Callable[[str], list[float]]) -> list[float]:
        key = sha256(f"{self._name}\0{kind}\0{text}".encode()).hexdigest()
        with self._lock:
            row = self._file.execute("SELECT value FROM vectors WHERE key = ?", (key,)).fetchone()
            if row is None:
                vector = embed(text)
                said = " ".join(f"{each:.6g}" for each in vector)
                self._file.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (key, said))
                return vector
        return [float(each) for each in row[0].split()]


class LiveQuestions(Embeddings):
    """An embedder that takes its time for each question, as in a turn; the vectors of texts are kept ones."""

    def __init__(self, kept: KeptEmbeddings) -> None:
        self._kept = kept

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._kept.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self._kept.inner.embed_query(text)


class KeptParts:
    """The parts of a run: one that was measured with the same sources and the same data is not measured again.

    Args:
        path: The file.
        total: How many parts there are, for the bar.
    """

    def __init__(self, path: Path, total: int) -> None:
        self._file = _opened(path, "parts")
        self._total, self._done = total, 0

    def measure(self, rows: Rows, name: str, sources: str, work: Callable[[Rows], object]) -> None:
        """Add a part's rows to the others.

        Args:
            rows: The others.
            name: Which part.
            sources: What it depends on (`fingerprint`); after a change it is measured anew.
            work: Measures it.
        """
        filled = round(_BAR * self._done / self._total)
        progress(f"[{'#' * filled}{'.' * (_BAR - filled)}] {self._done} of {self._total} parts are there: {name}")
        key = f"{name} {sources}"
        row = self._file.execute("SELECT value FROM parts WHERE key = ?", (key,)).fetchone()
        if row is None:
            own = Rows()
            work(own)
            row = (json.dumps({"values": own.values, "notes": own.notes}),)
            self._file.execute("INSERT OR REPLACE INTO parts VALUES (?, ?)", (key, row[0]))
        kept = json.loads(row[0])
        for measure, contestants in kept["values"].items():
            for who, values in contestants.items():
                for talk, value in values:
                    rows.add(measure, who, talk, value)
        rows.notes += kept["notes"]
        self._done += 1


def fingerprint(paths: Iterable[Path], *more: str) -> str:
    """Return what changes with any of these files: folders stand for the Python in them."""
    files = sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path]))
    told = sha256("\0".join(more).encode())
    for file in files:
        told.update(file.read_bytes())
    return told.hexdigest()[:16]
