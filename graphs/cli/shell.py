"""How every command ends: with its answer and 0, with one sentence and 1, or told how it is used and 2."""

import codecs
import io
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
import httpx
import typer
from typer.core import TyperGroup

from graphs.causes import cause_of

Json = Any
"""What the memory API answers: objects, lists and their values."""


class Refused(click.ClickException):
    """What was asked was refused, or failed.

    Args:
        message: The whole story in a sentence, and what to do.
        problem: What the server answered, if that is where it comes from: `{"detail", "errors"}`.
    """

    def __init__(self, message: str, problem: Mapping[str, Json] | None = None) -> None:
        super().__init__(message)
        self.problem = problem


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Return what stands for characters that a terminal or a pipe cannot show; within JSON it means the same."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(_escaped.__name__, _escaped)


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
    transport: httpx.AsyncBaseTransport | None = None


def confirm(what: str, yes: bool) -> None:
    """Say what goes, and let a person say yes or no.

    Args:
        what: What happens, in whole sentences.
        yes: It was said already.

    Raises:
        Refused: If nobody can be asked.
        typer.Abort: If the answer is no.
    """
    if yes:
        return
    typer.echo(what, err=True)
    if not sys.stdin.isatty():
        raise Refused("nobody can be asked here: --yes says yes")
    typer.confirm("Go on?", abort=True, err=True)


class Group(TyperGroup):
    """The whole command: whatever goes wrong below it is a sentence on standard error, never a traceback."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Carry out the command line as a process; what it prints of itself, as its version, may fail to be written."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors=_escaped.__name__)
        try:
            return super().main(*args, **options)
        except OSError as error:
            sys.exit(f"Error: {cause_of(error) or error}")
        finally:
            try:
                typer.echo(nl=False)
            except OSError:  # Python would try once more at its end, and say so
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def invoke(self, ctx: Any) -> Any:
        """Carry out the command line; exit code 1 for what is refused or fails."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, typer.TyperException):
            raise
        except BrokenPipeError:  # who reads has seen enough
            raise
        except click.ClickException as error:
            raise _ended(ctx, str(error), getattr(error, "problem", None)) from None
        except Exception as error:
            shell = ctx.find_object(Shell)
            if shell and shell.debug:
                raise
            if why := cause_of(error):
                raise _ended(ctx, why) from None
            said = " ".join(str(error).split())
            raise _ended(
                ctx,
                f"this should not have happened: {type(error).__name__}: {said}. `palimpsest --debug …` shows where it "
                "came from; `palimpsest doctor` looks for the cause",
            ) from None


def _ended(ctx: Any, message: str, problem: Mapping[str, Json] | None = None) -> typer.Exit:
    """Say why a command ends, as JSON to who asked for JSON, and return what ends it."""
    shell = ctx.find_object(Shell)
    body = problem or {"detail": message, "errors": []}
    typer.echo(json.dumps(body, ensure_ascii=False) if shell and shell.as_json else f"Error: {message}", err=True)
    return typer.Exit(1)
