"""The `palimpsest` command."""

import gc
from typing import Annotated

import typer

from graphs.cli import archive
from graphs.cli.backfill import backfill, sources
from graphs.cli.chat import chat
from graphs.cli.erase import erase
from graphs.cli.facts import facts
from graphs.cli.pending import pending
from graphs.cli.set_up import dev, doctor, token
from graphs.cli.shell import Group, Shell, examples

_MORE = """
Exit codes: 0 done, 1 refused or failed, 2 the command line is wrong.

The server is the one of --url or PALIMPSEST_URL (else this folder's); `palimpsest COMMAND --help` has examples.
"""

main = typer.Typer(
    cls=Group, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich", epilog=_MORE
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"palimpsest, version {version('palimpsest-memory')}")
        raise typer.Exit


@main.callback()
def palimpsest(
    ctx: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an unexpected error came from.")] = False,
    _: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """A chat agent for LangGraph Platform that remembers."""
    # What a command imports stays until it ends: looking through all of it for garbage took a third of its time.
    gc.set_threshold(100_000)
    ctx.ensure_object(Shell).debug = debug


main.command(
    epilog=examples(
        "palimpsest chat",
        'palimpsest chat "My name is Ada." --wait 300',
        "palimpsest chat --mode incognito",
        "echo 'What must I not eat?' | palimpsest chat",
    )
)(chat)
main.add_typer(facts, name="facts")
main.add_typer(pending, name="pending")
main.command("export", epilog=examples("palimpsest export backup.jsonl", "palimpsest export - | jq .fact"))(
    archive.write_out
)
main.command("import", epilog=examples("palimpsest import backup.jsonl", "palimpsest import backup.jsonl --local"))(
    archive.read_in
)
main.command(
    epilog=examples(
        "palimpsest backfill chatgpt-export.zip --dry-run",
        "palimpsest backfill chatgpt-export.zip claude-export.zip",
        "palimpsest backfill notes.jsonl --source notes",
    )
)(backfill)
main.command(epilog=examples("palimpsest sources", "palimpsest erase source chatgpt"))(sources)
main.add_typer(erase, name="erase")
main.command(epilog=examples("palimpsest doctor", "palimpsest doctor --no-ask --json"))(doctor)
main.command(context_settings={"ignore_unknown_options": True})(dev)
main.command()(token)
