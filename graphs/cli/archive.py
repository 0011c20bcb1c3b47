"""`palimpsest export` and `palimpsest import`: the whole memory as one file, there and back."""

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from graphs.cli.asking import asks
from graphs.cli.shell import Refused, Shell

if TYPE_CHECKING:
    from graphs.cli.client import MemoryClient

_REFUSED_SHOWN = 10


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
    done = {"file": file, "bytes": size}
    shell.answer(done)
    shell.fields(done)


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
    shell.fields({**done, "created": len(done["created"]), "refused": len(done["refused"]) + done["refused_more"]})
    for each in done["refused"][:_REFUSED_SHOWN]:
        shell.say(f"refused line {each['line']}: {each['reason']}")
    if done["refused"]:  # the others are in: said above, and the script that moves a memory must know
        raise click.exceptions.Exit(1)
