"""Runs one of the scripts under `js/` with Node: JSON in, JSON out."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "js"
TIMEOUT_SECONDS = 300.0


def run_javascript(script: str, **values: object) -> Any:
    """Return what the script's default export made of the values; its error is the test's."""
    node = shutil.which("node")
    if not node or not (FOLDER / "node_modules").is_dir():
        pytest.skip("the JavaScript client needs Node and `make test`, which installs it once")
    done = subprocess.run(
        [node, "run.mjs", script],
        cwd=FOLDER,
        input=json.dumps(values),
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"{script} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout)
