"""Chat models by name, what each can bear, and what their failures mean: the only file that knows providers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from langchain.chat_models import init_chat_model
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
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr, SecretStr

from graphs.settings import LOCAL, Settings
from graphs.turn.context import Context
from memory.context.summarization import SummarizeWhen
from memory.provider_reason import ProviderReason

UNTOLD = ProviderReason()

_REFUSED_REQUEST = frozenset({400, 413, 422})
# In the words of OpenAI and vLLM, llama.cpp, Anthropic, Bedrock, Google and Mistral.
_TOO_LONG = (
    "context length",
    "context_length",
    "context size",
    "context_size",
    "context window",
    "prompt is too long",
    "input is too long",
    "input token count",
    "too many tokens",
    "too large for model",
)
# What a message carries beside its text, in the words of OpenAI, OpenRouter, llama.cpp, Bedrock and Google.
_CONTENT = ("image", "audio", "video", "pdf", "document", "media", "modal", "mmproj", "vision", "content type")


class ModelUnavailable(RuntimeError):
    """A model cannot answer; the message is one sentence that says why and what to set."""


@dataclass(frozen=True, slots=True)
class _Reason:
    """A way to fail, known by the exception's class or, where a provider has none of these, by the HTTP status."""

    kinds: tuple[type[BaseException], ...]
    statuses: frozenset[int]
    sentence: str

    def fits(self, error: BaseException) -> bool:
        return isinstance(error, self.kinds) or _status(error) in self.statuses


_REASONS = (
    _Reason(
        (ModelAuthenticationError,),
        frozenset({401}),
        "The key for {name!r} was refused: set that provider's key, for openai OPENAI_API_KEY.",
    ),
    _Reason(
        (ModelPermissionDeniedError,),
        frozenset({403}),
        "The key may not use {name!r}: choose another model, or ask the provider for access.",
    ),
    _Reason(
        (ModelNotFoundError,),
        frozenset({404}),
        "There is no model {name!r}: check PALIMPSEST_MODEL or the assistant's `model`, and OPENAI_BASE_URL if set.",
    ),
    _Reason(
        (ModelRateLimitError,),
        frozenset({429}),
        "{name!r} is out of quota or asked too often: wait, or check the plan of its account.",
    ),
    _Reason(
        (ModelTimeoutError, TimeoutError),
        frozenset({408, 504}),
        "{name!r} did not answer in time: try again, or choose a faster model.",
    ),
    _Reason(
        (ModelConnectionError, ConnectionError),
        frozenset(),
        "No server answers for {name!r}: check the network, and OPENAI_BASE_URL if set.",
    ),
    _Reason(
        (ModelAPIError,),
        frozenset(range(500, 600)),
        "The server of {name!r} failed: try again later, or choose another model.",
    ),
)
_LOCAL_DOWN = "The local model's server does not answer: restart `make dev`."


def is_context_overflow(error: BaseException) -> bool:
    """Return whether a provider refused a prompt because it is too long, so that a smaller one may be sent."""
    if isinstance(error, ContextOverflowError):
        return True
    return _status(error) in _REFUSED_REQUEST and any(phrase in str(error).lower() for phrase in _TOO_LONG)


def refuses_content(error: BaseException) -> bool:
    """Return whether a call may have failed for an image, a sound or a file in the prompt, so that it may be left out.

    Providers say so in many ways, some with a status that means something else; and the package of one refuses what it
    cannot translate before anything is sent.
    """
    if isinstance(error, ModelUnavailable | OSError):
        return False
    status, words = _status(error), str(error).lower()
    is_refused = isinstance(error, ModelInvalidRequestError) or status in _REFUSED_REQUEST
    is_untranslated = status is None and isinstance(error, ValueError | TypeError | KeyError | NotImplementedError)
    is_named = status in (None, 404, 415, 500, 501) and any(word in words for word in _CONTENT)
    return is_refused or is_untranslated or is_named


