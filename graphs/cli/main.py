"""The `palimpsest` command."""

import gc

import click

from graphs.cli import archive
from graphs.cli.backfill import backfill, sources
from graphs.cli.chat import chat
from graphs.cli.erase import erase
from graphs.cli.facts import facts
from graphs.cli.pending import pending
from graphs.cli.set_up import dev, doctor, token
from graphs.cli.shell import CommandLine, Shell

_MORE = """\b
Exit codes: 0 done, 1 refused or failed, 2 the command line is wrong.
The server is the one of --url or PALIMPSEST_URL (else this folder's); `palimpsest COMMAND --help` has examples.
"""


@click.group(
    cls=CommandLine,
    commands=[
        chat, facts, pending, archive.write_out, archive.read_in, backfill, sources, erase, doctor, dev, token
    ],
    epilog=_MORE,
    context_settings={"max_content_width": 120},
)  # fmt: skip
@click.option("--debug", is_flag=True, help="Show where an unexpected error came from.")
@click.version_option(package_name="palimpsest-memory", prog_name="palimpsest")
@click.pass_context
def main(ctx: click.Context, debug: bool) -> None:
    """A chat agent for LangGraph Platform that remembers."""
    # What a command imports stays until it ends: looking through all of it for garbage took a third of its time.
    gc.set_threshold(100_000)
    ctx.ensure_object(Shell).debug = debug
