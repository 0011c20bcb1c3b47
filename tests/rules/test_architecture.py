"""What ARCHITECTURE.md and the docs name is there: who looks something up ends where it is decided or proved."""

import re
from pathlib import Path

import palimpsest

HOUSE = Path(__file__).parents[2]
PACKAGES = Path(palimpsest.__file__).parents[1]
PAGE = (HOUSE / "ARCHITECTURE.md").read_text()
PAGES = "".join([PAGE, *(page.read_text() for page in sorted((HOUSE / "docs").rglob("*.md")))])


def source(file: str) -> str:
    """Return a file of ours: of a package where it is installed, else of this repository."""
    return ((PACKAGES if file.startswith(("graphs/", "memory/")) else HOUSE) / file).read_text()


def test_every_file_that_is_named_is_there() -> None:
    files = set(re.findall(r"`((?:graphs|memory|tests|docs|examples|benchmarks)/[\w/.-]+\.(?:py|md))`", PAGES))
    assert len(files) > 20
    assert len(PAGE.encode()) <= 10_000
    for file in files:
        assert source(file), file


def test_every_function_that_decides_something_is_in_its_file() -> None:
    table = PAGE.partition("## Where is it decided")[2].partition("\n## ")[0]
    named = re.findall(r"`([\w/]+\.py)`, `(\w+)`", table)
    assert len(named) > 7
    for file, name in named:
        assert re.search(rf"^ *(?:async )?def {name}\(", source(file), re.MULTILINE), f"{file} has no {name}"