def refuses_tools(error: BaseException | None) -> bool:
    """Return whether a call may have failed because the model cannot call tools, so that it may be asked without.

    Ollama says "does not support tools", vLLM "tool choice requires --enable-auto-tool-choice", OpenRouter
    "No endpoints found that support tool use", llama.cpp "tools param requires --jinja flag".
    """
    return error is not None and _status(error) in _REFUSED_REQUEST | {404, 500, 501} and "tool" in str(error).lower()


def explain(error: BaseException, name: str, reason: ProviderReason = UNTOLD) -> ModelUnavailable:
    """Return why a model call failed and what to set, with the provider's own reason; raise it `from` the error.

    Args:
        error: What the call raised, from any provider's package; its own text may quote the prompt or a part of a key.
        name: The model that was called, as `provider:model` or `local`.
        reason: What the provider said, without such text.
    """
    if isinstance(error, ModelUnavailable):
        return error
    otherwise = f"{name!r} failed with {type(error).__name__}: the server's log says more."
    sentence = next((each.sentence.format(name=name) for each in _REASONS if each.fits(error)), otherwise)
    # These two know better than the exception's class: providers report an overflow as any bad request.
    if is_context_overflow(error):
        sentence = f"The prompt is longer than {name!r} accepts: lower max_tokens."
    elif name == LOCAL and isinstance(error, ModelConnectionError | ConnectionError):
        sentence = _LOCAL_DOWN
    told = reason.short() if reason.code or reason.parameter or reason.message else ""
    return ModelUnavailable(f"{sentence} The provider says: {told}." if told else sentence)


def _status(error: BaseException) -> int | None:
    """Return the HTTP status, which providers' packages keep under one of two names."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return status if isinstance(status, int) else None


Purpose = Literal["chat", "summary", "memory"]

_TIMEOUT_SECONDS = 120.0
_LOCAL_TIMEOUT_SECONDS = 300.0  # reading a full prompt takes a minute on two cores, more when both slots work
_LOCAL_BACKGROUND_TIMEOUT_SECONDS = 600.0  # behind chats without a pause it has a tenth of the cores
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
        calls_tools: Whether it is worth telling it of tools.
        summarize: Whether turns wait for its summaries, where nobody chose.
    """

    max_tokens: int
    max_summary_tokens: int
    summary_portion_tokens: int
    memory_tokens: int
    reply_tokens: int
    cache_ttl_seconds: float
    calls_tools: bool
    summarize: SummarizeWhen


@dataclass(frozen=True, slots=True)
class _LocalCall:
    """How the local model is asked for one purpose."""

    slot: int
    temperature: float
    max_tokens: int
    is_awaited: bool
    sampling: Mapping[str, float]


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
    calls_tools=False,
    summarize="after",  # a summary takes it minutes, more when it is written behind a chat
)

# A sampler that avoids what was said before (llama.cpp's DRY, repetition penalties) cannot tell a loop from a fact that
# is copied: it changes names and drops numbers. So memory and summaries have none: what they write is bounded, and
# loops in summaries are cut (`memory/context/summarizer.py`). In a long chat this model repeats its earlier answers.
# DRY makes each token less likely there that would continue a copied run of so many tokens: sentences, not facts.
# With 5 instead of 16 it told a price of 15,000 kroner from memory as 1,500.
_CHAT_SAMPLING = {"dry_multiplier": 0.8, "dry_base": 1.75, "dry_allowed_length": 16, "dry_penalty_last_n": 3072}
# What works in the background has a slot of the server for itself: an extraction between two turns would otherwise
# evict the chat's cached prefix, and the next turn would read all of it again. A summary is what a turn waits for: it
# must not queue behind an extraction, and the prefix that it evicts is no longer the same after it.
_LOCAL_CALLS: dict[Purpose, _LocalCall] = {
    "chat": _LocalCall(0, 0.3, _LOCAL_PROFILE.reply_tokens, is_awaited=True, sampling=_CHAT_SAMPLING),
    "summary": _LocalCall(0, 0.0, _LOCAL_PROFILE.max_summary_tokens, is_awaited=True, sampling={}),
    "memory": _LocalCall(1, 0.0, 768, is_awaited=False, sampling={}),
}


