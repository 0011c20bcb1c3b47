"""What an import lacks: a Python package, or a library of the system that no package of Python brings."""

import re

_LIBRARY = re.compile(r"((lib\S+)\.so\.?(\d*)\S*): cannot open shared object")


def lacking(error: ImportError, fix: str) -> str:
    """Return in a clause what an import lacks, and what to do.

    Args:
        error: What it raised, or what was raised for that.
        fix: What to do where it lacks a package.
    """
    said = str(error.__cause__ or error)
    if library := _LIBRARY.search(said):
        package = (library[2] + library[3]).replace("_", "-")  # Debian's policy
        return f"this machine lacks the library {library[1]}: install it (Debian: apt install {package})"
    return fix if "No module named" in said else said
