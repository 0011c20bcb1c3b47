"""Chat models by name: the only file that knows providers and what each can bear."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Literal

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from graphs.context import Context
from graphs.model_errors import LOCAL, ModelUnavailable
from graphs.settings import Settings

Purpose = Literal["chat", "summary", "memory"]

_TIMEOUT_SECONDS = 120.0
_LOCAL_TIMEOUT_SECONDS = 300.0  # reading a full prompt takes a minute on two cores, more when both slots work
_NO_KEY = SecretStr("not-needed")  # the client insists on one


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """What a model can bear, in tokens; `fit_to_profile` applies it.

    Attributes:
        max_tokens: The longest prompt worth sending.
        max_summary_tokens: The longest summary.
        summary_portion_tokens: Tokens of messages that one summary call reads.
        memory_tokens: The largest memory block.
        reply_tokens: The longest reply.
        cache_ttl_seconds: How long its server keeps a prompt's prefix.
    """

    max_tokens: int
    max_summary_tokens: int
    summary_portion_tokens: int
    memory_tokens: int
    reply_tokens: int
    cache_ttl_seconds: float


@dataclass(frozen=True, slots=True)
class _LocalCall:
    """How the local model is asked for one purpose."""

    slot: int
    temperature: float
    max_tokens: int


# On two cores it reads about 50 tokens a second and writes about 20: 3,072 tokens that are not cached take a minute,
# a reply of 384 tokens 20 s. Its server drops a prefix when another thread talks, never because it is old. Of a whole
# conversation it summarizes the beginning, and it copies an existing summary; six messages at a time it does well.
_LOCAL_PROFILE = ModelProfile(
    max_tokens=3072,
    max_summary_tokens=256,
    summary_portion_tokens=160,
    memory_tokens=512,
    reply_tokens=384,
    cache_ttl_seconds=3600.0,
)

# No sampler that avoids what was said before (llama.cpp's DRY, repetition penalties): it cannot tell a loop from a fact
# that is copied, so it changes its names and drops its numbers. What is written is bounded instead, and loops in
# summaries are cut (`memory/context/repetition.py`).
# What works in the background has a slot of the server for itself: an extraction between two turns would otherwise
# evict the chat's cached prefix, and the next turn would read all of it again. A summary is what a turn waits for: it
# must not queue behind an extraction, and the prefix that it evicts is no longer the same after it.
_LOCAL_CALLS: dict[Purpose, _LocalCall] = {
    "chat": _LocalCall(slot=0, temperature=0.3, max_tokens=_LOCAL_PROFILE.reply_tokens),
    "summary": _LocalCall(slot=0, temperature=0.0, max_tokens=_LOCAL_PROFILE.max_summary_tokens),
    "memory": _LocalCall(slot=1, temperature=0.0, max_tokens=768),
}


def resolve(name: str, settings: Settings) -> str:
    """Return the model a name stands for: itself, or the deployment's when it is empty (that may be empty too)."""
    return name or settings.model


def profile(name: str, settings: Settings) -> ModelProfile | None:
    """Return the limits of a model that bears less than `Context` allows by default, else `None`."""
    return _LOCAL_PROFILE if resolve(name, settings) == LOCAL else None


def fit_to_profile(context: Context, limits: ModelProfile | None) -> Context:
    """Return the context with each budget capped by what the model can bear; smaller choices stay."""
    if limits is None:
        return context
    return replace(
        context,
        max_tokens=min(context.max_tokens, limits.max_tokens),
        max_summary_tokens=min(context.max_summary_tokens, limits.max_summary_tokens),
        summary_portion_tokens=min(
            context.summary_portion_tokens or limits.summary_portion_tokens, limits.summary_portion_tokens
        ),
        memory_tokens=min(context.memory_tokens, limits.memory_tokens),
        reply_tokens=min(context.reply_tokens, limits.reply_tokens),
        cache_ttl_seconds=max(context.cache_ttl_seconds, limits.cache_ttl_seconds),
    )


def load_chat_model(name: str, settings: Settings, *, purpose: Purpose) -> BaseChatModel:
    """Return the model of that name, ready to be called; nothing is sent anywhere yet.

    It takes about a millisecond, so every turn can load its own. Only a provider's first use imports its package,
    which blocks: on the event loop use `aload_chat_model`.

    Args:
        name: `provider:model`, `local`, or empty for the deployment's own.
        settings: What this deployment is configured for.
        purpose: `chat` for answers, `summary` for what a turn waits for, `memory` for what works in the background.

    Raises:
        ModelUnavailable: If nothing is configured, or the provider, its package or its key is missing.
    """
    wanted = resolve(name, settings)
    if not wanted:
        raise ModelUnavailable(
            "No model is configured: set OPENAI_API_KEY, or PALIMPSEST_MODEL to provider:model with that provider's "
            "key, or run `make dev` without either for the local model."
        )
    return _local(settings, _LOCAL_CALLS[purpose]) if wanted == LOCAL else _remote(wanted, settings)


async def aload_chat_model(name: str, settings: Settings, *, purpose: Purpose) -> BaseChatModel:
    """Return what `load_chat_model` returns without blocking the event loop."""
    return await asyncio.to_thread(load_chat_model, name, settings, purpose=purpose)


def _local(settings: Settings, call: _LocalCall) -> BaseChatModel:
    if not settings.local_base_url:
        raise ModelUnavailable(
            "The local model does not run: start the server with `make dev`, or set OPENAI_API_KEY or PALIMPSEST_MODEL."
        )
    return ChatOpenAI(
        model=LOCAL,
        base_url=settings.local_base_url,
        api_key=_NO_KEY,
        temperature=call.temperature,
        max_completion_tokens=call.max_tokens,
        timeout=_LOCAL_TIMEOUT_SECONDS,
        max_retries=0,  # a second request would only queue behind the first
        stream_usage=True,
        use_responses_api=False,
        extra_body={"id_slot": call.slot, "cache_prompt": True},
    )


def _remote(name: str, settings: Settings) -> BaseChatModel:
    options = _openai_options(settings) if name.startswith("openai:") else {}
    try:
        model: BaseChatModel = init_chat_model(name, **options)
    except ImportError as error:
        raise ModelUnavailable(f"The model {name!r} needs a package that is not installed. {error}.") from error
    except Exception as error:  # unknown provider or missing key: each provider's package has its own exception
        raise ModelUnavailable(
            f"The model {name!r} cannot be used: PALIMPSEST_MODEL or the assistant's `model` must be provider:model, "
            f"and that provider's key must be set, for openai OPENAI_API_KEY ({type(error).__name__})."
        ) from error
    return model


def _openai_options(settings: Settings) -> dict[str, Any]:
    options: dict[str, object] = {"timeout": _TIMEOUT_SECONDS}
    if settings.openai_base_url:
        # Other servers speak chat completions, seldom the Responses API, and many want no key.
        options |= {"base_url": settings.openai_base_url, "use_responses_api": False}
        options |= {} if settings.has_openai_key else {"api_key": _NO_KEY}
    return options
