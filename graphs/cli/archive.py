"""`palimpsest export` and `palimpsest import`: the whole memory as one file, there and back."""

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from graphs.cli.asking import asks_memory
from graphs.cli.shell import Output, Refused, counted

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient

_PIECE = 256 * 1024
_REFUSED_SHOWN = 10


@contextmanager
def _open_to_read(file: str) -> Iterator[BinaryIO]:
    """Open an export for reading."""
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as opened:
            yield opened
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from error


@contextmanager
def _open_to_write(file: str, force: bool) -> Iterator[BinaryIO]:
    """Open a file that only its owner reads, and that gets its name when all is written."""
    if file == "-":
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    path = Path(file)
    if path.exists() and not force:
        raise Refused(f"{path} is there already: --force writes over it")
    part: Path | None = None
    try:
        # In the same folder: only within a file system is a file renamed as a whole.
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        part = Path(name)
        with os.fdopen(handle, "wb") as opened:
            yield opened
            opened.flush()
            os.fsync(handle)  # a name in front of lost bytes would pass for a backup
        part.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}") from error
    finally:
        if part:
            part.unlink(missing_ok=True)


def _readable(file: str) -> str:
    """Refuse what cannot be read while the command line is: later, `--local` has made files for it."""
    with _open_to_read(file):
        return file


@asks_memory()
async def write_out(
    memory: "MemoryClient",
    out: Output,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to write; - is standard output.")] = "-",
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write everything that is remembered, a JSON value a line. A file has its name only once it is whole."""
    size = 0
    with _open_to_write(file, force) as written:
        async with memory.reading("/export") as pieces:
            async for piece in pieces:
                size += written.write(piece)
    if file != "-":
        out.answer({"file": file, "bytes": size})
        out.say(f"{file}: {size} bytes")


@asks_memory(files="made")
async def read_in(
    memory: "MemoryClient",
    out: Output,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="What `palimpsest export` wrote; - is standard input.", callback=_readable),
    ],
) -> None:
    """Take such a file in. Twice is the same as once, and nothing that is there is overwritten."""
    with _open_to_read(file) as source:
        if memory.is_local and source.seekable():
            _check_beginning(file, source)  # before the first request makes files for it
        done = await memory.ask("POST", "/import", content=_read_pieces(source), patience=3600.0)
    out.answer(done)
    refused = len(done["refused"]) + done["refused_more"]
    made = counted(len(done["created"]), "new fact")
    if done["quarantined"]:
        made += f" ({len(done['quarantined'])} wait for your yes)"
    sections = counted(len(done["sections"]), "profile section")
    days = counted(done["journal"], "journal entry", "journal entries")
    waiting = counted(done["updates"], "update")
    out.say(f"{made}, {done['known']} known already, {sections}, {days}, {waiting} to be learned, {refused} refused")
    for each in done["refused"][:_REFUSED_SHOWN]:
        out.say(f"refused line {each['line']}: {each['reason']}")
    if refused:  # the others are in: said above, and the script that moves a memory must know
        raise typer.Exit(1)


def _check_beginning(file: str, source: BinaryIO) -> None:
    """Refuse what does not begin as an export does; a file that is read from its start afterwards."""
    from memory.archive.importing import Importer
    from memory.config import MemoryConfig
    from memory.namespaces import Owner

    try:
        Importer(Owner.of("nobody"), MemoryConfig(), 0.0).take(source.readline(_PIECE))
    except ValueError as error:
        raise Refused(f"{file}: {error}") from None
    source.seek(0)


async def _read_pieces(source: BinaryIO) -> AsyncIterator[bytes]:
    while piece := source.read(_PIECE):
        yield piece
