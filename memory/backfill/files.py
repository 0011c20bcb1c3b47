"""The conversations of a file, one after another, however large it is: a ZIP, a list, or lines of JSON."""

import io
import json
import re
import zipfile
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Final

from memory.archive.importing import SCHEMA
from memory.archive.json_parts import MAX_ENTRY_CHARS, PartsReader
from memory.backfill.conversation import Conversation, Flaw, text_id, unique
from memory.backfill.exports import read_conversation, read_line

Found = Iterator[Conversation | Flaw]

_PIECE: Final = 256 * 1024
# ChatGPT cuts a large export into `conversations-000.json` and so on.
_MEMBER = re.compile(r"conversations(?:-\d+)?\.json")
_ZIP: Final = b"PK\x03\x04"
_BOM: Final = b"\xef\xbb\xbf"
_WANTED: Final = "an export of ChatGPT or Claude (the ZIP, or its conversations.json), or JSONL with a message a line"


class Unreadable(ValueError):
    """A file of which nothing more can be read; the message names the file, the place and the fix."""


def read_file(path: Path) -> Found:
    """Yield the conversations of a file, and what in it cannot be read; lines of one conversation in several parts.

    No more of it is in memory than one conversation.

    Raises:
        Unreadable: If it is no such file, or breaks off.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(_ZIP)) == _ZIP:
                yield from _read_zip(path)
            else:
                file.seek(0)
                yield from _read_json(file, str(path), path.stem)
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror or error}") from error


def _read_zip(path: Path) -> Found:
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(name for name in archive.namelist() if _MEMBER.fullmatch(name.rpartition("/")[2]))
            if not members:
                raise Unreadable(f"{path} holds no conversations.json: give {_WANTED}")
            for name in members:
                with closing(archive.open(name)) as file:
                    yield from _read_json(file, f"{path}, {name}", path.stem)
    # `zipfile` says so of a password, and zlib of what it cannot unpack.
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
        raise Unreadable(f"{path} is a broken ZIP ({error}): download it once more") from error
    except Exception as error:
        if type(error).__module__ != "zlib":
            raise
        raise Unreadable(f"{path} is a broken ZIP ({error}): download it once more") from error


def _read_json(file: IO[bytes], place: str, name: str) -> Found:
    reader = io.BufferedReader(file, _PIECE) if isinstance(file, io.RawIOBase) else file
    begin = reader.readline(_PIECE)
    if begin.startswith(_BOM):
        begin = begin[len(_BOM) :]
    while begin.isspace():
        begin = reader.readline(_PIECE)
    if begin[:1].isspace():
        begin = begin.lstrip()
    if not begin:
        raise Unreadable(f"{place} is empty: give {_WANTED}")
    if begin.startswith(b"["):
        yield from _read_list(begin, reader, place)
    elif begin.startswith(b"{") and _is_object(begin):
        yield from _read_lines(begin, reader, place, text_id(name))
    elif begin.startswith(b"{"):
        yield from _read_object(begin, reader, place)
    else:
        raise Unreadable(f"{place} is no JSON: give {_WANTED}")


def _is_object(line: bytes) -> bool:
    """Say whether a line is an object of its own: then lines are what the file is made of."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _pieces(begin: bytes, file: IO[bytes]) -> Iterator[bytes]:
    yield begin
    while piece := file.read(_PIECE):
        yield piece


def _read_list(begin: bytes, file: IO[bytes], place: str) -> Found:
    for _, index, value in _parts(PartsReader(is_list=True), begin, file, place):
        if index is not None:
            yield _converted(value, f"{place}, conversation {index + 1}")


def _read_object(begin: bytes, file: IO[bytes], place: str) -> Found:
    """Read an object over several lines: it holds conversations, or is one."""
    whole: dict[str, Any] = {}
    is_read = False
    for name, index, value in _parts(PartsReader(), begin, file, place):
        if name == "schema" and value == SCHEMA:
            raise Unreadable(f"{place} is what `palimpsest export` wrote: `palimpsest import` takes it in")
        if name == "conversations":
            is_read = True
        if name == "conversations" and index is not None:
            yield _converted(value, f"{place}, conversation {index + 1}")
        elif index is None:
            whole[name] = value
        else:
            whole.setdefault(name, []).append(value)
    if "mapping" in whole or "chat_messages" in whole or not is_read:
        yield _converted(whole, place)


def _parts(reader: PartsReader, begin: bytes, file: IO[bytes], place: str) -> Iterator[tuple[str, int | None, Any]]:
    try:
        for piece in _pieces(begin, file):
            for part in reader.feed(piece):
                yield part.name, part.place, part.value
        for part in reader.close():
            yield part.name, part.place, part.value
    except ValueError as error:
        said = str(error).removeprefix("body").lstrip(": ")
        raise Unreadable(f"{place} {said}: the file is damaged or was cut off; download it once more") from error


def _converted(value: object, place: str) -> Conversation | Flaw:
    try:
        if not isinstance(value, dict):
            raise ValueError("this is no object")
        return read_conversation(value)
    except ValueError as error:
        return Flaw(place, str(error))


def _read_lines(begin: bytes, file: IO[bytes], place: str, name: str) -> Found:
    """Read lines of messages, neighbours of one conversation together, or of whole conversations."""
    for named, said in groupby(_lines(begin, file, place, name), key=lambda each: each[0]):
        messages = []
        for _, found in said:
            if isinstance(found, Conversation | Flaw):
                yield found
            else:
                messages.append(found)
        if messages:
            yield Conversation("jsonl", named, unique(messages))


def _lines(begin: bytes, file: IO[bytes], place: str, name: str) -> Iterator[tuple[str, Any]]:
    number, line = 1, begin
    while line:
        if len(line) >= MAX_ENTRY_CHARS:
            raise Unreadable(f"{place}, line {number}: it is longer than {MAX_ENTRY_CHARS} bytes: cut it into messages")
        if not line.isspace():
            try:
                found = _read_one(json.loads(line), name)
                if found is not None:
                    yield found
            except RecursionError:
                yield "", Flaw(f"{place}, line {number}", "it is nested too deeply")
            except ValueError as error:
                what = "it is no JSON, or no UTF-8" if isinstance(error, UnicodeError | json.JSONDecodeError) else error
                yield "", Flaw(f"{place}, line {number}", str(what))
        number, line = number + 1, file.readline(MAX_ENTRY_CHARS)


def _read_one(value: object, name: str) -> tuple[str, Any] | None:
    if not isinstance(value, dict):
        raise ValueError("a line must be an object")
    if "mapping" in value or "chat_messages" in value:
        found = read_conversation(value)
        return found.id, found
    return read_line(value, name)
