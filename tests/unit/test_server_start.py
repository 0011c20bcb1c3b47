"""What a server's start does without: it is waited for, by people and by hundreds of tests."""

import json
import subprocess
import sys
from pathlib import Path

# Of the command line, the embedded models and a database that a plain server does not have; and of models and files
# that it opens later.
NEEDLESS = (
    "langchain.chat_models",
    "langchain_openai",
    "openai",
    "numpy",
    "langgraph.store.sqlite",
    "typer",
    "onnxruntime",
    "tokenizers",
    "toktok",
    "xllamacpp",
    "psycopg",
    "graphs.cli",
    "graphs.streaming.runs",
)
START = """
import gc, json, sys
before = gc.get_stats()[2]["collections"]
import graphs.http
print(json.dumps([gc.get_stats()[2]["collections"] - before, gc.isenabled(), gc.get_freeze_count(), list(sys.modules)]))
"""


def test_a_start_imports_nothing_that_it_does_not_need_and_looks_for_no_garbage_meanwhile(tmp_path: Path) -> None:
    place = {
        "PATH": "",
        "HOME": str(tmp_path),
        "PALIMPSEST_DATA_DIR": str(tmp_path / "data"),
        "PYTHONPATH": ":".join(sys.path),
    }
    ran = subprocess.run(
        [sys.executable, "-c", START], cwd=tmp_path, env=place, capture_output=True, text=True, check=True
    )
    collections, is_enabled, frozen, modules = json.loads(ran.stdout.splitlines()[-1])

    assert [name for name in NEEDLESS if name in modules] == []
    assert (collections, is_enabled) == (0, True)
    assert frozen > 100_000
