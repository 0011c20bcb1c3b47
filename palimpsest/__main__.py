"""The `palimpsest` command, begun where no package of a project can hide it."""

import sys

from palimpsest import check_rooms


def main() -> None:
    """Carry out the command line."""
    try:
        check_rooms()
    except ImportError as error:
        sys.exit(f"Error: {error}")
    from graphs.cli.main import main as command

    command()


if __name__ == "__main__":
    main()
