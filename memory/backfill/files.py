"""The conversations of a file, one after another: a ZIP, a list, or lines of JSON."""

import json
import re
import zipfile
import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Final

from memory.archive.entries import FORMAT
from memory.archive.importing import json_of
from memory.backfill.conversation import Conversation, Flaw, text_id, unique
from memory.backfill.exports import read_exported, read_line
from memory.message import StoredMessage

Found = Iterator[Conversation | Flaw]

# ChatGPT cuts a large export into `conversations-000.json` and so on.
_MEMBER = re.compile(r"(?:conversations(?:-\d+)?|memories)\.json")
_ZIP: Final = b"PK\x03\x04"
_WANTED: Final = "an export of ChatGPT or Claude (the ZIP, or its conversations.json), or JSONL with a message a line"


class Unreadable(ValueError):
    """A file of which nothing more can be read; the message names the file, the place and the fix."""


def read_file(path: Path) -> Found:
    """Yield the conversations of a file, and what in it cannot be read; lines of one conversation in several parts.

    Whose words people's messages are, all parts of a conversation tell: here they are the user's.

    Raises:
        Unreadable: If it is no such file, or breaks off.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(_ZIP)) == _ZIP:
                yield from _read_zip(path)
            else:
                file.seek(0)
                yield from _read_json(file.read(), str(path), path.stem)
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror or error}") from error


def _read_zip(path: Path) -> Found:
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(name for name in archive.namelist() if _MEMBER.fullmatch(name.rpartition("/")[2]))
            if not members:
                raise Unreadable(f"{path} holds no conversations.json: give {_WANTED}")
            others = [PurePosixPath(name) for name in archive.namelist() if name not in members and name[-1:] != "/"]
            if kinds := Counter(each.name if each.suffix in ("", ".json") else each.suffix for each in others):
                yield Conversation("jsonl", "", left_out=kinds)
            for name in members:
                with archive.open(name) as file:
                    yield from _read_json(file.read(), f"{path}, {name}", path.stem)
    # `zipfile` says so of a password, and zlib of what it cannot unpack.
    except (zipfile.BadZipFile, RuntimeError, EOFError, zlib.error) as error:
        raise Unreadable(f"{path} is a broken ZIP ({error}): download it once more") from error


def _read_json(raw: bytes, place: str, name: str) -> Found:
    """Yield the conversations of JSON: whole ones, and lines of messages, neighbours of one conversation together."""

    def read(where: str, value: object) -> tuple[str, Conversation | StoredMessage | Flaw] | None:
        """Return a message after its conversation's id, or what stands alone; `None` for what neither side said."""
        try:
            if not isinstance(value, dict):
                raise ValueError("it is no object of JSON in UTF-8")
            return read_line(value, text_id(name)) if "role" in value else ("", read_exported(value))
        except ValueError as error:
            return "", Flaw(where, str(error))

    entries = filter(None, (read(*each) for each in _entries(raw, place)))
    for conversation, group in groupby(entries, key=itemgetter(0)):
        messages = []
        for _, found in group:
            if isinstance(found, StoredMessage):
                messages.append(found)
            else:
                yield found
        if messages:
            yield Conversation("jsonl", conversation, unique(messages))


def _entries(raw: bytes, place: str) -> Iterator[tuple[str, object]]:
    """Yield what a list, or lines, hold, or the one value that there is, each after its place."""
    raw = raw.removeprefix(BOM_UTF8).lstrip()
    first = json_of(raw.partition(b"\n")[0])
    # An object on its own line: then lines are what the file is made of.
    if isinstance(first, dict):
        if first.get("format") == FORMAT:
            raise Unreadable(f"{place} is what `palimpsest export` wrote: `palimpsest import` takes it in")
        yield from ((f"{place}, line {n}", json_of(line)) for n, line in enumerate(raw.splitlines(), 1) if line.strip())
        return
    try:
        whole = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{place} is no JSON, or was cut off ({error}): give {_WANTED}, downloaded anew") from error
    if isinstance(whole, list):
        yield from ((f"{place}, conversation {number}", value) for number, value in enumerate(whole, 1))
    else:
        yield place, whole
