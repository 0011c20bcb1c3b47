"""Text at the door: sanitized once, normalized for comparison, hashed for keys. Pure."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Final, Literal

# Bidi controls (U+202A-202E, U+2066-2069) and tag characters (U+E0000-E007F) hide or reorder what a reader sees
# (Trojan Source, CVE-2021-42574); both are category Cf, as is the zero-width joiner that emoji and Indic scripts need.
_KEPT: Final = frozenset("\u200c\u200d\n\t")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs"})
# Python sorts the marks on one letter by insertion: 40,000 of them take 14 s. The Stream-Safe Text Format (UAX #15)
# allows 30, more than any script has, and goes on after U+034F, which is seen nowhere.
_MARKS_ON_A_LETTER: Final = 30
_JOINER: Final = "\u034f"
# Letters that no normal form takes apart.
_LETTERS: Final = str.maketrans(
    {"ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "\u0131": "i"}
)
MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MAX_KEPT_CHARS: Final = 100_000
"""Of a longer message, a book pasted into the chat, memory keeps the beginning and the end, one half each."""
_LEFT_OUT: Final = "\n[… {chars:,} characters left out …]\n"
_LEFT_OUT_BEGIN, _LEFT_OUT_CHARS = _LEFT_OUT[:4], len(_LEFT_OUT) + 20

# Two letters with a capital before the point are a title: "Dr. Osei".
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])(?<!\b[A-Z][a-z]\.)\s+|\n")
_ENDINGS: Final = " .!?,;:…。！？、"  # noqa: RUF001 - full-width punctuation is meant


def without_middle(text: str) -> str:
    """Return a text of `MAX_KEPT_CHARS` at most, and a line that says how much was left out of its middle.

    No more is read of it, however long it is; what was shortened before stays as it is.
    """
    surplus = len(text) - MAX_KEPT_CHARS
    if surplus <= 0 or (surplus <= _LEFT_OUT_CHARS and _LEFT_OUT_BEGIN in text):
        return text
    half = MAX_KEPT_CHARS // 2
    return f"{text[:half]}{_LEFT_OUT.format(chars=surplus)}{text[-half:]}"


def word_set(words: str, form: Callable[[str], str] = str) -> frozenset[str]:
    """Return the words of a list that is written as text, each in the given form."""
    return frozenset(map(form, words.split()))


def _class_of(chars: Iterable[str]) -> str:
    return f"[{re.escape(''.join(chars))}]"


def _is_mark(char: str) -> bool:
    """Say whether a character, or what normalizing makes of it, stands on the one before."""
    first = unicodedata.decomposition(char).rpartition("> ")[2].partition(" ")[0]
    return unicodedata.combining(chr(int(first, 16)) if first else char) != 0


# The planes that have characters of these sorts: to look at all of Unicode would take a second of every start.
_CHARS: Final = tuple(map(chr, (*range(0x20000), *range(0xE0000, 0xE1000))))
_DROPPED = re.compile(_class_of(char for char in _CHARS if unicodedata.category(char) in _UNSEEN and char not in _KEPT))
_MARK: Final = _class_of(filter(_is_mark, _CHARS))
_MANY_MARKS = re.compile(f"{_MARK}{{{_MARKS_ON_A_LETTER}}}(?={_MARK})")
_TWO_MARKS = re.compile(_MARK * 2)


def sanitize(text: str, max_chars: int | None = None) -> str:
    """Return text that every store accepts and no reader is fooled by.

    Lone surrogates, NUL, control, bidi and tag characters are dropped (new lines and tabs stay), the rest is in
    Unicode normal form C. InMemory, SQLite and Postgres each treat the dropped ones differently.

    Args:
        text: Any string, also one that cannot be encoded.
        max_chars: Cut after so many characters; `None` keeps all.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    # What is printable has nothing to drop; Python tells that many times faster than a pattern does.
    is_clean = text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable()
    kept = text if is_clean else _DROPPED.sub("", text)
    composed = kept if kept.isascii() else _composed(kept, "NFC")
    return composed if max_chars is None else composed[:max_chars]


def _composed(text: str, form: Literal["NFC", "NFKC"]) -> str:
    """Return the normal form of a text, in time that grows with its length and not with its square."""
    return _parted(unicodedata.normalize(form, _parted(text)))


