"""The locked environments hold what pyproject.toml asks for, in versions it allows."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

HOUSE = Path(__file__).parents[2]
PROJECT = tomllib.loads((HOUSE / "pyproject.toml").read_text())

EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
GROUPS: dict[str, list[str]] = PROJECT["dependency-groups"]
SERVER = EXTRAS["server"] + EXTRAS["tokens"]
ALL = SERVER + EXTRAS["local"] + EXTRAS["embedder"] + EXTRAS["postgres"]
SETS = {
    "server": SERVER,
    "local": SERVER + EXTRAS["local"],
    "embedder": SERVER + EXTRAS["embedder"],
    "postgres": SERVER + EXTRAS["postgres"],
    "dev": ALL + GROUPS["dev"],
    "agents": ALL + GROUPS["dev"] + GROUPS["agents"],
    "load": SERVER + EXTRAS["postgres"] + GROUPS["load"],
    "servers": ALL + GROUPS["dev"] + GROUPS["servers"],
    "bench": EXTRAS["tokens"] + EXTRAS["embedder"] + GROUPS["bench"] + GROUPS["docs"],
}


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lock: str) -> dict[str, str]:
    text = (HOUSE / "requirements" / f"{lock}.lock").read_text()
    return {normalize(name): version for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", text, re.M)}


@pytest.mark.parametrize("lock", SETS)
def test_every_requirement_is_locked_in_an_allowed_version(lock: str) -> None:
    locked = pins(lock)
    wanted = [Requirement(line) for line in PROJECT["project"]["dependencies"] + SETS[lock]]
    assert len(wanted) > 10
    assert [
        str(requirement)
        for requirement in wanted
        if not requirement.specifier.contains(locked.get(normalize(requirement.name), "0"), prereleases=True)
    ] == []


def test_a_package_is_locked_in_one_version() -> None:
    """Development, the local model and a server run the same versions."""
    server, local, embedder, postgres, dev = map(pins, ("server", "local", "embedder", "postgres", "dev"))
    assert {name: version for name, version in server.items() if local.get(name) != version} == {}
    assert {name: version for name, version in server.items() if embedder.get(name) != version} == {}
    assert {name: version for name, version in embedder.items() if dev.get(name) != version} == {}
    assert {name: version for name, version in postgres.items() if dev.get(name) != version} == {}
    assert {name: version for name, version in local.items() if dev.get(name) != version} == {}


def test_the_floors_are_the_lowest_versions_that_are_allowed() -> None:
    """`make test-floors` proves nothing about a lower bound that its environment does not have."""
    floors = pins("floors")
    wanted = [Requirement(line) for line in PROJECT["project"]["dependencies"] + SETS["dev"]]
    lowest = {each.name: spec.version for each in wanted for spec in each.specifier if spec.operator == ">="}
    assert {
        name: (version, floors[normalize(name)])
        for name, version in lowest.items()
        if Version(floors[normalize(name)]).release[: len(Version(version).release)] != Version(version).release
    } == {}


@pytest.mark.parametrize("lock", [*SETS, "floors", "node"])
def test_every_locked_file_is_hashed(lock: str) -> None:
    text = (HOUSE / "requirements" / f"{lock}.lock").read_text()
    for entry in re.split(r"\n(?=\S)", text.strip()):
        assert "--hash=sha256:" in entry, entry.splitlines()[0]
