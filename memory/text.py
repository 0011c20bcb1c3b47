"""Text at the door: sanitized once, normalized for comparison, hashed for keys. Pure."""

import hashlib
import re
import unicodedata

# Bidi controls (U+202A-202E, U+2066-2069) and tag characters (U+E0000-E007F) hide or reorder what a reader sees
# (Trojan Source, CVE-2021-42574); both are category Cf, as is the zero-width joiner that emoji and Indic scripts need.
_KEPT_FORMAT = frozenset("\u200c\u200d")
_KEPT_CONTROL = frozenset("\n\t")
_SPACES = re.compile(r"\s+")
_TRAILING = re.compile(r"[\s.!?,;:…。！？、]+$")  # noqa: RUF001 - full-width punctuation is meant


def sanitize(text: str, max_chars: int | None = None) -> str:
    """Return text that every store accepts and no reader is fooled by.

    Lone surrogates, NUL, control, bidi and tag characters are dropped (new lines and tabs stay), the rest is in
    Unicode normal form C. InMemory, SQLite and Postgres each treat the dropped ones differently.

    Args:
        text: Any string, also one that cannot be encoded.
        max_chars: Cut after so many characters; `None` keeps all.
    """
    kept = text if text.isascii() and text.isprintable() else "".join(filter(_is_kept, text))
    kept = unicodedata.normalize("NFC", kept.replace("\r\n", "\n"))
    return kept if max_chars is None else kept[:max_chars]


def _is_kept(char: str) -> bool:
    category = unicodedata.category(char)
    if category == "Cc":
        return char in _KEPT_CONTROL
    if category == "Cf":
        return char in _KEPT_FORMAT
    return category != "Cs"


def one_line(text: str) -> str:
    """Return sanitized text with every run of white space (line and paragraph separators too) as one space."""
    if text.isascii() and text.isprintable():  # the same, faster, for what is most common
        return " ".join(text.split())
    return _SPACES.sub(" ", sanitize(text.replace("\r", "\n"))).strip()


def normalize(text: str) -> str:
    """Return the form in which two wordings of one fact compare equal.

    Case (casefold), white space, Unicode normal form (NFKC) and trailing punctuation do not matter:
    `normalize("Lives in Oslo.") == normalize("lives in  oslo")`, `normalize("Straße") == normalize("STRASSE")`.
    """
    if text.isascii() and text.isprintable():  # as above
        return _TRAILING.sub("", " ".join(text.lower().split()))
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", one_line(text)).casefold())
    return _TRAILING.sub("", one_line(folded))


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


def fenced(name: str, inner: str) -> str:
    """Return text between `<name>` and `</name>` that cannot end its fence: tags of that name in it are escaped."""
    harmless = re.sub(rf"<(?=/?\s*{re.escape(name)})", "&lt;", inner, flags=re.IGNORECASE)
    return f"<{name}>\n{harmless}\n</{name}>"