def _parted(text: str) -> str:
    # Of more than 30 marks in a row, every 15th character shows two.
    if not _TWO_MARKS.search(text[:: _MARKS_ON_A_LETTER // 2]):
        return text
    return _MANY_MARKS.sub(rf"\g<0>{_JOINER}", text)


def check_encodable(name: str, text: str) -> None:
    """Refuse an id that no file and no database can hold; changed silently, it would name something else.

    Raises:
        ValueError: If it has a lone surrogate; the message names the field.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = f"U+{ord(text[error.start]):04X} at position {error.start}"
        raise ValueError(f"{name} must be text without lone surrogates, but has {found}: choose another id") from None


def one_line(text: str) -> str:
    """Return sanitized text with every run of white space (line and paragraph separators too) as one space."""
    if text.isascii() and text.isprintable():  # the same, faster, for what is most common
        return " ".join(text.split())
    return " ".join(sanitize(text.replace("\r", "\n")).split())


_NO_NAME = re.compile(r"[!-&(-,/:-?\[-^`{-~]")
"""ASCII's punctuation but for that in "O'Brien", "J.-P." and addresses: a name can forge neither a line nor a tag."""


def fit_name(name: str) -> str:
    """Return a person's name as a line may begin with it, of 64 characters at most; empty if it is blank.

    What has no character that may stand there is told by its digest: two such names stay two.
    """
    return one_line(_NO_NAME.sub(" ", name))[:64].strip() or (digest(name)[:8] if name.strip() else "")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, and its lines, without white space around them."""
    return [part.strip() for part in _SENTENCE_ENDS.split(text) if part.strip()]


def normalize(text: str) -> str:
    """Return the form in which two wordings of one fact compare equal.

    Case (casefold), white space, Unicode normal form (NFKC) and trailing punctuation do not matter:
    `normalize("Lives in Oslo.") == normalize("lives in  oslo")`, `normalize("Straße") == normalize("STRASSE")`.
    """
    line = one_line(text)
    if line.isascii():
        return line.lower().rstrip(_ENDINGS)
    folded = _composed(_composed(line, "NFKC").casefold(), "NFKC")
    return one_line(folded).rstrip(_ENDINGS)


def fold(text: str) -> str:
    """Return text as it compares without case, accents and width: "Sørensen" as "sorensen"."""
    if text.isascii():  # the same, faster
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return "".join(char for char in plain if not unicodedata.combining(char)).translate(_LETTERS)


def digest(*parts: str) -> str:
    """Return the SHA-256 hex digest of the parts; where one part ends is part of what is hashed."""
    hashed = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        hashed.update(len(raw).to_bytes(8, "big") + raw)
    return hashed.hexdigest()


def flush_hash(role: str, text: str) -> str:
    """Return the MD5 hex digest by which a flushed message is recognized (B6); not a security measure."""
    raw = f"{role}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.md5(raw, usedforsecurity=False).hexdigest()


# Code, or a tag of those in which models think aloud, with what says that a sentence or a line begins or ends there.
_THOUGHT = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|(?P<begins>(?:\A|[.!?\u2026\u3002\uff01\uff1f])\s*|(?P<line>\n[ \t]*))?"
    r"(?P<tag><(?P<closes>/?)(?:think(?:ing)?|thought)>)(?P<ends>[ \t]*(?:\n|\Z)|(?=[\w\[{]|```))?\s*",
    re.DOTALL | re.IGNORECASE,
)
_THOUGHT_END = re.compile(r"</(?:think(?:ing)?|thought)>\s*", re.IGNORECASE)


def after_thoughts(said: str) -> str:
    """Return a model's answer without what it thinks aloud in tags; where that breaks off, nothing follows.

    A thought stands at the beginning or between sentences. Templates may swallow the first opening tag: all up to the
    closing one is a thought then. A tag in code is text, and so is one within a sentence.
    """
    kept, at, may_be_swallowed = "", 0, True
    for mark in _THOUGHT.finditer(said):
        if (place := mark.start("tag")) < at:
            continue
        begins = mark["begins"] is not None
        if mark["closes"]:
            if may_be_swallowed and (begins or mark["ends"] is not None):
                at = mark.end()
        elif place == at or (begins and not mark["line"]):
            end = _THOUGHT_END.search(said, mark.end())
            if end is None and said[:place].strip():
                break
            kept, at = kept + said[at:place], end.end() if end else len(said)
        may_be_swallowed = False
    return f"{kept}{said[at:]}".lstrip() if at else said


_TAG_NAME = re.compile(r"<(?=/?\s*(?P<name>\w+))")


def fenced(name: str, inner: str) -> str:
    """Return text between `<name>` and `</name>` that cannot end its fence: tags of that name in it are escaped."""

    def harmless(tag: re.Match[str]) -> str:
        return "&lt;" if tag["name"].casefold().startswith(name.casefold()) else tag[0]

    return f"<{name}>\n{_TAG_NAME.sub(harmless, inner)}\n</{name}>"
