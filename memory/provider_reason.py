"""A provider's own reason for a failed call, without what the user said: for the log, and cut short for the error."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.errors import GraphBubbleUp

from memory.failure_chain import chain

_WORD = re.compile(r"\w+(?:'\w+)*")
# Only with a digit in it what follows is a key: "key parameter" is the provider's own sentence.
_KEY = re.compile(r"\b(?:sk|pk|rk|key|bearer)[-_ ]([\w-]{6,})", re.IGNORECASE)
_GONE = "…"
_GAPS = re.compile(f"{_GONE}(?:[^\\w{_GONE}]*{_GONE})+")
_MASKED = "**"  # how providers show a key that they were given
# Shorter words tell nothing of a person, and without them no sentence can be read; in other scripts they may be names.
_LEAST_WORD = 3
# An answer may quote the whole prompt. A log line has room for a reason, a person's error for one sentence.
_READ_CHARS, _LOGGED_CHARS, _SHOWN_CHARS = 6_000, 600, 160
# Words that a prompt has, too, but without which a provider's sentence could not be read.
_COMMON = frozenset({
    "a", "all", "allowed", "an", "and", "any", "api", "are", "as", "at", "be", "by", "can", "cannot", "content",
    "contain", "contains", "could", "does", "each", "error", "expected", "failed", "field", "for", "format", "from",
    "got", "has", "have", "image", "input", "invalid", "is", "it", "least", "limit", "maximum", "message",
    "messages", "minimum", "missing", "model", "must", "not", "number", "object", "one", "only", "or", "parameter",
    "please", "prompt", "provided", "request", "required", "see", "should", "string", "supported", "text", "than",
    "that", "the", "these", "this", "to", "token", "tokens", "tool", "tools", "too", "type", "unknown",
    "unsupported", "use", "used", "user", "value", "was", "we", "when", "which", "with", "you", "your",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProviderReason:
    """What a provider said of a call that it refused; empty where it said nothing.

    Attributes:
        status: The HTTP status, if there was an answer.
        code: Its own name of the error.
        parameter: The parameter it is about.
        message: Its sentence, without the words of the prompt.
    """

    status: int | None = None
    code: str = ""
    parameter: str = ""
    message: str = ""

    def __str__(self) -> str:
        named = (("status", self.status), ("code", self.code), ("parameter", self.parameter))
        parts = [f"{name} {value}" for name, value in named if value]
        return ", ".join([*parts, *([f"“{self.message}”"] if self.message else [])])

    def short(self) -> str:
        """Return it cut short, for the one who asked."""
        whole = str(self)
        return whole if len(whole) <= _SHOWN_CHARS else whole[: _SHOWN_CHARS - 1].rstrip() + _GONE


def provider_reason(error: BaseException, said: Iterable[str] = ()) -> ProviderReason:
    """Return what the provider's answer says, as the packages of providers keep it.

    Args:
        error: What a call raised.
        said: The texts of the prompt: whatever word of them the provider repeats is left out, and keys are too.
    """
    for one in chain(error):
        body = getattr(one, "body", None)
        if isinstance(body, Mapping):
            inner = body.get("error")
            told = inner if isinstance(inner, Mapping) else body
            spoken = {word.casefold() for text in said for word in _WORD.findall(text)} - _COMMON
            return ProviderReason(
                status=status_of(one),
                code=_without(told.get("code") or told.get("type"), spoken),
                parameter=_without(told.get("param") or told.get("parameter"), spoken),
                message=_without(told.get("message") or told.get("detail"), spoken),
            )
    return ProviderReason(status=first_status(error))


def words_of(message: BaseMessage) -> str:
    """Return what a provider could repeat of a message."""
    return f"{message.text} {message.tool_calls}" if isinstance(message, AIMessage) else message.text


@contextmanager
def reason_logged(logger: logging.Logger, call: str, prompt: Iterable[BaseMessage]) -> Iterator[None]:
    """Log why the model call inside failed, without the words of its prompt; the failure goes on to the caller.

    Args:
        logger: The caller's.
        call: What was asked for.
        prompt: What the model was sent.
    """
    try:
        yield
    except GraphBubbleUp:
        raise
    except Exception as error:  # each provider's package has exceptions of its own
        told = provider_reason(error, map(words_of, prompt))
        logger.warning("%s failed: %s (%s)", call, str(told) or "the provider said nothing of it", origin(error))
        raise


def origin(error: BaseException) -> str:
    """Return the kinds of an error and of what caused it, and the line it came from: never its text."""
    kinds = " from ".join(type(one).__name__ for one in chain(error))
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return kinds if frame is None else f"{kinds} at {frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}"


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status, which providers' packages keep under one of two names, or on the response."""
    answer = getattr(error, "response", None)
    found = (getattr(error, "status_code", None), getattr(error, "code", None), getattr(answer, "status_code", None))
    return next((status for status in found if isinstance(status, int)), None)


def first_status(error: BaseException) -> int | None:
    """Return the HTTP status of a failure, or of what caused it."""
    return next(filter(None, map(status_of, chain(error))), None)


def _without(text: object, spoken: set[str]) -> str:
    """Return one line of a provider's text without keys, and without the words that were spoken."""
    if not isinstance(text, str | int):
        return ""
    parts = (_GONE if _MASKED in part else part for part in str(text)[:_READ_CHARS].split())
    line = _KEY.sub(lambda key: _GONE if any(map(str.isdigit, key[1])) else key[0], " ".join(parts))

    def kept(word: re.Match[str]) -> str:
        found = word[0].casefold()
        is_spoken = found in spoken and (len(found) >= _LEAST_WORD or not found.isascii())
        return _GONE if is_spoken else word[0]

    cleaned = _GAPS.sub(_GONE, _WORD.sub(kept, line))
    return cleaned if len(cleaned) <= _LOGGED_CHARS else cleaned[: _LOGGED_CHARS - 1] + _GONE
