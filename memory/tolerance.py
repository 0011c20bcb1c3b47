"""The door of "memory never fails a turn": what fails inside is logged, and goes no further."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from langgraph.errors import GraphBubbleUp


@contextmanager
def tolerated(
    logger: logging.Logger, consequence: str, *values: object, level: int = logging.WARNING
) -> Iterator[None]:
    """Let the work inside fail without its caller: log what that means and the sort of failure, and go on behind.

    Cancellation and a graph's interrupt are no failures and pass. The failure's own text is left out: it may quote
    what somebody said.

    Args:
        logger: The caller's.
        consequence: What a failure means, with a placeholder for each of `values`.
        values: Ids and counts; never text of a conversation.
        level: The level at which it is logged.
    """
    try:
        yield
    except GraphBubbleUp:
        raise
    except Exception as error:  # stores, providers and servers have exceptions of their own
        logger.log(level, "%s: %s", consequence % values, type(error).__name__)
