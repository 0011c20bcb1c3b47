"""Prints the packages of an environment, with their hashes: `python scripts/locked.py NAME`.

`requirements/dev.lock` holds the extras of users and all that tests need, in one version each. Most environments are a
part of it: what some extras and groups of `pyproject.toml` need. Below each package the lock says which others need it.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

HOUSE: Final = Path(__file__).parents[1]
PROJECT: Final = tomllib.loads((HOUSE / "pyproject.toml").read_text("utf-8"))
_ALL: Final = "server tokens local embedder postgres dev"
ENVIRONMENTS: Final = {
    "server": ("dev.lock", "server tokens"),
    "local": ("dev.lock", "server tokens local"),
    "embedder": ("dev.lock", "server tokens embedder"),
    "postgres": ("dev.lock", "server tokens postgres"),
    "node": ("dev.lock", "node"),
    "docs": ("dev.lock", "docs"),
    "dev": ("dev.lock", _ALL),
    "agents": ("dev.lock", f"{_ALL} agents"),
    "load": ("dev.lock", "server tokens postgres load"),
    "floors": ("floors.lock", _ALL),
    "servers": ("servers.lock", f"{_ALL} servers"),
    "bench": ("bench.lock", "tokens embedder bench"),
}
"""The lock of each environment, and its extras and groups."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_NEEDED_BY = re.compile(r"^ +#(?: via)? +([A-Za-z0-9._-]+)", re.MULTILINE)


def name_of(text: str) -> str:
    """Return the name of the package that a requirement, or an entry of a lock, begins with, in its normal form."""
    found = _NAME.match(text)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def requirements_of(environment: str) -> list[str]:
    """Return what `pyproject.toml` asks for in an environment."""
    project = PROJECT["project"]
    named = {**project["optional-dependencies"], **PROJECT["dependency-groups"]}
    # Node.js goes into an environment that another name makes, perhaps at the same time.
    asked = [] if environment == "node" else [*project["dependencies"]]
    return asked + [each for part in ENVIRONMENTS[environment][1].split() for each in named[part]]


def entries_of(environment: str) -> list[str]:
    """Return an environment's entries of its lock: a package each, with version and hashes."""
    lock, _ = ENVIRONMENTS[environment]
    text = (HOUSE / "requirements" / lock).read_text("utf-8")
    entries = [each for each in re.split(r"\n(?=\S)", text.strip()) if name_of(each)]
    if lock != "dev.lock":
        return entries
    more = needed = {name_of(each) for each in requirements_of(environment)}
    while more:
        more = {name_of(each) for each in entries if needed.intersection(map(name_of, _NEEDED_BY.findall(each)))}
        more -= needed
        needed |= more
    return [each for each in entries if name_of(each) in needed]


if __name__ == "__main__":
    sys.stdout.write("\n".join(entries_of(sys.argv[1])) + "\n")
