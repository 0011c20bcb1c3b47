"""Which browser the page's tests drive, and what they say where there is none."""

from pathlib import Path

import pytest

from tests.e2e.browsing import BESIDE, find_browser


def script(path: Path, code: str) -> Path:
    path.write_text(f"#!/bin/sh\n{code}\n")
    path.chmod(0o755)
    return path


def test_an_installed_one_comes_first_then_the_unpacked_one(tmp_path: Path) -> None:
    unpacked = script(tmp_path / "chromium", "exit 0")
    assert find_browser("/usr/bin/chromium", unpacked) == ("/usr/bin/chromium", None, "")
    assert find_browser(None, unpacked) == (str(unpacked), BESIDE, "")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("", "apt install chromium"),
        ("echo 'error while loading shared libraries: libx.so.1' >&2; exit 127", "libx.so.1"),
    ],
    ids=["none", "a library is missing"],
)
def test_without_one_the_reason_is_said(tmp_path: Path, code: str, why: str) -> None:
    path = script(tmp_path / "chromium", code) if code else tmp_path / "chromium"
    browser, environment, reason = find_browser(None, path)
    assert (browser, environment) == ("", None)
    assert why in reason
