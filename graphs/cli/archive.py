"""`palimpsest export` and `palimpsest import`: the whole memory as one file, there and back."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from graphs.cli.asking import asks
from graphs.cli.shell import Refused, Shell, counted

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient

_REFUSED_SHOWN = 10


@contextmanager
def _open_to_write(file: str, force: bool) -> Iterator[BinaryIO]:
    """Open a file that only its owner reads, and that gets its name when all is written."""
    if file == "-":
        yield sys.stdout.buffer
        return
    path = Path(file)
    if path.exists() and not force:
        raise Refused(f"{path} is there already: --force writes over it")
    try:
        # In the same folder: only within a file system is a file renamed as a whole.
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
            part = Path(folder, path.name)
            part.touch(0o600)
            with part.open("wb") as opened:
                yield opened
                opened.flush()
                os.fsync(opened.fileno())  # a name in front of lost bytes would pass for a backup
            part.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}") from error


@asks(
    "export",
    click.Argument(["file"], default="-"),
    click.Option(["--force"], is_flag=True, help="Write over a file that is there."),
    shown=("export backup.jsonl", "export - | jq .fact"),
)
def write_out(memory: "MemoryClient", shell: Shell, file: str, force: bool) -> None:
    """Write everything that is remembered, a JSON value a line, to FILE; - is standard output.

    A file has its name only once it is whole.
    """
    query = {"agent_name": memory.agent}
    with _open_to_write(file, force) as written, memory.open("GET", "/memory/export", params=query) as answer:
        size = sum(written.write(piece) for piece in answer.iter_bytes())
    if file != "-":
        shell.answer({"file": file, "bytes": size})
        shell.say(f"{file}: {size} bytes")


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
    shell.answer(done)
    refused = len(done["refused"]) + done["refused_more"]
    held = f" ({len(done['quarantined'])} wait for your yes)" if done["quarantined"] else ""
    shell.say(
        f"{counted(len(done['created']), 'new fact')}{held}, {done['known']} known already, "
        f"{counted(len(done['sections']), 'profile section')}, {counted(done['journal'], 'line')} of the journal, "
        f"{counted(done['updates'], 'update')} to be learned, {refused} refused"
    )
    for each in done["refused"][:_REFUSED_SHOWN]:
        shell.say(f"refused line {each['line']}: {each['reason']}")
    if refused:  # the others are in: said above, and the script that moves a memory must know
        raise click.exceptions.Exit(1)
