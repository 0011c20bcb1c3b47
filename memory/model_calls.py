"""What operators see of a model call: its span, and a provider's own reason for a failure; never a text.

A reason is told by the names that the provider's answer has for it. Spans are OpenTelemetry's, where
`opentelemetry-api` is installed: who records them, and where to, is the SDK's own matter and that of its environment
variables. Without an SDK a span costs next to nothing, and without the API there are none.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

try:
    from opentelemetry import trace
except ImportError:
    trace = None  # type: ignore[assignment]  # it is optional

SpanName = Literal["palimpsest.summary", "palimpsest.recall", "palimpsest.extraction", "palimpsest.rollup"]


@contextmanager
def span(name: SpanName) -> Iterator[Callable[..., None]]:
    """Let what is inside be a span; a failure inside is noted by its class alone, as its words may be somebody's.

    Yields:
        What says more of it, under `palimpsest.` and the name of an argument: numbers and truths alone.
    """
    if trace is None:
        yield lambda **_: None
        return

    def tell(**attributes: float | bool) -> None:
        for name, value in attributes.items():
            if not isinstance(value, int | float):
                raise TypeError(f"{name} must be a number: a text may be somebody's")
            current.set_attribute(f"palimpsest.{name}", value)

    tracer = trace.get_tracer("palimpsest")
    with tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as current:
        try:
            yield tell
        except BaseException as error:
            current.set_attribute("error.type", type(error).__name__)
            current.set_status(trace.StatusCode.ERROR)
            raise


# Names such as `unsupported_parameter`, `messages.[0].content`; a key that an answer repeats is longer, or masked.
_NAME = re.compile(r"[A-Za-z0-9_.\[\]-]{1,60}")

# In the words of OpenAI and vLLM, llama.cpp, Anthropic, Bedrock, Google, Mistral and Groq. Of a rate limit Bedrock says
# "Too many tokens, please wait".
_TOO_LONG = re.compile(
    r"context[ _](?:length|size|window)|(?:prompt|input|request) (?:is )?too (?:long|large)|too large for model"
    r"|input token count|too many tokens(?!.{0,20}please wait)",
    re.IGNORECASE,
)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it came from, each once; of a group the first."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = inner or error.__cause__ or error.__context__  # in which httpx leaves what TLS said


def provider_reason(error: BaseException) -> str:
    """Return the status of a provider's answer, the error's code and the parameter it is about; empty without answer.

    Args:
        error: What a call raised.
    """
    told: dict[str, object] = {"status": status_of(error)}
    for body in (getattr(one, "body", None) for one in chain(error)):
        if isinstance(body, Mapping):
            inner = body.get("error")
            said = inner if isinstance(inner, Mapping) else body
            told |= {
                "code": said.get("code") or said.get("type"),
                "parameter": said.get("param") or said.get("parameter"),
            }
            break
    return ", ".join(f"{name} {value}" for name, value in told.items() if value and _NAME.fullmatch(str(value)))


@contextmanager
def reason_logged(logger: logging.Logger, call: str) -> Iterator[None]:
    """Log why the model call inside failed; the failure goes on to the caller.

    Args:
        logger: The caller's.
        call: What was asked for.
    """
    try:
        yield
    except Exception as error:  # each provider's package has exceptions of its own
        from langgraph.errors import GraphBubbleUp  # here, as a command about facts starts without LangGraph

        if isinstance(error, GraphBubbleUp):
            raise
        told = provider_reason(error) or "the provider said nothing of it"
        logger.warning("%s failed: %s (%s)", call, told, origin(error))
        raise


def origin(error: BaseException) -> str:
    """Return the kinds of an error and of what caused it, and the line it came from: never its text."""
    kinds = " from ".join(type(one).__name__ for one in chain(error))
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return kinds if frame is None else f"{kinds} at {frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}"


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of a failure, or of what caused it."""
    for one in chain(error):
        # Providers' packages keep it under one of two names, or on the response.
        places = ((one, "status_code"), (one, "code"), (getattr(one, "response", None), "status_code"))
        for of, name in places:
            if isinstance(status := getattr(of, name, None), int):
                return status
    return None


def says_too_long(error: BaseException) -> bool:
    """Return whether a provider says that a request is longer than its model takes."""
    return bool(_TOO_LONG.search(str(error)))
