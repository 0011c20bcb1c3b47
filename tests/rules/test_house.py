"""The walls of the house: imports go one way, names are what `__all__` says, the environment is read in one place."""

import ast
import gc
import importlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
EVERYONE_MAY_KNOW = {"config", "namespaces", "text", "prompts", "message"}
EVERYONE_MAY_KNOW |= {"door", "effects", "forms", "control", "model_calls"}
COUNTING = {"memory.context.tokens", "memory.context.budget"}
MAY_KNOW = {
    "context": {"context"},
    "screening": {"screening"},
    "control": {"screening"},
    "facts": {"facts", "screening", "recall"},
    "extraction": {"extraction", "facts", "screening", "recall"},
    "recall": {"recall", "facts", "screening", "journal"},
    "injection": {"injection", "facts", "screening", "recall", "journal"},
    "journal": {"journal", "screening"},
    "updates": {
        "updates",
        "extraction",
        "facts",
        "injection",
        "screening",
        "journal",
        "recall",
        "forget",
        "turn",
        "budget",
    },
    "forget": {"forget", "facts", "journal", "updates", "context", "screening"},
    "turn": {"turn", "facts", "updates", "injection", "journal", "forget"},
    "tool_calls": {"turn", "facts", "extraction", "updates", "injection", "screening", "forget"},
    "tool_lookups": {"tool_calls", "facts", "journal", "recall", "injection", "screening"},
    "backfill": {"backfill", "facts", "journal", "updates", "turn", "archive", "forget"},
    "budget": {"budget"},
    "archive": {"archive", "facts", "screening", "journal", "recall", "updates"},
}


def modules(room: str) -> Iterator[tuple[str, Path]]:
    for path in sorted((HOUSE / room).rglob("*.py")):
        name = ".".join(path.relative_to(HOUSE).with_suffix("").parts)
        yield name.removesuffix(".__init__"), path


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def doors(importer: str, path: Path) -> Iterator[tuple[str, str]]:
    """Each import of a first-party room other than the importer's own file."""
    for imported in imports(path):
        if imported.split(".")[0] in {"graphs", "memory", "palimpsest", "tests"}:
            yield importer, imported


def test_the_rooms_are_seen() -> None:
    assert len(list(modules("memory"))) > 10
    assert len(list(modules("graphs"))) > 5
    assert any(target.startswith("memory.") for name, path in modules("graphs") for _, target in doors(name, path))


@pytest.mark.parametrize(("name", "path"), list(modules("memory")), ids=lambda value: str(value)[-40:])
def test_memory_has_never_heard_of_graphs(name: str, path: Path) -> None:
    wrong = [target for _, target in doors(name, path) if not target.startswith("memory")]
    assert not wrong, f"{name} imports {wrong}"


@pytest.mark.parametrize(("name", "path"), list(modules("memory")), ids=lambda value: str(value)[-40:])
def test_rooms_of_memory_know_only_their_neighbours(name: str, path: Path) -> None:
    room = name.split(".")[1] if "." in name else ""
    if room not in MAY_KNOW and room not in EVERYONE_MAY_KNOW:
        return  # memory/__init__.py shows everything
    allowed = MAY_KNOW.get(room, set()) | EVERYONE_MAY_KNOW
    for _, target in doors(name, path):
        other = target.split(".")[1] if "." in target else ""
        counting = any(target == part or target.startswith(part + ".") for part in COUNTING)
        assert not other or other in allowed or counting, f"{name} must not import {target}"


def test_updater_and_update_queue_never_import_each_other() -> None:
    updates = HOUSE / "memory" / "updates"
    assert not any("updater" in name for name in imports(updates / "queue.py"))
    for name in ("update.py", "updater.py", "rollup.py"):
        assert not any(each.startswith("memory.updates.queue") for each in imports(updates / name))


def test_graphs_never_imports_tests_or_the_public_door() -> None:
    wrong = {"palimpsest", "tests"}
    found = [target for name, path in modules("graphs") for _, target in doors(name, path)]
    assert not [target for target in found if target.split(".")[0] in wrong]


EXCUSED = {
    "tests/command_line.py": "the command that an entry point names, with a transport in the network's place",
    "tests/laws/starting.py": "what a server does at its start and before its routes of threads",
}
"""Helpers of laws that know the inside, and what for; no other one may."""


@pytest.mark.parametrize(
    ("folder", "closed", "excused"),
    [("stories", {"graphs", "memory", "palimpsest"}, set[str]()), ("laws", {"graphs", "memory"}, set(EXCUSED))],
)
def test_stories_and_laws_know_nothing_of_the_inside(folder: str, closed: set[str], excused: set[str]) -> None:
    seen, ahead, wrong = set[Path](), set((HOUSE / "tests" / folder).glob("*.py")), set[str]()
    while ahead:
        path = ahead.pop()
        seen.add(path)
        names = imports(path)
        if any(name.split(".")[0] in closed for name in names):
            wrong.add(str(path.relative_to(HOUSE)))
        files = {HOUSE.joinpath(*name.split(".")).with_suffix(".py") for name in names if name.startswith("tests.")}
        ahead |= {file for file in files if file.exists()} - seen
    assert len(seen) > 10
    assert wrong == excused


def test_all_is_what_the_package_shows() -> None:
    module = importlib.import_module("palimpsest")
    assert sorted(module.__all__) == list(dict.fromkeys(sorted(module.__all__)))
    for name in module.__all__:
        assert getattr(module, name, None) is not None, name
    assert dir(module) == sorted(module.__all__)


def test_namespaces_are_built_in_one_place() -> None:
    for room in ("memory", "graphs"):
        for name, path in modules(room):
            if name != "memory.namespaces":
                assert not re.search(r"\(\s*[\"']palimpsest(-due)?[\"']\s*,", path.read_text()), name


def test_the_pages_own_code_is_small() -> None:
    room = HOUSE / "graphs" / "server" / "page"
    files = [
        path for kind in ("py", "html", "js", "css") for path in room.rglob(f"*.{kind}") if path.parent.name != "built"
    ]
    assert 0 < sum(path.stat().st_size for path in files) <= 130_000


def test_git_keeps_nothing_that_it_ignores() -> None:
    """No environment, output or weights were committed by mistake."""
    listed = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    if not (HOUSE / ".git").exists():
        pytest.skip("these sources are not a clone")
    assert subprocess.run(listed, cwd=HOUSE, capture_output=True, text=True, check=True).stdout == ""


def test_the_help_of_make_stands_in_two_columns() -> None:
    """`make` lays its targets out with `|` between the columns, so that none may stand in a text."""
    texts = [
        line.split("## ", 1)[1]
        for line in (HOUSE / "Makefile").read_text().splitlines()
        if ": " in line and "## " in line
    ]
    assert texts
    assert [text for text in texts if "|" in text] == []


def test_the_collector_looks_through_what_tests_make_and_not_through_the_tests() -> None:
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
