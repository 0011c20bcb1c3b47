"""What the failure of an update's model call asks for, and how long to wait after it: pure."""

import re
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Literal

from memory.config import MemoryConfig
from memory.provider_reason import chain, first_status, says_too_long

FailureKind = Literal["not_now", "again", "never"]
"""`not_now`: no fault of the call, it passes by itself. `again`: the same call may succeed. `never`: it will not."""

LONGEST_WAIT = 86_400.0
"""In seconds. What is to wait for longer was told so under a clock that was ahead."""

# No money left, too many requests; and what fails on the server's side, but for what it cannot do.
_NOT_NOW = frozenset({402, 429, *range(500, 600)}) - {501}
# Request timeout, conflict, too early, too many requests. Every other 4xx says "never".
_TRANSIENT = frozenset({408, 409, 425, 429})
_NO_MONEY = re.compile(r"\bquota\b|credit balance", re.IGNORECASE)  # Google's and Anthropic's words
_NO_CONNECTION = frozenset({"ConnectionError", "APIConnectionError", "TransportError", "ModelConnectionError"})


def kind_of(error: BaseException) -> FailureKind:
    """Say what a failure asks for: to wait, to try again, or to give up.

    A request that is too large is at fault itself, whatever status a provider gives it, and one may be that runs into
    a time limit.
    """
    status = first_status(error)
    if status is None:
        kinds = {kind.__name__ for one in chain(error) for kind in type(one).__mro__}
        is_late = any("Timeout" in kind for kind in kinds) and "ConnectTimeout" not in kinds
        if not is_late and not kinds.isdisjoint(_NO_CONNECTION):
            return "not_now"
        return "never" if isinstance(error, ImportError | NotImplementedError) else "again"
    lacks_money = status in (400, 403) and _NO_MONEY.search(str(error))
    if (status in _NOT_NOW or lacks_money) and not says_too_long(error):
        return "not_now"
    return "never" if 400 <= status < 500 and status not in _TRANSIENT else "again"


def asked_to_wait(error: BaseException, now: float) -> float:
    """Return for how many seconds a server wants not to be asked (`Retry-After`), a day at most; else 0."""
    told = (getattr(getattr(one, "response", None), "headers", None) for one in chain(error))
    said = next((str(each.get("retry-after", "")) for each in told if isinstance(each, Mapping)), "")
    with suppress(ValueError, OverflowError):
        seconds = float(said) if said[-1:].isdigit() else parsedate_to_datetime(said).timestamp() - now
        return min(max(seconds, 0.0), LONGEST_WAIT)
    return 0.0


def retry_delay(failures: int, config: MemoryConfig) -> float:
    """Return the seconds to wait after so many failures: doubling, up to `retry_max_seconds`."""
    return float(min(config.retry_base_seconds * 2 ** min(failures - 1, 60), config.retry_max_seconds))
