"""The one public door: what it shows, what it waits for, and what it says where a project hides our packages."""

import ast
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import palimpsest

HOUSE = Path(__file__).parents[2]
INSTALLED = Path(palimpsest.__file__).parents[1]
"""The folder of all three packages: this repository, or where a wheel was installed."""


def python(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program as `python program.py` does: its own folder comes first."""
    (folder / "program.py").write_text(program)
    return subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder, env={"PYTHONPATH": str(INSTALLED)}, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


def test_every_module_of_ours_comes_from_one_installation(pytestconfig: pytest.Config) -> None:
    for public in palimpsest.__all__:
        getattr(palimpsest, public)  # whose module is imported then
    files = [
        Path(file)
        for name, module in sys.modules.items()
        if name.partition(".")[0] in {"graphs", "memory", "palimpsest"} and (file := getattr(module, "__file__", None))
    ]
    assert len(files) > 50
    assert [str(file) for file in files if not file.is_relative_to(INSTALLED)] == []
    site = Path(sysconfig.get_paths()["purelib"])
    assert pytestconfig.getoption("--installed") == (site == INSTALLED)


def test_type_checkers_and_editors_see_every_name() -> None:
    seen: set[str] = set()
    for node in ast.walk(ast.parse(Path(palimpsest.__file__).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in {"graphs", "memory"}:
            seen |= {alias.name for alias in node.names}
    assert seen == set(palimpsest.__all__)
    assert (Path(palimpsest.__file__).parent / "py.typed").exists()


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'palimpsest' has no attribute 'ChatNodes'"):
        palimpsest.ChatNodes  # noqa: B018


def test_a_name_is_imported_when_it_is_asked_for(tmp_path: Path) -> None:
    done = python(
        "import sys, palimpsest\n"
        "assert 'memory' not in sys.modules\n"
        "from palimpsest import FactStore\n"
        "assert 'graphs' not in sys.modules\n"
        "from palimpsest import *\n"
        "print(build_graph.__name__)",
        tmp_path,
    )
    assert (done.stdout, done.stderr) == ("build_graph\n", "")


@pytest.mark.parametrize("room", ["memory", "graphs"])
@pytest.mark.parametrize("form", ["{}/__init__.py", "{}.py"])
def test_a_project_that_hides_a_package_of_ours_is_told_so_in_one_sentence(
    room: str, form: str, tmp_path: Path
) -> None:
    own = tmp_path / form.format(room)
    own.parent.mkdir(exist_ok=True)
    own.touch()
    done = python("from palimpsest import FactStore", tmp_path)
    other = tmp_path / room if own.parent != tmp_path else own
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: palimpsest needs its own package '{room}' in {INSTALLED / room}, but Python finds {other} "
        f"first: rename that one, or move it into a package of your own (yourapp/{room})"
    )


@pytest.mark.parametrize("room", ["memory", "graphs"])
def test_the_command_says_so_in_one_line(room: str, tmp_path: Path) -> None:
    (tmp_path / f"{room}.py").touch()
    done = subprocess.run(
        [sys.executable, "-m", "palimpsest", "facts", "list"],
        cwd=tmp_path, env={"PYTHONPATH": str(INSTALLED)}, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.stderr.startswith(f"Error: palimpsest needs its own package '{room}'")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_a_package_of_that_name_that_was_imported_before_is_told_too(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys\n"
        "pathlib.Path('own/memory').mkdir(parents=True)\n"
        "pathlib.Path('own/memory/__init__.py').touch()\n"
        "sys.path.insert(0, 'own')\n"
        "import memory\n"
        "sys.path.remove('own')\n"
        "from palimpsest import FactStore"
    )
    assert "rename that one" in python(program, tmp_path).stderr.splitlines()[-1]


def test_a_folder_of_data_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "notes.txt").touch()
    assert python("from palimpsest import FactStore", tmp_path).returncode == 0


def shown_to_readers() -> list[Path]:
    pages = [HOUSE / "README.md", *(HOUSE / "docs").rglob("*.md")]
    return sorted([*pages, *(HOUSE / "examples").glob("*.py")])


@pytest.mark.parametrize("path", shown_to_readers(), ids=lambda path: str(path.name))
def test_everything_that_readers_copy_imports_from_here(path: Path) -> None:
    wrong = re.findall(r"^[+ ]*(?:from|import) (?:graphs|memory)\b.*", path.read_text(), re.MULTILINE)
    assert not wrong, f"{path.name}: {wrong}"
