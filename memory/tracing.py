"""OpenTelemetry spans around what memory does, where `opentelemetry-api` is installed; counts in them, never a text.

Who records them, and where to, is the OpenTelemetry SDK's own matter and that of its environment variables. Without an
SDK a span costs next to nothing, and without the API there are none.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

try:
    from opentelemetry import trace
except ImportError:
    trace = None  # type: ignore[assignment]  # it is optional

SpanName = Literal["palimpsest.summary", "palimpsest.recall", "palimpsest.extraction", "palimpsest.rollup"]


class Attributes:
    """What is known of the work at its end, to be said with its span: numbers and truths alone."""

    def __init__(self, span: Any) -> None:
        self._span = span

    def set(self, **attributes: float | bool) -> None:
        """Say a number or a truth, under `palimpsest.` and its name."""
        for name, value in attributes.items():
            if not isinstance(value, int | float):
                raise TypeError(f"{name} must be a number: a text may be somebody's")
            if self._span is not None:
                self._span.set_attribute(f"palimpsest.{name}", value)


@contextmanager
def span(name: SpanName) -> Iterator[Attributes]:
    """Let what is inside be a span; a failure inside is noted by its class alone, as its words may be somebody's."""
    if trace is None:
        yield Attributes(None)
        return
    tracer = trace.get_tracer("palimpsest")
    with tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as current:
        try:
            yield Attributes(current)
        except BaseException as error:
            current.set_attribute("error.type", type(error).__name__)
            current.set_status(trace.StatusCode.ERROR)
            raise
