"""How every command ends: with its answer and 0, with one sentence and 1, or told how it is used and 2."""

import json
from collections.abc import Mapping
from typing import Any

import click
import typer
from typer.core import TyperGroup

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
        self.problem = problem


class Group(TyperGroup):
    """The whole command: whatever goes wrong below it is a sentence on standard error, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Carry out the command line; exit code 1 for what is refused or fails."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, typer.TyperException):
            raise
        except BrokenPipeError:  # who reads has seen enough
            raise
        except Refused as refused:
            raise _ended(ctx, str(refused), refused.problem) from None
        except click.ClickException as error:
            raise _ended(ctx, error.format_message()) from None
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            said = " ".join(str(error).split())
            raise _ended(
                ctx,
                f"this should not have happened: {type(error).__name__}: {said}. `palimpsest --debug …` shows where it "
                "came from; `palimpsest doctor` looks for the cause",
            ) from None


def _ended(ctx: Any, message: str, problem: Mapping[str, Json] | None = None) -> typer.Exit:
    """Say why a command ends, as JSON to who asked for JSON, and return what ends it."""
    as_json = bool((ctx.obj or {}).get("json"))
    body = problem or {"detail": message, "errors": []}
    typer.echo(json.dumps(body, ensure_ascii=False) if as_json else f"Error: {message}", err=True)
    return typer.Exit(1)
