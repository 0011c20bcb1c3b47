"""The command `palimpsest` beside a server under test, in its folder."""

import json
import os
import subprocess
import sys
from typing import Any

from tests.e2e.dev_server import PROJECT, DevServer


def started(server: DevServer, *words: str) -> "subprocess.Popen[str]":
    """Start a command in the folder of the server, and go on."""
    return subprocess.Popen(
        [sys.executable, "-m", "palimpsest", *words],
        cwd=server.folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "PALIMPSEST_URL": server.url},  # noqa: TID251
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran(server: DevServer, *words: str) -> Any:
    """Return the JSON answer of a command, which must end well."""
    done = started(server, *words, "--json")
    out, err = done.communicate(timeout=600)
    assert done.returncode == 0, (out, err)
    return json.loads(out)
