"""What an import lacks is a package, a library of the system, or what its error says."""

import pytest

from graphs.process.failures import lacking

NO_FILE = "cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("said", "clause"),
    [
        ("No module named 'xllamacpp'", "install the extra"),
        ("ModuleNotFoundError: No module named 'xllamacpp'", "install the extra"),
        (
            f"libgomp.so.1: {NO_FILE}",
            "this machine lacks the library libgomp.so.1: install it (Debian: apt install libgomp1)",
        ),
        (
            f"ImportError: libgcc_s.so.1: {NO_FILE}",
            "this machine lacks the library libgcc_s.so.1: install it (Debian: apt install libgcc-s1)",
        ),
        (
            f"libcuda.so: {NO_FILE}",
            "this machine lacks the library libcuda.so: install it (Debian: apt install libcuda)",
        ),
        ("DLL load failed", "DLL load failed"),
    ],
)
def test_a_missing_library_is_not_taken_for_a_missing_package(said: str, clause: str) -> None:
    assert lacking(ImportError(said), "install the extra") == clause
