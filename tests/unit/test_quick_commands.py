"""What commands do without: a person waits for every package that one imports."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MODELS = {"openai", "langchain", "langchain_openai", "transformers"}
SERVER = {"fastapi", "numpy", "langgraph", "langgraph_sdk", "langchain_core", "cryptography", "jwt"}
RUN = """
import atexit, json, sys
from graphs.cli.main import main
atexit.register(lambda: print(json.dumps(sorted(sys.modules))))
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("words", "needless"),
    [
        *((f"{each}--help", MODELS | SERVER) for each in ("", "facts ", "pending ", "chat ")),
        ("facts list --url http://127.0.0.1:9", MODELS | SERVER),
        ("facts list --local", MODELS),
        ("doctor --no-ask --url http://127.0.0.1:9", MODELS | SERVER),
    ],
)
def test_a_command_imports_what_it_needs(words: str, needless: set[str], tmp_path: Path) -> None:
    place = {"PATH": "", "HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    made = [sys.executable, "-c", "from graphs.cli.main import main; main(['import', '--local', '-'])"]
    archive = json.dumps({"format": "palimpsest.memory", "schema": 1})
    if "facts list --local" in words:
        subprocess.run(made, cwd=tmp_path, env=place, input=archive, capture_output=True, text=True, check=False)
        assert (tmp_path / ".palimpsest" / "store.sqlite").exists()

    ran = subprocess.run(
        [sys.executable, "-c", RUN, *words.split()],
        cwd=tmp_path,
        env=place,
        capture_output=True,
        text=True,
        check=False,
    )

    modules = set(json.loads(ran.stdout.splitlines()[-1]))
    assert "graphs.cli.main" in modules
    assert needless & modules == set()
