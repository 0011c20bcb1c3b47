"""`palimpsest backfill`: conversations that were held elsewhere, learned here; `palimpsest sources`: what was."""

from typing import TYPE_CHECKING

import click

from graphs.cli.asking import asks, route
from graphs.cli.shell import Json, Shell, counted

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
    found = plan.estimate()
    talks, messages = counted(found["conversations"], "conversation"), counted(found["messages"], "message")
    when = f", from {found['first'][:10]} to {found['last'][:10]}" if found["messages"] else ""
    shell.say(f"{talks} with {messages}{when}: a model is asked about {counted(found['extractions'], 'time')}")
    left = ", ".join(f"{number} {kind}" for kind, number in plan.left_out.items()) or "nothing"
    shell.say(f"{counted(found['facts'], 'remembered sentence')} to wait for your yes, left out: {left}")
    done: Json = {} if dry_run else send_all(memory, shell, plan, source, learn=not no_learn)
    shell.answer({**found, **done})
    if done:
        shell.say(", ".join(f"{number} {each}" for each, number in done.items() if each != "sources"))
        for name in done["sources"]:
            shell.note(f"to take it back: palimpsest erase source {name}")
        if done["waiting"]:
            shell.note("what waits is learned by a server; then run this again for the rest")
        if done["dead"]:
            shell.note("what is dead failed for good: `palimpsest pending retry --all` tries again")
    for flaw in plan.flaws[:_FLAWS_SHOWN]:
        shell.note(f"left out: {flaw.place}: {flaw.reason}")
    if len(plan.flaws) > _FLAWS_SHOWN:
        shell.note(f"left out: {len(plan.flaws) - _FLAWS_SHOWN} more")
    if plan.flaws or done.get("dead"):  # the others are in, and a script must know that these are not
        raise click.exceptions.Exit(1)


def _show_sources(shell: Shell, found: Json) -> None:
    columns = ("name", "origin", "begun", "conversations", "messages", "learned", "waiting", "dead")
    shell.table(columns, [[each[name] for name in columns] for each in found["sources"]])
    if not found["sources"]:
        shell.note("nothing was imported: `palimpsest backfill FILE` does")


sources = route(
    "sources", "GET /sources", _show_sources, "List what was imported, and how much of it waits.",
    shown=("sources", "erase source chatgpt"),
)  # fmt: skip
