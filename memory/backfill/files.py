"""The conversations of a file, one after another: a ZIP, a list, or lines of JSON."""

import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any, Final

from memory.archive.entries import FORMAT
from memory.archive.importing import json_of
from memory.backfill.conversation import Conversation, Flaw, text_id, unique
from memory.backfill.exports import is_export, read_conversation, read_line
from memory.message import speaker_of

Found = Iterator[Conversation | Flaw]

# ChatGPT cuts a large export into `conversations-000.json` and so on.
_MEMBER = re.compile(r"(?:conversations(?:-\d+)?|memories)\.json")
_ZIP: Final = b"PK\x03\x04"
_BOM: Final = b"\xef\xbb\xbf"
_WANTED: Final = "an export of ChatGPT or Claude (the ZIP, or its conversations.json), or JSONL with a message a line"


class Unreadable(ValueError):
    """A file of which nothing more can be read; the message names the file, the place and the fix."""


def read_file(path: Path) -> Found:
    """Yield the conversations of a file, and what in it cannot be read; lines of one conversation in several parts.

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
            others = [PurePosixPath(name) for name in archive.namelist() if name not in members and name[-1] != "/"]
            if kinds := Counter(each.name if each.suffix in ("", ".json") else each.suffix for each in others):
                yield Conversation("jsonl", "", left_out=kinds)
            for name in members:
                with closing(archive.open(name)) as file:
                    yield from _read_json(file.read(), f"{path}, {name}", path.stem)
    # `zipfile` says so of a password, and zlib of what it cannot unpack.
    except (zipfile.BadZipFile, RuntimeError, EOFError, zlib.error) as error:
        raise Unreadable(f"{path} is a broken ZIP ({error}): download it once more") from error


def _read_json(raw: bytes, place: str, name: str) -> Found:
    raw = raw.removeprefix(_BOM).lstrip()
    if not raw:
        raise Unreadable(f"{place} is empty: give {_WANTED}")
    if raw[:1] not in b"[{":
        raise Unreadable(f"{place} is no JSON: give {_WANTED}")
    first = json_of(raw.partition(b"\n")[0])
    # An object on its own line: then lines are what the file is made of.
    if isinstance(first, dict):
        if first.get("format") == FORMAT:
            raise Unreadable(f"{place} is what `palimpsest export` wrote: `palimpsest import` takes it in")
        yield from _read_lines(raw.splitlines(), place, text_id(name))
        return
    try:
        whole = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{place} is damaged or was cut off ({error}): download it once more") from error
    held = whole.get("conversations") if isinstance(whole, dict) else whole
    if isinstance(held, list):
        for number, value in enumerate(held, 1):
            yield _converted(value, f"{place}, conversation {number}")
    if isinstance(whole, dict) and (is_export(whole) or "conversations" not in whole):
        yield _converted(whole, place)


def _converted(value: object, place: str) -> Conversation | Flaw:
    try:
        if not isinstance(value, dict):
            raise ValueError("this is no object")
        return read_conversation(value)
    except ValueError as error:
        return Flaw(place, str(error))


def _read_lines(lines: Sequence[bytes], place: str, name: str) -> Found:
    """Read lines of messages, neighbours of one conversation together, or of whole conversations."""
    for named, said in groupby(_each_line(lines, place, name), key=lambda each: each[0]):
        messages = []
        for _, found in said:
            if isinstance(found, Conversation | Flaw):
                yield found
            else:
                messages.append(found)
        if messages:
            speaker = speaker_of({one.name for one in messages if one.role == "user"})
            yield Conversation("jsonl", named, unique([one.heard(speaker) for one in messages]))


def _each_line(lines: Sequence[bytes], place: str, name: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                value = json.loads(line)
                if not isinstance(value, dict):
                    raise ValueError("a line must be an object")
                if is_export(value):
                    whole = read_conversation(value)
                    yield whole.id, whole
                elif found := read_line(value, name):
                    yield found
            except RecursionError:
                yield "", Flaw(f"{place}, line {number}", "it is nested too deeply")
            except ValueError as error:
                what = "it is no JSON, or no UTF-8" if isinstance(error, UnicodeError | json.JSONDecodeError) else error
                yield "", Flaw(f"{place}, line {number}", str(what))
