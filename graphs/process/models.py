"""Chat models by name, and what each can bear.

With `provider_models.py` and `failures.py` the only files that know providers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig

from graphs.process.failures import ModelUnavailable
from graphs.process.synchronous import is_awaited
from graphs.settings import LOCAL, Settings
from graphs.turn.context import Context
from memory.context.summarization import SummarizeWhen
from memory.door import on_thread

Purpose = Literal["chat", "summary", "memory"]

_SHARED_CONNECTIONS = 100  # so many at most that nobody uses does httpx keep for a provider
_LOOP_ENDED = "Event loop is closed"  # asyncio's own words


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """What the embedded local model can bear, in tokens; `fit_to_profile` applies it.

    On two cores it reads about 50 tokens a second and writes about 20: 3,072 tokens that are not cached take a minute,
    a reply of 384 tokens 20 s. Asked to summarize a whole conversation, it summarizes its beginning, or copies the old
    summary; six messages a call it summarizes well.

    Attributes:
        max_tokens: The longest prompt worth sending.
        max_summary_tokens: The longest summary.
        summary_portion_tokens: Tokens of messages that one summary call reads.
        memory_tokens: The largest memory block.
        delta_tokens: The most that memory puts before one later message.
        reply_tokens: The longest reply.
        cache_ttl_seconds: How long its server keeps a prompt's prefix: until another thread's prompt evicts it.
        calls_tools: Whether it is worth telling it of tools.
        summarize: The default of `Context.summarize`: a summary takes this model minutes, and longer beside a chat.
    """

    max_tokens: int = 3072
    max_summary_tokens: int = 256
    summary_portion_tokens: int = 160
    memory_tokens: int = 512
    delta_tokens: int = 60
    reply_tokens: int = 384
    cache_ttl_seconds: float = 3600.0
    calls_tools: bool = False
    summarize: SummarizeWhen = "after"


_LOCAL_PROFILE = ModelProfile()


@dataclass(frozen=True, slots=True)
class LocalCall:
    """How the local model is asked for one purpose."""

    slot: int
    temperature: float
    max_tokens: int
    is_awaited: bool
    sampling: Mapping[str, object]


# A sampler that avoids what was said before (llama.cpp's DRY, repetition penalties) cannot tell a loop from a fact that
# is copied: it changes names and drops numbers. So memory and summaries have none: what they write is bounded, and
# loops in summaries are cut (`memory/context/summarizer.py`). In a long chat this model repeats its earlier answers.
# DRY makes each token less likely there that would continue a copied run of so many tokens, but none that breaks a run.
# This model has a token for each digit: with 5 tokens and no such breakers it told a price of 15,000 kroner as 1,500,
# with 16 it changed a telephone number (`benchmarks.repetition`, `benchmarks.copying`).
_CHAT_SAMPLING = {
    "dry_multiplier": 0.8,
    "dry_base": 1.75,
    "dry_allowed_length": 8,
    "dry_penalty_last_n": 3072,
    "dry_sequence_breakers": ["\n", *"0123456789"],
}
# Extraction has a slot of the model's server for itself: in the chat's slot it would evict the cached prefix, and the
# next turn would read the whole prompt again. Summaries share the chat's slot: a turn waits for them, so that they must
# not queue behind an extraction, and the prefix that they evict changes by them anyway.
LOCAL_CALLS: dict[Purpose, LocalCall] = {
    "chat": LocalCall(0, 0.3, _LOCAL_PROFILE.reply_tokens, is_awaited=True, sampling=_CHAT_SAMPLING),
    "summary": LocalCall(0, 0.0, _LOCAL_PROFILE.max_summary_tokens, is_awaited=True, sampling={}),
    "memory": LocalCall(1, 0.0, 768, is_awaited=False, sampling={}),
}


def profile(name: str, settings: Settings) -> ModelProfile | None:
    """Return the limits of a model that bears less than `Context` allows by default, else `None`."""
    return _LOCAL_PROFILE if (name or settings.model) == LOCAL else None


def fit_to_profile(context: Context, limits: ModelProfile | None) -> Context:
    """Return the context with each budget capped by what the model can bear; smaller and other choices stay."""
    if limits is None:
        return context
    given = context if context.delta_tokens is not None else replace(context, delta_tokens=limits.delta_tokens)
    capped = ("max_tokens", "max_summary_tokens", "memory_tokens", "delta_tokens", "reply_tokens")
    return replace(
        given,
        **{name: min(getattr(given, name), getattr(limits, name)) for name in capped},
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
    wanted = name or settings.model
    if not wanted:
        raise ModelUnavailable(
            "No model is configured: set OPENAI_API_KEY, or PALIMPSEST_MODEL to provider:model with that provider's "
            "key. Without either, only the server of `make dev` has a model, the local one."
        )
    # Seconds of imports, which a server's start and most commands do without.
    from graphs.process import provider_models

    if wanted == LOCAL:
        return provider_models.LocalChatModel.of(settings, LOCAL_CALLS[purpose])
    return provider_models.remote_model(wanted, settings)


async def ainvoke(
    model: Runnable[LanguageModelInput, AIMessage], prompt: LanguageModelInput, config: RunnableConfig | None = None
) -> AIMessage:
    """Return a model's answer, also where an event loop before this one asked the same provider.

    Providers' packages share connections within a process. Those of a loop that has ended (a program that calls
    `asyncio.run` for each turn) fail once each, before anything is answered, and are gone then. For an agent that is
    called without `await` none are made on a loop: the program's own would take them, and fail.

    Args:
        model: The model, with its tools.
        prompt: What it is asked.
        config: The caller's, where LangChain does not find it by itself.
    """
    if not is_awaited():
        return await on_thread(lambda: model.invoke(prompt, config))
    for _ in range(_SHARED_CONNECTIONS):
        try:
            return await model.ainvoke(prompt, config)
        except RuntimeError as error:
            if str(error) != _LOOP_ENDED:
                raise
    return await model.ainvoke(prompt, config)


def is_own_answer(model: BaseChatModel, tools: Sequence[object], answer: AIMessage) -> bool:
    """Say whether an answer is in a model's own form: its provider wrote it, for the protocol that the model speaks.

    Args:
        model: What is asked.
        tools: What it may call: for some, OpenAI's package speaks the Responses API.
        answer: What was answered before, by any model.
    """
    asked = str(model._get_ls_params().get("ls_provider", ""))
    wrote = str(answer.response_metadata.get("model_provider", ""))
    # Google and Amazon have several names, with a word in common.
    if set(wrote.split("_")).isdisjoint({"azure": "openai"}.get(asked, asked).split("_")):
        return False
    speaks_responses = getattr(model, "_use_responses_api", None)
    if isinstance(answer.content, str) or speaks_responses is None:
        return True
    # Chat completions have no blocks for what the Responses API lets a model do.
    declared = [tool if isinstance(tool, Mapping) else {"type": "function"} for tool in tools]
    return bool(speaks_responses({"tools": declared}))


def input_tokens(model: BaseChatModel) -> int:
    """Return how many tokens a model takes; 0 where its profile does not tell."""
    told = (getattr(model, "profile", None) or {}).get("max_input_tokens")
    return told if isinstance(told, int) and told > 0 else 0


def in_background(model: BaseChatModel) -> BaseChatModel:
    """Return the model for a call that no turn waits for: a local one is asked where it has a low priority."""
    behind = getattr(model, "in_background", None)
    return cast("BaseChatModel", behind()) if behind else model
