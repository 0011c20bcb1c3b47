"""`palimpsest export` and `palimpsest import`: the whole memory as one file, there and back."""

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from graphs.cli.asking import asks_memory
from graphs.cli.client import MemoryClient
from graphs.cli.output import Output, counted
from graphs.cli.shell import Refused

_PIECE = 256 * 1024
_PATIENCE_SECONDS = 3600.0
_REFUSED_SHOWN = 10

Target = Annotated[str, typer.Argument(metavar="FILE", help="Where to write; - is standard output.")]


@contextmanager
def _source(file: str) -> Iterator[BinaryIO]:
    """Open an export for reading."""
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as source:
            yield source
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from error


def _readable(file: str) -> str:
    """Refuse what cannot be read while the command line is: later, `--local` has made files for it."""
    with _source(file):
        return file


Origin = Annotated[
    str,
    typer.Argument(metavar="FILE", help="What `palimpsest export` wrote; - is standard input.", callback=_readable),
]


@asks_memory()
async def export(
    memory: MemoryClient,
    out: Output,
    file: Target = "-",
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write everything that is remembered, a JSON value a line. A file has its name only once it is whole."""
    if file == "-":
        async with memory.reading("/export") as pieces:
            await _copy(pieces, sys.stdout.buffer)
        return
    path = Path(file)
    with _whole(path, force) as written:
        async with memory.reading("/export") as pieces:
            size = await _copy(pieces, written)
    out.answer({"file": str(path), "bytes": size}, lambda: out.say(f"{path}: {size} bytes"))


@contextmanager
def _whole(path: Path, force: bool) -> Iterator[BinaryIO]:
    """Open a file that only its owner reads, and that gets its name when all is written."""
    if path.exists() and not force:
        raise Refused(f"{path} is there already: --force writes over it")
    name = ""
    try:
        # In the same folder: only within a file system is a file renamed as a whole.
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as written:
            yield written
            written.flush()
            os.fsync(written.fileno())  # a name in front of lost bytes would pass for a backup
        Path(name).replace(path)
        name = ""
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}") from error
    finally:
        if name:
            Path(name).unlink(missing_ok=True)


async def _copy(pieces: AsyncIterator[bytes], target: BinaryIO) -> int:
    size = 0
    async for piece in pieces:
        target.write(piece)
        size += len(piece)
    target.flush()
    return size


@asks_memory(files="made")
async def take_in(memory: MemoryClient, out: Output, file: Origin) -> None:
    """Take such a file in. Twice is the same as once, and nothing that is there is overwritten."""
    with _source(file) as source:
        if memory.is_local and source.seekable():
            _check_beginning(file, source)  # before the first request makes files for it
        done = await memory.ask("POST", "/import", content=_read(source), patience=_PATIENCE_SECONDS)

    def lines() -> None:
        refused = len(done["refused"]) + done["refused_more"]
        made = counted(len(done["created"]), "new fact")
        if done["quarantined"]:
            made += f" ({len(done['quarantined'])} wait for your yes)"
        sections = counted(len(done["sections"]), "profile section")
        days = counted(done["journal"], "journal entry", "journal entries")
        waiting = counted(done["updates"], "update")
        out.say(
            f"{made}, {done['known']} known already, {sections}, {days}, {waiting} to be learned, {refused} refused"
        )
        for each in done["refused"][:_REFUSED_SHOWN]:
            out.say(f"refused line {each['line']}: {each['reason']}")

    out.answer(done, lines)
    if done["refused"]:  # the others are in: said above, and the script that moves a memory must know
        raise typer.Exit(1)


def _check_beginning(file: str, source: BinaryIO) -> None:
    """Refuse what does not begin as an export does; a file that is read from its start afterwards."""
    # Only here, as other commands need nothing of it.
    from memory.archive.importing import Importer
    from memory.config import MemoryConfig
    from memory.namespaces import Owner

    try:
        importer = Importer(Owner.of("nobody"), MemoryConfig(), 0.0)
        importer.take(source.readline(_PIECE))
    except ValueError as error:
        raise Refused(f"{file}: {error}") from None
    source.seek(0)


async def _read(source: BinaryIO) -> AsyncIterator[bytes]:
    while piece := source.read(_PIECE):
        yield piece
