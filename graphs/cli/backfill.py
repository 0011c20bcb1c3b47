"""`palimpsest backfill`: conversations that were held elsewhere, learned here; `palimpsest sources`: what was."""

from typing import TYPE_CHECKING

import click

from graphs.cli.asking import asks, route
from graphs.cli.shell import Json, Shell

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient

_FLAWS_SHOWN = 10


@asks(
    "backfill",
    click.Argument(["files"], nargs=-1, required=True),
    click.Option(["--source"], help="What to call it, to take it back. Default: chatgpt, claude, …"),
    click.Option(["--dry-run"], is_flag=True, help="Only read the files, and say what there is. Asks nobody."),
    click.Option(["--no-learn"], is_flag=True, help="Only write it into the journal, where it can be searched."),
    shown=("backfill chatgpt-export.zip --dry-run", "backfill notes.jsonl --source notes"),
)
def backfill(
    memory: "MemoryClient", shell: Shell, files: tuple[str, ...], source: str | None, dry_run: bool, no_learn: bool
) -> None:
    """Learn from conversations that you had elsewhere. Twice is the same as once, and what was broken off goes on.

    FILES are exports of ChatGPT or Claude (the ZIP, or its conversations.json), or JSONL with a message a line. First
    all of it goes into the journal, at its own dates. Then it is learned, oldest first, as turns are.
    """
    from graphs.cli.importing import gather, send_all  # with the readers of exports

    plan = gather(files)
    done = plan.estimate()
    if not dry_run:
        done |= send_all(memory, shell, plan, source, learn=not no_learn)
        shell.note("to take it back: palimpsest erase source ID; what waits, a server learns, then run this again")
    shell.answer(done)
    shell.fields(done)
    for flaw in plan.flaws[:_FLAWS_SHOWN]:
        shell.note(f"left out: {flaw.place}: {flaw.reason}")
    if len(plan.flaws) > _FLAWS_SHOWN:
        shell.note(f"left out: {len(plan.flaws) - _FLAWS_SHOWN} more")
    if plan.flaws or done.get("dead"):  # the others are in, and a script must know that these are not
        raise click.exceptions.Exit(1)


def _show_sources(shell: Shell, found: Json) -> None:
    columns = ("name", "origin", "begun", "conversations", "messages", "learned", "waiting", "dead")
    shell.rows(found["sources"], *columns)


sources = route(
    "sources", "GET /sources", _show_sources, "List what was imported, and how much of it waits.",
    shown=("sources", "erase source chatgpt"),
)  # fmt: skip
