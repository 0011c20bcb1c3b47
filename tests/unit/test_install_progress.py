"""`make` says what goes on while pip is silent: in a folder whose pip waits until something was said."""

import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PIP = """#!/bin/sh
case "$*" in *require-hashes*) read -r told < told; exit $told ;; esac
"""


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize("code", [0, 3])
def test_while_pip_is_silent_make_is_not_and_its_failure_is_makes(code: int, tmp_path: Path) -> None:
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tmp_path / ".venv" / "created").touch()
    for name, text in (("pip", PIP), ("python", "#!/bin/sh\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "some.lock").write_text("one==1\ntwo==2\n")
    (tmp_path / "pyproject.toml").touch()
    subprocess.run(["mkfifo", tmp_path / "told"], check=True)

    command = ["make", "-f", str(PROJECT / "Makefile"), ".venv/some"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as making:
        assert making.stdout
        assert "2 packages" in making.stdout.readline()
        assert "packages are there" in making.stdout.readline()
        (tmp_path / "told").write_text(f"{code}\n")
        assert (making.wait(60) == 0) is (code == 0)
    assert (tmp_path / ".venv" / "some").exists() is (code == 0)
