"""What commands are typed into: which memory one is about, how its answer is shown, and how it ends.

Each ends with its answer and 0, with one sentence and 1, or told how it is used and 2. An answer is a table for a
person, lines with tabs for a pipe, the API's own JSON for a program.
"""

import io
import json
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate

import click

if TYPE_CHECKING:
    import httpx

    from graphs.cli.client import MemoryClient

Json = Any
"""What the memory API answers: objects, lists and their values."""
Run = Callable[Concatenate["MemoryClient", "Shell", ...], None]
"""What a command does with the memory that it is about, and where it prints; what is typed follows by name."""


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

    def say(self, text: str, **style: Any) -> None:
        """Print a line of the answer."""
        if not self.as_json:
            click.secho(printable(text), **style)

    def note(self, text: str) -> None:
        """Print a line that is no part of the answer."""
        self.say(text, err=True)

    def answer(self, body: Json, said: str = "") -> None:
        """Print an answer to who asked for JSON, to a person what is said of it."""
        if self.as_json:
            click.echo(as_json(body, indent=2))
        elif said:
            self.say(said)

    def fields(self, body: Json, **instead: Json) -> None:
        """Print an answer, to a person a field a row; some as they are told instead."""
        self.answer(body)
        rows = []
        for name, said in {**body, **instead}.items():
            parts = [f"{number} {kind}" for kind, number in said.items()] if isinstance(said, dict) else said
            rows.append((name, ", ".join(map(str, parts)) if isinstance(parts, list) else parts))
        self._table(("field", "value"), rows)

    def rows(self, body: Json, found: Sequence[Json], *columns: str) -> None:
        """Print an answer, to a person these fields of all that was found, a row each."""
        self.answer(body)
        self._table(columns, [[each[name] for name in columns] for each in found])
        if not found:
            self.note("nothing is there")

    def _table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print rows: in a terminal under their names, elsewhere a line each with tabs between the cells."""
        cells = [[" ".join(printable(str(cell)).split()) for cell in row] for row in rows]
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


def printable(text: str) -> str:
    """Return a text without control characters: what is stored, or what a model says, must not steer a terminal."""
    return "".join(char for char in text if char in "\n\t" or unicodedata.category(char) != "Cc")


def counted(number: int, thing: str) -> str:
    """Return `1 fact`, `2 facts`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def word(typed: str) -> str:
    """Return an id or a name that is typed, and stands in a path of the API: another word could name something else."""
    if not typed or not f"_{typed.replace('-', '_')}".isidentifier():
        raise click.BadParameter("it must be one word of letters, digits, _ and -")
    return typed


def examples_of_use(*lines: str) -> str:
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
    click.echo(printable(what), err=True)
    if not sys.stdin.isatty():
        raise Refused("nobody can be asked here: --yes says yes")
    click.confirm("Go on?", abort=True, err=True)


def _answer_json(ctx: click.Context, _: click.Parameter, said: bool) -> None:
    ctx.ensure_object(Shell).as_json = said


URL = click.Option(["--url"], help="The server. Default: PALIMPSEST_URL, or the one of this folder.")
TOKEN = click.Option(["--token"], help="Your token, where users log in. Default: PALIMPSEST_TOKEN.")
AGENT = click.Option(["--agent"], default="default", help="Whose memory: an agent_name.")
LOCAL = click.Option(["--local"], is_flag=True, help="Ask no server, but this folder's files.")
YES = click.Option(["--yes", "-y"], is_flag=True, help="Do not ask.")
JSON = click.Option(
    ["--json"], is_flag=True, expose_value=False, callback=_answer_json, help="Print the API's own answer as JSON."
)


def asks(
    name: str,
    *typed: click.Parameter,
    has_local: bool = True,
    shown: Sequence[str] = (),
    does: str = "",
) -> Callable[[Run], click.Command]:
    """Return what makes a command of a function: with the options that say which memory it is about, which is opened.

    Args:
        name: What is typed for it.
        typed: What else is.
        has_local: Whether it can do without a server.
        shown: Examples of its use.
        does: What it does; by default the function's docstring says so.
    """

    def decorate(run: Run) -> click.Command:
        @click.pass_obj
        def command(shell: Shell, /, url: str, token: str, agent: str, local: bool = False, **given: Any) -> None:
            from graphs.cli.client import open_memory  # with httpx and settings: a help does not wait for imports

            with open_memory(shell, url, token, agent, local) as memory:
                run(memory, shell, **given)

        params = [*typed, URL, TOKEN, AGENT, *[LOCAL] * has_local, JSON]
        return click.Command(
            name,
            callback=command,
            params=params,
            help=does or run.__doc__,
            epilog=examples_of_use(*shown) if shown else None,
        )

    return decorate


def route(
    name: str,
    asked: str,
    show: Callable[[Shell, Json], None],
    does: str,
    *typed: click.Parameter,
    shown: Sequence[str] = (),
    **fixed: object,
) -> click.Command:
    """Return a command that asks the API one thing.

    Args:
        name: What is typed for it.
        asked: Method and path. What is typed under a name of the path goes there, the rest into query or body.
        show: Shows a person the answer.
        does: What it does.
        typed: What else is typed, under the API's names.
        shown: Examples of its use.
        fixed: What the body says whatever is typed.
    """
    method, _, path = asked.partition(" ")

    @asks(name, *typed, shown=shown, does=does)
    def command(memory: "MemoryClient", shell: Shell, **given: object) -> None:
        fields = {each: said for each, said in given.items() if f"{{{each}}}" not in path}
        show(shell, memory.ask(method, path.format(**given), {**fields, **fixed}))

    return command


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
            click.echo(as_json(refused.problem) if shell.as_json else f"Error: {refused}", err=True)
            ctx.exit(1)


def _unforeseen(error: Exception) -> str:
    from graphs.process.failures import cause_of  # only here, as it reads settings: a help does not wait for that

    said = " ".join(str(error).split())
    return cause_of(error) or (
        f"this should not have happened: {type(error).__name__}: {said}. `palimpsest --debug …` shows where it came "
        "from; `palimpsest doctor` looks for the cause"
    )
