"""What the failures of model calls mean, in one sentence each that says what to set; and what may be tried again."""

import logging
from collections.abc import Collection
from typing import Any

from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelInvalidRequestError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelTimeoutError,
)

from graphs.process.causes import FileUnusable, cause_of
from graphs.settings import LOCAL
from memory.model_calls import provider_reason, says_too_long, status_of

_REFUSED_REQUEST = {400, 413, 422}
# What a message carries beside its text, in the words of OpenAI, OpenRouter, llama.cpp, Bedrock and Google.
_CONTENT = ("image", "audio", "video", "pdf", "document", "media", "modal", "mmproj", "vision", "content type")


class ModelUnavailable(RuntimeError):
    """A model cannot answer; the message is one sentence that says why and what to set."""


def says_it_all(error: object) -> bool:
    """Return whether the sentence of a failure, or of what tells of it, leaves nothing to look up in a log."""
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


# How a call fails, by the exception's class or, where a provider has none of these, by the HTTP status.
_REASONS: tuple[tuple[tuple[type[BaseException], ...], Collection[int], str], ...] = (
    (
        (ModelAuthenticationError,),
        {401},
        "The key for {name!r} was refused: set that provider's key, for openai OPENAI_API_KEY.",
    ),
    (
        (ModelPermissionDeniedError,),
        {403},
        "The key may not use {name!r}: choose another model, or ask the provider for access.",
    ),
    (
        (ModelNotFoundError,),
        {404},
        "There is no model {name!r}: check PALIMPSEST_MODEL or the assistant's `model`, and OPENAI_BASE_URL if set.",
    ),
    (
        (ModelRateLimitError,),
        {429},
        "{name!r} is out of quota or asked too often: wait, or check the plan of its account.",
    ),
    (
        (ModelTimeoutError, TimeoutError),
        {408, 504},
        "{name!r} did not answer in time: try again, or choose a faster model.",
    ),
    (
        (ModelConnectionError, ConnectionError),
        (),
        "No server answers for {name!r}: check the network, and OPENAI_BASE_URL if set.",
    ),
    (
        (ModelAPIError,),
        range(500, 600),
        "The server of {name!r} failed: try again later, or choose another model.",
    ),
)
_LOG_SAYS_MORE = "the server's log says more"
_LOCAL_DOWN = "The local model's server does not answer: restart `make dev`."


def is_context_overflow(error: BaseException) -> bool:
    """Return whether a provider refused a prompt because it is too long, so that a smaller one may be sent."""
    if isinstance(error, ContextOverflowError):
        return True
    return status_of(error) in _REFUSED_REQUEST and says_too_long(error)


def refuses_content(error: BaseException) -> bool:
    """Return whether a call may have failed for an image, a sound or a file in the prompt, so that it may be left out.

    Providers say so in many ways, some with a status that means something else; and the package of one refuses what it
    cannot translate before anything is sent.
    """
    if isinstance(error, ModelUnavailable | OSError):
        return False
    status, words = status_of(error), str(error).lower()
    is_refused = isinstance(error, ModelInvalidRequestError) or status in _REFUSED_REQUEST
    is_untranslated = status is None and isinstance(error, ValueError | TypeError | KeyError | NotImplementedError)
    is_named = status in (None, 404, 415, 500, 501) and any(word in words for word in _CONTENT)
    return is_refused or is_untranslated or is_named


def refuses_tools(error: BaseException | None) -> bool:
    """Return whether a call may have failed because the model cannot call tools, so that it may be asked without.

    Ollama says "does not support tools", vLLM "tool choice requires --enable-auto-tool-choice", OpenRouter
    "No endpoints found that support tool use", llama.cpp "tools param requires --jinja flag".
    """
    return error is not None and status_of(error) in _REFUSED_REQUEST | {404, 500, 501} and "tool" in str(error).lower()


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
    fits = (said for kinds, statuses, said in _REASONS if isinstance(error, kinds) or status in statuses)
    sentence = next(fits, otherwise).format(name=name)
    # These three know better than the exception's class: providers report an overflow as any bad request.
    if is_context_overflow(error):
        sentence = f"The prompt is longer than {name!r} accepts: lower max_tokens."
    elif cause := cause_of(error):
        sentence = f"{name!r} cannot be asked: {cause}."
    elif name == LOCAL and isinstance(error, ModelConnectionError | ConnectionError):
        sentence = _LOCAL_DOWN
    told = provider_reason(error)
    return ModelUnavailable(f"{sentence} The provider says: {told}." if ", " in told else sentence)


def of_kind(error: BaseException, why: ModelUnavailable) -> ModelUnavailable:
    """Return a sentence as an error of the kind of another one, too: who waits for that one catches it."""
    told: Any = type("ModelUnavailable", (ModelUnavailable, type(error)), {"__module__": __name__})
    both: ModelUnavailable = told.__new__(told)
    both.args = why.args
    vars(both).update(vars(error))
    return both
