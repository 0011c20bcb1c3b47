"""`palimpsest backfill`: conversations that were held elsewhere, learned here; `palimpsest sources`: what was."""

from typing import TYPE_CHECKING, Annotated

import typer

from graphs.cli.asking import asks_memory
from graphs.cli.shell import Output

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient

_FLAWS_SHOWN = 10

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE…",
        help="Exports of ChatGPT or Claude (the ZIP, or its conversations.json), or JSONL with a message a line.",
    ),
]
SourceName = Annotated[
    str | None,
    typer.Option("--source", metavar="ID", help="What to call it, to take it back. Default: chatgpt, claude, …"),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only read the files, and say what there is. Asks nobody.")]
NoLearn = Annotated[bool, typer.Option("--no-learn", help="Only write it into the journal, where it can be searched.")]


@asks_memory(files="made")
async def backfill(
    memory: "MemoryClient",
    out: Output,
    files: Files,
    source: SourceName = None,
    dry_run: DryRun = False,
    no_learn: NoLearn = False,
) -> None:
    """Learn from conversations that you had elsewhere. Twice is the same as once, and what was broken off goes on.

    First all of it goes into the journal, at its own dates. Then it is learned, oldest first, as turns are.
    """
    from graphs.cli.importing import gather, send_all, tell
    from memory.namespaces import checked_source

    try:
        name = checked_source(source) if source else None
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    plan, flaws = gather(files)
    if dry_run:
        tell(out, plan)
    else:
        await send_all(memory, out, plan, name, learn=not no_learn)
    for flaw in flaws[:_FLAWS_SHOWN]:
        out.note(f"left out: {flaw.place}: {flaw.reason}")
    if len(flaws) > _FLAWS_SHOWN:
        out.note(f"left out: {len(flaws) - _FLAWS_SHOWN} more")
    if flaws:  # the others are in, and a script must know that these are not
        raise typer.Exit(1)


@asks_memory()
async def sources(memory: "MemoryClient", out: Output) -> None:
    """List what was imported, and how much of it waits."""
    found = await memory.get("/sources")
    out.answer(found)
    columns = ["name", "origin", "begun", "conversations", "messages", "learned", "waiting", "dead"]
    out.table(columns, [[str(each[name])[:19] for name in columns] for each in found["sources"]])
    if not found["sources"]:
        out.note("nothing was imported: `palimpsest backfill FILE` does")
