"""What a command prints: tables for a person, tab-separated lines for a pipe, the API's own JSON for a program."""

import json
import unicodedata
from collections.abc import Callable, Sequence

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphs.cli.shell import Json


def plain(text: str) -> str:
    """Return a text without control characters: what is stored, or what a model says, must not steer a terminal."""
    return "".join(char for char in text if char in "\n\t" or unicodedata.category(char) != "Cc")


class Output:
    """Where a command prints its answer.

    Args:
        as_json: Print what the server answered, and nothing else.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._console = Console(highlight=False, soft_wrap=True)

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads it as it comes."""
        return self._console.is_terminal

    def answer(self, body: Json, show: Callable[[], None]) -> None:
        """Print an answer: as it is to who asked for JSON, else as `show` prints it."""
        if self.as_json:
            typer.echo(json.dumps(body, ensure_ascii=False, indent=2))
        else:
            show()

    def say(self, text: str, style: str = "") -> None:
        """Print a line; nothing in it is markup."""
        self._console.print(Text(plain(text)), style=style)

    def note(self, text: str) -> None:
        """Print a line that is no part of the answer; not to who asked for JSON."""
        if not self.as_json:
            typer.echo(plain(text), err=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print rows: in a terminal under their names, elsewhere a line each with tabs between the cells."""
        if not self.is_terminal:
            for row in rows:
                typer.echo("\t".join(" ".join(plain(cell).split()) for cell in row))
            return
        shown = Table(box=None, pad_edge=False, header_style="bold")
        for name in columns:
            # The last one is text and takes what is left; an id that is folded cannot be copied.
            is_text = name == columns[-1]
            shown.add_column(name, no_wrap=not is_text, overflow="fold" if is_text else "ellipsis")
        for row in rows:
            shown.add_row(*(Text(plain(cell)) for cell in row))
        self._console.print(shown, soft_wrap=False)


def counted(number: int, thing: str, things: str = "") -> str:
    """Return `1 fact`, `2 facts`."""
    return f"{number} {thing if number == 1 else things or f'{thing}s'}"


def examples(*lines: str) -> str:
    """Return the lines below a command's help that show how it is used."""
    # typer makes one line of what stands in one paragraph.
    return "\n\n".join(["Examples:", *lines])
