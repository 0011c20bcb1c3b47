"""Other people's faults in sentences: why something failed on this machine, or at a model's provider, and what to set.

What providers, SQLite and the system say is worded here alone, without any text that an exception may quote.
"""

import errno
import logging
import re
import sqlite3
import ssl
from collections.abc import Collection, Mapping
from typing import Any

from graphs.settings import LOCAL, EnvFileUnreadable, proxy_of, unfit_for_headers
from memory.model_calls import chain, provider_reason, says_too_long, status_of

_FULL = "the disk is full: make room and try again"
_SYSTEM = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: "this user may not use it",
    errno.EROFS: "its disk is read-only",
}
_SQLITE = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: "the disk fails, or is at a limit: see that it is whole and has room, and try again",
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


_REFUSED_REQUEST = {400, 413, 422}
# What a message carries beside its text, in the words of OpenAI, OpenRouter, llama.cpp, Bedrock and Google.
_CONTENT = ("image", "audio", "video", "pdf", "document", "media", "modal", "mmproj", "vision", "content type")


class ModelUnavailable(RuntimeError):
    """A model cannot answer; the message is one sentence that says why and what to set."""


def says_it_all(error: object) -> bool:
    """Return whether an error's sentence, or a log line that holds it, says all: no traceback would add anything."""
    return _LOG_SAYS_MORE not in str(error)


class WithoutTraceback(logging.Filter):
    """Makes one line of a failure whose sentence says it all: a server logs it twice, each with its traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Leave out the first of the two records, and the traceback of the second; all others pass as they are."""
        event: object = record.msg  # structlog hands on what is to be rendered, with the traceback as text
        said = str(event.get("event")) if isinstance(event, dict) else ""
        is_told = any(str(kind) in said for kind in (ModelUnavailable, FileUnusable)) and says_it_all(said)
        if not isinstance(event, dict) or not is_told:
            return True
        event.pop("exception", None)
        return not said.startswith("Run encountered an error")


# How a call fails, by the name of an exception's class or, where a provider has none of these, by the HTTP status.
# LangChain's classes are not imported: commands that ask no model start without it.
_REASONS: tuple[tuple[set[str], Collection[int], str], ...] = (
    (
        {"ModelAuthenticationError"},
        {401},
        "The key for {name!r} was refused: set that provider's key, for openai OPENAI_API_KEY.",
    ),
    (
        {"ModelPermissionDeniedError"},
        {403},
        "The key may not use {name!r}: choose another model, or ask the provider for access.",
    ),
    (
        {"ModelNotFoundError"},
        {404},
        "There is no model {name!r}: check PALIMPSEST_MODEL or the assistant's `model`, and OPENAI_BASE_URL if set.",
    ),
    (
        {"ModelRateLimitError"},
        {429},
        "{name!r} is out of quota or asked too often: wait, or check the plan of its account.",
    ),
    (
        {"ModelTimeoutError", "TimeoutError"},
        {408, 504},
        "{name!r} did not answer in time: try again, or choose a faster model.",
    ),
    (
        {"ModelConnectionError", "ConnectionError"},
        (),
        "No server answers for {name!r}: check the network, and OPENAI_BASE_URL if set.",
    ),
    (
        {"ModelAPIError"},
        range(500, 600),
        "The server of {name!r} failed: try again later, or choose another model.",
    ),
)
_LOG_SAYS_MORE = "the server's log says more"
_LOCAL_DOWN = "The local model's server does not answer: restart `make dev`."


def _kinds(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def is_context_overflow(error: BaseException) -> bool:
    """Return whether a provider refused a prompt because it is too long, so that a smaller one may be sent."""
    is_refused = status_of(error) in _REFUSED_REQUEST and says_too_long(error)
    return is_refused or "ContextOverflowError" in _kinds(error)


def refuses_content(error: BaseException) -> bool:
    """Return whether a call may have failed for an image, a sound or a file in the prompt, so that it may be left out.

    Providers say so in many ways, some with a status that means something else; and the package of one refuses what it
    cannot translate before anything is sent.
    """
    if isinstance(error, ModelUnavailable | OSError):
        return False
    status, words = status_of(error), str(error).lower()
    is_refused = "ModelInvalidRequestError" in _kinds(error) or status in _REFUSED_REQUEST
    is_untranslated = status is None and isinstance(error, ValueError | TypeError | KeyError | NotImplementedError)
    is_named = status in (None, 404, 415, 500, 501) and any(word in words for word in _CONTENT)
    return is_refused or is_untranslated or is_named


def refuses_tools(error: BaseException) -> bool:
    """Return whether a call may have failed because the model cannot call tools, so that it may be asked without.

    Ollama says "does not support tools", vLLM "tool choice requires --enable-auto-tool-choice", OpenRouter
    "No endpoints found that support tool use", llama.cpp "tools param requires --jinja flag". For a model of one's own
    without `bind_tools`, LangChain's base class raises `NotImplementedError`.
    """
    is_named = status_of(error) in _REFUSED_REQUEST | {404, 500, 501} and "tool" in str(error).lower()
    return is_named or isinstance(error, NotImplementedError)


def explain(error: BaseException, name: str) -> ModelUnavailable:
    """Return why a model call failed and what to set, with the provider's names for it; raise it `from` the error.

    Args:
        error: What the call raised, from any provider's package; its own text may quote the prompt or a part of a key.
        name: The model that was called, as `provider:model` or `local`.
    """
    if isinstance(error, ModelUnavailable):
        return error
    otherwise = f"{{name!r}} failed with {type(error).__name__}: {_LOG_SAYS_MORE}."
    status = status_of(error)
    fits = (said for kinds, statuses, said in _REASONS if kinds & _kinds(error) or status in statuses)
    sentence = next(fits, otherwise).format(name=name)
    # These three know better than the exception's class: providers report an overflow as any bad request.
    if is_context_overflow(error):
        sentence = f"The prompt is longer than {name!r} accepts: lower max_tokens."
    elif cause := cause_of(error):
        sentence = f"{name!r} cannot be asked: {cause}."
    elif name == LOCAL and _kinds(error) & {"ModelConnectionError", "ConnectionError"}:
        sentence = _LOCAL_DOWN
    told = provider_reason(error)
    return ModelUnavailable(f"{sentence} The provider says: {told}." if ", " in told else sentence)


def of_kind(error: BaseException, why: ModelUnavailable) -> ModelUnavailable:
    """Return the error in a class that is also a subclass of another error's: handlers of that class catch it, too."""
    told: Any = type("ModelUnavailable", (ModelUnavailable, type(error)), {"__module__": __name__})
    both: ModelUnavailable = told.__new__(told)
    both.args = why.args
    vars(both).update(vars(error))
    return both
