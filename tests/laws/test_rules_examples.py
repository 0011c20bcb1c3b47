"""The examples find the server of their folder, as the commands do."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NODE = shutil.which("node") or ""
URL = "http://127.0.0.1:2024"
LEFT = json.dumps({"url": URL, "pid": os.getpid()})
NONE = "No server of this folder runs: start one with `make dev`, or set PALIMPSEST_URL."
IN_NODE = f"import {{serverUrl}} from '{EXAMPLES}/here.mjs'; console.log(serverUrl())"
PROGRAMS = {
    "python": [sys.executable, "-c", "from here import server_url; print(server_url())"],
    "node": [NODE, "--input-type=module", "-e", IN_NODE],
}


def asked(program: str, folder: Path, **environ: str) -> str:
    """Return what an example says of where its server is."""
    if not PROGRAMS[program][0]:
        pytest.skip("there is no Node.js")
    environ = {"PYTHONPATH": str(EXAMPLES), **environ}
    done = subprocess.run(
        PROGRAMS[program], cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout.strip() or done.stderr.strip()


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_data_folder_may_stand_in_the_env_file(tmp_path: Path, program: str) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "server.json").write_text(LEFT)
    for line in ("PALIMPSEST_DATA_DIR='kept' # mine", 'export PALIMPSEST_DATA_DIR="kept"\r'):
        (tmp_path / ".env").write_text(f"OPENAI_API_KEY=none\n{line}\n# PALIMPSEST_DATA_DIR=other\n")
        assert asked(program, tmp_path) == URL
    assert asked(program, tmp_path, PALIMPSEST_DATA_DIR="elsewhere") == NONE
    assert asked(program, tmp_path, PALIMPSEST_URL="http://other") == "http://other"


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("left", ["{", "[]", '{"url": "x"}', '{"url": "x", "pid": null}'])
def test_a_broken_address_is_a_sentence(tmp_path: Path, program: str, left: str) -> None:
    (tmp_path / ".palimpsest").mkdir()
    (tmp_path / ".palimpsest" / "server.json").write_text(left)
    assert asked(program, tmp_path) == NONE
