"""Why something failed on this machine: the chain of an exception as half a sentence that says what to mend.

What providers, SQLite and the system say is worded here alone, without any text that an exception may quote.
"""

import errno
import re
import sqlite3
import ssl
from collections.abc import Mapping

from graphs.settings import EnvFileUnreadable, proxy_of, unfit_for_headers
from memory.model_calls import chain

_FULL = "the disk is full: make room and try again"
_SYSTEM = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: "this user may not use it",
    errno.EROFS: "its disk is read-only",
}
_SQLITE = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_BUSY: "another program has locked the file, a backup or a viewer perhaps: end it and try again",
    sqlite3.SQLITE_CANTOPEN: "a folder or a link to nothing is in its place, or this user may not write there",
    sqlite3.SQLITE_READONLY: "the file is read-only: let this user write it, and its folder",
    sqlite3.SQLITE_NOTADB: "this is no database: restore it from a backup, or move it away to begin with an empty one",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: restore it from a backup, or move it away to begin with an empty one",
}
_LIBRARY = re.compile(r"((lib\S{1,60})\.so\.?(\d*)\S{0,60}): cannot open shared object")
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")  # what OpenSSL says differs by its version


class FileUnusable(sqlite3.OperationalError, RuntimeError):
    """A file of ours cannot be used; the message names it, and says what to do.

    It is a `RuntimeError` too, as a server shows callers what those say, and of all others that something happened.
    """


def cause_of(error: BaseException) -> str:
    """Return why something failed and what to do, to stand behind a colon; empty where the chain does not tell."""
    return next(filter(None, (said(one) for said in (_cause, _proxy) for one in chain(error))), "")


def _cause(error: BaseException) -> str:
    if isinstance(error, EnvFileUnreadable):
        return str(error)
    if isinstance(error, sqlite3.Error):
        return _SQLITE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "")
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}): name its authority's file in SSL_CERT_FILE"
    if isinstance(error, ssl.SSLError):
        return "it speaks no TLS: its URL must begin with http://" if error.reason in _NO_TLS else ""
    if isinstance(error, FileNotFoundError) and not error.filename:  # OpenSSL does not say which
        return "SSL_CERT_FILE or SSL_CERT_DIR names a file that is not there"
    if isinstance(error, OSError):
        said = _SYSTEM.get(error.errno or 0, "")
        return f"{error.filename}: {said}" if said and error.filename else said
    return _of_client(error)


def _of_client(error: BaseException) -> str:
    """Word what a client of HTTP raises, by the exception's name: providers' packages bring copies of httpx."""
    kind, said = type(error).__name__, str(error)
    if kind in ("UnsupportedProtocol", "InvalidURL") or "Invalid IPv6 URL" in said:
        return "its URL must begin with http:// or https://"
    if "Unknown scheme for proxy URL" in said:
        return "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY must begin with http://, https:// or socks5://"
    is_no_header = isinstance(error, UnicodeEncodeError) and error.encoding == "ascii"
    unfit = unfit_for_headers() if is_no_header or (kind == "LocalProtocolError" and "header" in said) else ""
    return f"{unfit} must be one word of ASCII: a line break, a blank or a typographic quote is in it" if unfit else ""


def _proxy(error: BaseException) -> str:
    """Name the proxy through which a request went that no provider answered."""
    try:
        request = getattr(error, "request", None)
    except RuntimeError:  # httpx raises it where there was none
        return ""
    proxy = "" if request is None or isinstance(getattr(error, "body", None), Mapping) else proxy_of(str(request.url))
    return f"it was asked through {proxy}: correct that, or list its host in NO_PROXY" if proxy else ""


def lacking(error: ImportError, fix: str) -> str:
    """Return in a clause what an import lacks, and what to do.

    Args:
        error: What it raised, or what was raised for that.
        fix: What to do where it lacks a package.
    """
    said = str(error.__cause__ or error)
    if library := _LIBRARY.search(said):
        package = (library[2] + library[3]).replace("_", "-")  # Debian's policy
        return f"this machine lacks the library {library[1]}: install it (Debian: apt install {package})"
    return fix if "No module named" in said else said
