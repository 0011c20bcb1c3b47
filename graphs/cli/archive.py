"""`palimpsest export`, `import` and `backfill`: memory as files, there and back."""

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from graphs.cli.shell import Json, Refused, Shell, asks, word

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient

_SHOWN = 10  # of what was refused or left out


@asks(
    "export",
    click.Argument(["file"], default="-"),
    click.Option(["--force"], is_flag=True, help="Write over a file that is there."),
    shown=("export backup.jsonl", "export - | jq .fact"),
)
def write_out(memory: "MemoryClient", shell: Shell, file: str, force: bool) -> None:
    """Write everything that is remembered, a JSON value a line, to FILE; - is standard output.

    A file has its name only once it is whole, and only its owner reads it.
    """
    path, asked = Path(file), memory.open("GET", "/memory/export", params={"agent_name": memory.agent})
    if file == "-":
        with asked as answer:
            sys.stdout.buffer.writelines(answer.iter_bytes())
        return
    if path.exists() and not force:
        raise Refused(f"{path} is there already: --force writes over it")
    try:
        # In the same folder: only within a file system is a file renamed as a whole.
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder, asked as answer:
            part = Path(folder, path.name)
            part.touch(0o600)
            with part.open("wb") as written:
                written.writelines(answer.iter_bytes())
                written.flush()
                os.fsync(written.fileno())  # a name in front of lost bytes would pass for a backup
            size = part.stat().st_size
            part.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}") from error
    shell.fields({"file": file, "bytes": size})


@asks(
    "import",
    click.Argument(["file"], type=click.File("rb")),
    shown=("import backup.jsonl", "import backup.jsonl --local"),
)
def read_in(memory: "MemoryClient", shell: Shell, file: BinaryIO) -> None:
    """Take FILE in, which `palimpsest export` wrote; - is standard input.

    Twice is the same as once, and nothing that is there is overwritten.
    """
    done = memory.ask("POST", "/import", content=file)
    refused = [f"refused line {each['line']}: {each['reason']}" for each in done["refused"]]
    shell.fields(done, created=len(done["created"]), refused=len(refused) + done["refused_more"])
    for each in refused[:_SHOWN]:
        shell.say(each)
    if refused:  # the others are in: said above, and the script that moves a memory must know
        raise click.exceptions.Exit(1)


@asks(
    "backfill",
    click.Argument(["files"], nargs=-1, required=True),
    click.Option(["--source"], type=word, help="What to call it, to take it back. Default: chatgpt, claude, …"),
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
    from graphs.cli.importing import gather, send  # with the readers of exports

    plan = gather(files)
    done: dict[str, Json] = plan.estimate()
    if not dry_run:
        done |= send(memory, shell, plan, source, learn=not no_learn)
        shell.note("to take it back: palimpsest erase source ID; what waits, a server learns, then run this again")
    shell.fields(done)
    for flaw in plan.flaws[:_SHOWN]:
        shell.note(f"left out: {flaw.place}: {flaw.reason}")
    if more := plan.flaws[_SHOWN:]:
        shell.note(f"left out: {len(more)} more")
    if plan.flaws or done.get("dead"):  # the others are in, and a script must know that these are not
        raise click.exceptions.Exit(1)
