"""A large JSON object read piece by piece: no more of it is in memory than one entry of one of its lists. Pure."""

# Why our own and not ijson (3.6.0 was tried): its C backend ends the process with a segmentation fault at a number of
# more than 4,300 digits, and its Python backend takes eight times as long as this file; neither has a limit for one
# value (200 MB of one string were held), nested brackets take memory by the square of their number, a lone surrogate
# comes back as a question mark, and errors quote the document instead of naming the place.

import codecs
import json
import re
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

# An entry is in memory as a whole while it is read: this bounds what one body takes, also if it is one long string.
MAX_ENTRY_CHARS: Final = 32 * 1024 * 1024

_SPACE = re.compile(r"[ \t\n\r]*")
# What is wrong closer to the end of what was read so far may only be cut off: `\ud83d\ude0` is the longest such piece.
_MAY_BE_CUT = 12
_NUMBER = re.compile(r"[0-9+\-.eE]*")


class JsonPart(NamedTuple):
    """A member of the object, or one entry of a member that is a list with entries: then `place` is its number, from 0.

    `size` is how many characters it takes.
    """

    name: str
    place: int | None
    value: object
    size: int = 0


# Python refuses to convert more than 4,300 digits, and a float has no more than 309.
_DECODER: Final = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) < 300 else float(digits[:400]))


class PartsReader:
    """Reads one JSON object, or one list, from bytes that come in pieces.

    Args:
        max_entry_chars: A longer value, or entry of a list, is refused.
        is_list: It is a list; its entries are parts without a name.
    """

    def __init__(self, max_entry_chars: int = MAX_ENTRY_CHARS, *, is_list: bool = False) -> None:
        self._max = max_entry_chars
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text, self._at, self._read = "", 0, 0
        self._is_last = False
        self._retry_at = 0
        self._names: set[str] = set()
        self._size = 0
        self._parts = self._list() if is_list else self._object()

    def feed(self, piece: bytes) -> Iterator[JsonPart]:
        """Yield what the next piece completes; `ValueError` if it is no such JSON, with the place."""
        return self._go_on(piece, is_last=False)

    def close(self) -> Iterator[JsonPart]:
        """Yield what the end completes; `ValueError` if the object is not whole."""
        return self._go_on(b"", is_last=True)

    def _go_on(self, piece: bytes, *, is_last: bool) -> Iterator[JsonPart]:
        try:
            more = self._decoder.decode(piece, final=is_last)
        except UnicodeDecodeError as error:
            raise ValueError("body must be UTF-8") from error
        self._read += self._at
        self._text, self._at = self._text[self._at :] + more, 0
        self._is_last = is_last
        for part in self._parts:
            if part is None:
                return
            yield part

    def _object(self) -> Generator[JsonPart | None, None, None]:
        yield from self._expect("{", "an object")
        while (char := (yield from self._next())) != "}":
            if self._names:
                yield from self._expect(",", "a comma or }")
            name = yield from self._value()
            if not isinstance(name, str):
                raise self._wrong("a name in quotes")
            if name in self._names:
                raise ValueError(f"{name[:64]} stands in the document twice")
            self._names.add(name)
            yield from self._expect(":", "a colon")
            if (yield from self._next()) != "[":
                yield JsonPart(name, None, (yield from self._value()), self._size)
                continue
            yield from self._entries(name)
        self._at += len(char)
        yield from self._end()

    def _list(self) -> Generator[JsonPart | None, None, None]:
        if (yield from self._next()) != "[":
            raise self._wrong("a list")
        yield from self._entries("")
        yield from self._end()

    def _entries(self, name: str) -> Generator[JsonPart | None, None, None]:
        self._at += 1
        index = 0
        while (yield from self._next()) != "]":
            if index:
                yield from self._expect(",", "a comma or ]")
            yield JsonPart(name, index, (yield from self._value()), self._size)
            index += 1
        self._at += 1
        if not index:
            yield JsonPart(name, None, [], 2)

    def _end(self) -> Generator[None, None, None]:
        if (yield from self._next(or_end=True)):
            raise self._wrong("nothing more")

    def _expect(self, wanted: str, said: str) -> Generator[None, None, None]:
        if (yield from self._next()) != wanted:
            raise self._wrong(said)
        self._at += 1

    def _next(self, *, or_end: bool = False) -> Generator[None, None, str]:
        """Return the next character that is no space; empty at the end, if that may come."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if self._is_last:
                if or_end:
                    return ""
                raise ValueError(f"body breaks off after {self._read + self._at} characters")
            yield None

    def _value(self) -> Generator[None, None, object]:
        yield from self._next()
        wait_for = 0
        while True:
            length = len(self._text) - self._at
            if length > self._max:
                raise ValueError(f"body: the entry at character {self._read + self._at} is longer than {self._max}")
            if length >= wait_for or self._is_last:
                value, end = self._decoded()
                number = _NUMBER.match(self._text, self._at)
                # What ends where the text ends may go on in the next piece: "1" as "12", and "1" as "1e5".
                if end is not None and (self._is_last or len(self._text) not in (end, number.end() if number else end)):
                    self._size, self._at = end - self._at, end
                    return value
                # Twice as much, or reading a long entry again with each piece would take the square of its length.
                wait_for = 0 if end is not None else 2 * length
            yield None

    def _decoded(self) -> tuple[object, int | None]:
        """Return the value at the present place and where it ends; `None` where it may only be cut off."""
        try:
            return _DECODER.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            is_cut = error.msg.startswith("Unterminated string") or error.pos > len(self._text) - _MAY_BE_CUT
            if is_cut and not self._is_last:
                return None, None
            self._at = error.pos
            raise self._wrong("JSON") from None
        except RecursionError:
            raise ValueError("body is nested too deeply") from None

    def _wrong(self, wanted: str) -> ValueError:
        return ValueError(f"body must have {wanted} at character {self._read + self._at}")
