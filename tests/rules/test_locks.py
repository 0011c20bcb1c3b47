"""The locked environments hold what pyproject.toml asks for, in versions it allows."""

from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from scripts.locked import ENVIRONMENTS, HOUSE, entries_of, name_of, requirements_of


def pins(environment: str) -> dict[str, str]:
    pairs = (entry.split(maxsplit=1)[0].split("==") for entry in entries_of(environment))
    return {name_of(name): version for name, version in pairs}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_requirement_is_locked_in_an_allowed_version(environment: str) -> None:
    locked = pins(environment)
    wanted = [Requirement(line) for line in requirements_of(environment)]
    assert len(wanted) > 10 or environment == "node"
    assert [
        str(requirement)
        for requirement in wanted
        if not requirement.specifier.contains(locked.get(name_of(requirement.name), "0"), prereleases=True)
    ] == []
    for entry in entries_of(environment):
        assert "--hash=sha256:" in entry, entry.splitlines()[0]


@pytest.mark.parametrize("environment", [name for name, (lock, _) in ENVIRONMENTS.items() if lock == "dev.lock"])
def test_a_part_of_a_lock_holds_all_that_its_packages_ask_for(environment: str) -> None:
    """It is installed as it is: pip looks for nothing else."""
    locked = pins(environment)
    missing = []
    for name, pinned in locked.items():
        try:
            # The lowest versions, and the newest, ask for others.
            wanted = [Requirement(line) for line in requires(name) or () if version(name) == pinned]
        except PackageNotFoundError:  # of another system, or another environment
            continue
        asked = [each for each in wanted if not each.marker or each.marker.evaluate({"extra": ""})]
        missing += [f"{name}: {each}" for each in asked if name_of(each.name) not in locked]
    assert missing == []


def test_a_package_of_a_test_is_in_no_environment_of_a_user() -> None:
    assert pins("server").keys() < pins("dev").keys()
    assert not {"pytest", "playwright", "locust", "sphinx", "deepagents"} & pins("server").keys()


def test_the_floors_are_the_lowest_versions_that_are_allowed() -> None:
    """`make test-floors` proves nothing about a lower bound that its environment does not have."""
    floors = pins("floors")
    wanted = [Requirement(line) for line in requirements_of("floors")]
    lowest = {each.name: spec.version for each in wanted for spec in each.specifier if spec.operator == ">="}
    assert {
        name: (version, floors[name_of(name)])
        for name, version in lowest.items()
        if Version(floors[name_of(name)]).release[: len(Version(version).release)] != Version(version).release
    } == {}


def test_there_are_five_lock_files() -> None:
    """Each is resolved, hashed and looked after for itself."""
    ours: list[Path] = [*HOUSE.glob("requirements/*.lock"), HOUSE / "page" / "package-lock.json"]
    assert all(path.exists() for path in ours)
    assert len(ours) <= 5
    # Who tries the examples may have made one of them.
    assert [*HOUSE.glob("tests/*/*/package-lock.json")] == []