def resolve(name: str, settings: Settings) -> str:
    """Return the model a name stands for: itself, or the deployment's when it is empty (that may be empty too)."""
    return name or settings.model


def profile(name: str, settings: Settings) -> ModelProfile | None:
    """Return the limits of a model that bears less than `Context` allows by default, else `None`."""
    return _LOCAL_PROFILE if resolve(name, settings) == LOCAL else None


def fit_to_profile(context: Context, limits: ModelProfile | None) -> Context:
    """Return the context with each budget capped by what the model can bear; smaller and other choices stay."""
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
        summarize=context.summarize or limits.summarize,
    )


def load_chat_model(name: str, settings: Settings, *, purpose: Purpose) -> BaseChatModel:
    """Return the model of that name, ready to be called; nothing is sent anywhere yet.

    It takes about a millisecond, so every turn can load its own. Only a provider's first use imports its package,
    which blocks: on the event loop use `asyncio.to_thread`.

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


def caches_marked_prompts(model: BaseChatModel) -> bool:
    """Say whether a model's provider caches a prompt up to the marks in it, as Anthropic does."""
    return model._llm_type.startswith("anthropic-chat")


def input_tokens(model: BaseChatModel) -> int:
    """Return how many tokens a model takes; 0 where its profile does not tell."""
    told = (getattr(model, "profile", None) or {}).get("max_input_tokens")
    return told if isinstance(told, int) and told > 0 else 0


def in_background(model: BaseChatModel) -> BaseChatModel:
    """Return the model for a call that no turn waits for: a local one is asked where it has a low priority."""
    return model.in_background() if isinstance(model, LocalChatModel) else model


class LocalChatModel(ChatOpenAI):
    """The embedded local model, as it is asked for one purpose."""

    _settings: Settings = PrivateAttr()
    _call: _LocalCall = PrivateAttr()

    @classmethod
    def of(cls, settings: Settings, call: _LocalCall) -> Self:
        """Return the model for a kind of call."""
        awaited_url, background_url = settings.local_base_url, settings.local_background_url
        patience = _LOCAL_TIMEOUT_SECONDS if call.is_awaited else _LOCAL_BACKGROUND_TIMEOUT_SECONDS
        model = cls(
            model=LOCAL,
            base_url=awaited_url if call.is_awaited else background_url or awaited_url,
            api_key=_NO_KEY,
            temperature=call.temperature,
            max_completion_tokens=call.max_tokens,
            timeout=patience,
            stream_chunk_timeout=patience,  # 120 s by default: on busy cores a full prompt takes longer
            max_retries=0,  # a second request would only queue behind the first
            stream_usage=True,
            use_responses_api=False,
            extra_body={"id_slot": call.slot, "cache_prompt": True, **call.sampling},
        )
        model._settings, model._call = settings, call
        return model

    def in_background(self) -> Self:
        """Return the model for the same call where no turn waits for it."""
        # Where the background has a server, its first slot keeps summaries from evicting the extraction's prompt. On a
        # server for both, a summary that is written ahead must neither evict the chat's prompt nor stand before a turn.
        slot = self._call.slot if self._settings.local_background_url else _LOCAL_CALLS["memory"].slot
        return type(self).of(self._settings, replace(self._call, slot=slot, is_awaited=False))


def _local(settings: Settings, call: _LocalCall) -> BaseChatModel:
    if not settings.local_base_url:
        raise ModelUnavailable(
            "The local model does not run: start the server with `make dev`, or set OPENAI_API_KEY or PALIMPSEST_MODEL."
        )
    return LocalChatModel.of(settings, call)


def _remote(name: str, settings: Settings) -> BaseChatModel:
    options: dict[str, Any] = {}
    if name.startswith("openai:"):
        options["timeout"] = _TIMEOUT_SECONDS
        if settings.openai_base_url:
            # Other servers speak chat completions, seldom the Responses API, and many want no key.
            options |= {"base_url": settings.openai_base_url, "use_responses_api": False}
            options |= {} if settings.has_openai_key else {"api_key": _NO_KEY}
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
