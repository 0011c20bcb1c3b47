"""Which failures of a model are worth another try, and when. Pure."""

from memory.config import MemoryConfig

# Answers that say "not now": request timeout, conflict, too early, too many requests. Every other 4xx says "never".
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})

# Answers about the one who asks: no key, no money, no right, no such model.
_ABOUT_THE_CALLER = frozenset({401, 402, 403, 404})


def is_retryable(error: BaseException) -> bool:
    """Say whether the same call may succeed later.

    A refusal by HTTP status 4xx (a wrong API key, an unknown model) is final, except for timeouts and rate limits;
    a missing package is final too. All else is tried again: timeouts, broken connections, replies that are no JSON.
    """
    status = _status(error)
    if status is not None and 400 <= status < 500:
        return status in _TRANSIENT_STATUS
    return not isinstance(error, ImportError | NotImplementedError)


def may_blame_text(error: BaseException) -> bool:
    """Say whether a failure may come from what the model was to read, so that less of it may be taken."""
    return _status(error) not in _ABOUT_THE_CALLER and not isinstance(error, ImportError | NotImplementedError)


def _status(error: BaseException) -> int | None:
    """Read the HTTP status that providers' errors carry, on themselves or on their response."""
    for holder in (error, getattr(error, "response", None)):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def retry_delay(attempts: int, config: MemoryConfig) -> float:
    """Return the seconds to wait after the given number of failures: doubling, up to `retry_max_seconds`."""
    return float(min(config.retry_base_seconds * 2 ** min(attempts - 1, 60), config.retry_max_seconds))
