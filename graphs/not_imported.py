"""What an import lacks: a Python package, or a library of the system that no package of Python brings."""

import re

_LIBRARY = re.compile(r"((lib\S+)\.so\.?(\d*)\S*): cannot open shared object")


def lacking(said: str, fix: str) -> str:
    """Return in a clause what an import lacks, and what to do.

    Args:
        said: What its error says.
        fix: What to do where it lacks a package.
    """
    if library := _LIBRARY.search(said):
        package = (library[2] + library[3]).replace("_", "-")  # Debian's policy
        return f"this machine lacks the library {library[1]}: install it (Debian: apt install {package})"
    return fix if "No module named" in said else said
