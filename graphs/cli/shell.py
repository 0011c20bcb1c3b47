"""How every command ends: with its answer and 0, with one sentence and 1, or told how it is used and 2.

What prints an answer is here too: tables for a person, lines with tabs for a pipe, the API's own JSON for a program.
"""

import io
import json
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import httpx

Json = Any
"""What the memory API answers: objects, lists and their values."""


class Refused(Exception):
    """What was asked was refused, or failed.

    Args:
        message: The whole story in a sentence, and what to do.
        problem: What the server answered, if that is where it comes from: `{"detail", "errors"}`.
    """

    def __init__(self, message: str, problem: Mapping[str, Json] | None = None) -> None:
        super().__init__(message)
        self.problem = problem or {"detail": message, "errors": []}


@dataclass(slots=True)
class Shell:
    """What the command line as a whole says, and what commands work with.

    Attributes:
        debug: Show where an unexpected error came from.
        as_json: Whether the answer, or the refusal, is to be JSON.
        environ: The variables, instead of the process's.
        transport: What carries requests to the server, instead of the network.
    """

    debug: bool = False
    as_json: bool = False
    environ: Mapping[str, str] | None = None
    transport: "httpx.BaseTransport | None" = None

    def answer(self, body: Json) -> None:
        """Print an answer to who asked for JSON."""
        if self.as_json:
            click.echo(as_json(body, indent=2))

    def say(self, text: str, **style: Any) -> None:
        """Print a line of the answer."""
        if not self.as_json:
            click.secho(plain(text), **style)

    def note(self, text: str) -> None:
        """Print a line that is no part of the answer."""
        self.say(text, err=True)

    def rows(self, found: Sequence[Json], *columns: str) -> None:
        """Print these fields of all that was found, a row each."""
        self.table(columns, [[each[name] for name in columns] for each in found])
        if not found:
            self.note("nothing is there")

    def fields(self, answer: Json) -> None:
        """Print what an answer says, a field a row."""
        rows = []
        for name, said in answer.items():
            parts = [f"{number} {kind}" for kind, number in said.items()] if isinstance(said, dict) else said
            rows.append((name, ", ".join(map(str, parts)) if isinstance(parts, list) else parts))
        self.table(("field", "value"), rows)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print rows: in a terminal under their names, elsewhere a line each with tabs between the cells."""
        cells = [[" ".join(plain(str(cell)).split()) for cell in row] for row in rows]
        if not sys.stdout.isatty():
            for line in cells:
                self.say("\t".join(line))
            return
        widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
        for number, line in enumerate([list(columns), *cells]):
            padded = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            self.say(padded.rstrip(), bold=number == 0)


def as_json(body: Json, indent: int | None = None) -> str:
    """Return JSON in the characters that standard output can show."""
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    return json.dumps(body, ensure_ascii=not is_unicode, indent=indent)


def plain(text: str) -> str:
    """Return a text without control characters: what is stored, or what a model says, must not steer a terminal."""
    return "".join(char for char in text if char in "\n\t" or unicodedata.category(char) != "Cc")


def counted(number: int, thing: str, things: str = "") -> str:
    """Return `1 fact`, `2 facts`."""
    return f"{number} {thing if number == 1 else things or f'{thing}s'}"


def examples(*lines: str) -> str:
    """Return the lines below a command's help that show how it is used."""
    return "\n".join(["\b\nExamples:", *(f"  palimpsest {line}" for line in lines)])  # \b: click keeps the lines


def confirm_first(what: str, yes: bool) -> None:
    """Say what goes, and let a person say yes or no.

    Args:
        what: What happens, in whole sentences.
        yes: It was said already.

    Raises:
        Refused: If nobody can be asked.
        click.Abort: If the answer is no.
    """
    if yes:
        return
    click.echo(plain(what), err=True)
    if not sys.stdin.isatty():
        raise Refused("nobody can be asked here: --yes says yes")
    click.confirm("Go on?", abort=True, err=True)


class CommandLine(click.Group):
    """The whole command: whatever goes wrong below it is a sentence on standard error, never a traceback."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Carry out the command line as a process; what it prints of itself, as its version, may fail to be written."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            return super().main(*args, **options)
        except OSError as error:
            sys.exit(f"Error: {_unforeseen(error)}")

    def invoke(self, ctx: click.Context) -> Any:
        """Carry out the command line; exit code 1 for what is refused or fails, as JSON to who asked for JSON."""
        shell = ctx.ensure_object(Shell)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(130)
        # The last: who reads has seen enough.
        except (click.exceptions.Exit, click.Abort, click.ClickException, BrokenPipeError):
            raise
        except Exception as error:
            if shell.debug and not isinstance(error, Refused):
                raise
            refused = error if isinstance(error, Refused) else Refused(_unforeseen(error))
            said = as_json(refused.problem) if shell.as_json else f"Error: {refused}"
            click.echo(said, err=True)
            ctx.exit(1)


def _unforeseen(error: Exception) -> str:
    from graphs.process.causes import cause_of  # only here, as it reads settings: a help does not wait for that

    said = " ".join(str(error).split())
    return cause_of(error) or (
        f"this should not have happened: {type(error).__name__}: {said}. `palimpsest --debug …` shows where it came "
        "from; `palimpsest doctor` looks for the cause"
    )
