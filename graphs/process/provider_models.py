"""The chat models of providers' packages, in a file of their own: these packages take seconds to import."""

import ssl
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel, LangSmithParams, LanguageModelInput
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from openai import DefaultAsyncHttpxClient, DefaultHttpxClient
from pydantic import PrivateAttr, SecretStr

from graphs.process.address import is_loopback
from graphs.process.failures import ModelUnavailable, cause_of, lacking
from graphs.process.models import LOCAL_CALLS, LocalCall
from graphs.settings import LOCAL, Settings

_TIMEOUT_SECONDS = 120.0
_LOCAL_TIMEOUT_SECONDS = 300.0  # reading a full prompt takes a minute on two cores, more when both slots work
_LOCAL_BACKGROUND_TIMEOUT_SECONDS = 600.0  # beside chats without a pause it gets a tenth of the cores
_NO_KEY = SecretStr("not-needed")  # the client insists on one


_THOUGHTS = ("reasoning_content", "reasoning")  # vLLM's, llama.cpp's and DeepSeek's name, and the newer one

# Arguments of calls begin with `{` or `null`. LangChain's class raises for other JSON; for text that is no JSON, it
# only marks the call as invalid.
_AN_OBJECT = "{n"


class ServerChatModel(ChatOpenAI):
    """A model of a server that speaks OpenAI's protocol: what it tells of its thoughts is kept.

    LangChain's class drops these fields, and some servers put the whole answer there. Others want the thoughts of tool
    rounds back, in all later requests (DeepSeek's); no other server may be sent them.
    """

    @property
    def _host(self) -> str:
        return urlsplit(self.openai_api_base or "").hostname or "openai"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return {**super()._get_ls_params(stop, **kwargs), "ls_provider": self._host}

    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> ChatResult:
        for choice in getattr(response, "choices", None) or ():
            for call in choice.message.tool_calls or ():
                said = str(call.function.arguments or "") if hasattr(call, "function") else ""
                if said.lstrip()[:1] not in _AN_OBJECT:
                    call.function.arguments = f"{said} is no object"
        result = super()._create_chat_result(response, generation_info)
        choices = response["choices"] if isinstance(response, dict) else response.choices
        for generation, choice in zip(result.generations, choices, strict=True):
            said = choice["message"] if isinstance(choice, dict) else choice.message.model_extra
            generation.message.additional_kwargs.update(_thoughts(said))
        result.llm_output = {**(result.llm_output or {}), "model_provider": self._host}
        return result

    def _convert_chunk_to_generation_chunk(self, chunk: dict[str, Any], *args: Any) -> ChatGenerationChunk | None:
        made = super()._convert_chunk_to_generation_chunk(chunk, *args)
        choices = chunk.get("choices") or chunk.get("chunk", {}).get("choices")
        if made and choices:
            made.message.additional_kwargs.update(_thoughts(choices[0].get("delta")))
            made.message.response_metadata["model_provider"] = self._host
        return made

    def _get_request_payload(self, input_: LanguageModelInput, **options: Any) -> dict[str, Any]:
        payload = super()._get_request_payload(input_, **options)
        messages = self._convert_input(input_).to_messages()
        for before, message, sent in zip([None, *messages], messages, payload.get("messages", ()), strict=False):
            is_own = message.response_metadata.get("model_provider") == self._host
            if is_own and isinstance(message, AIMessage) and (message.tool_calls or isinstance(before, ToolMessage)):
                sent.update(_thoughts(message.additional_kwargs))
        return payload


def _thoughts(said: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: said[name] for name in _THOUGHTS if said and isinstance(said.get(name), str)}


class LocalChatModel(ChatOpenAI):
    """The embedded local model, as it is asked for one purpose."""

    _settings: Settings = PrivateAttr()
    _call: LocalCall = PrivateAttr()

    @classmethod
    def of(cls, settings: Settings, call: LocalCall) -> Self:
        """Return the model for a kind of call; `ModelUnavailable` where nobody serves it."""
        if not settings.local_base_url:
            raise ModelUnavailable(
                "The local model answers only the server of `make dev`: talk to that server, or set OPENAI_API_KEY or "
                "PALIMPSEST_MODEL."
            )
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
            **_direct(awaited_url),
        )
        model._settings, model._call = settings, call
        return model

    def in_background(self) -> Self:
        """Return the model for the same call where no turn waits for it."""
        # Where the background has a server, its first slot keeps summaries from evicting the extraction's prompt. On a
        # server for both, a summary that is written ahead must neither evict the chat's prompt nor stand before a turn.
        slot = self._call.slot if self._settings.local_background_url else LOCAL_CALLS["memory"].slot
        return type(self).of(self._settings, replace(self._call, slot=slot, is_awaited=False))


def at_server(settings: Settings) -> dict[str, Any]:
    """Return the options with which OpenAI's package asks another server; one on this machine without a proxy."""
    url = settings.openai_base_url
    key: dict[str, Any] = {} if settings.has_openai_key else {"api_key": _NO_KEY}  # many servers want none
    return {"base_url": url, **key, **_direct(url)}


def _direct(url: str) -> dict[str, Any]:
    return _direct_clients() if getproxies() and is_loopback(urlsplit(url).hostname) else {}


@cache
def _direct_clients() -> dict[str, Any]:
    # Else httpx wants a package for a SOCKS proxy. This context reads SSL_CERT_FILE.
    options: dict[str, Any] = {"trust_env": False, "verify": ssl.create_default_context()}
    clients = {"http_client": DefaultHttpxClient(**options), "http_async_client": DefaultAsyncHttpxClient(**options)}
    return {**clients, "http_socket_options": ()}  # else the log has a warning that proxies are not asked


def remote_model(name: str, settings: Settings) -> BaseChatModel:
    """Return the model `provider:model`; `ModelUnavailable` where its package or its key is missing."""
    options: dict[str, Any] = {"timeout": _TIMEOUT_SECONDS} if name.startswith("openai:") else {}
    try:
        if options and settings.openai_base_url:
            # Other servers speak chat completions, seldom the Responses API.
            options |= {"use_responses_api": False, "stream_usage": True, **at_server(settings)}
            return ServerChatModel(model=name.removeprefix("openai:"), **options)
        model: BaseChatModel = init_chat_model(name, **options)
    except ImportError as error:
        why = lacking(error, f"it needs a package that is not installed. {error}")
        raise ModelUnavailable(f"The model {name!r} cannot be used: {why}.") from error
    except Exception as error:  # unknown provider or missing key: each provider's package has its own exception
        otherwise = (
            "PALIMPSEST_MODEL or the assistant's `model` must be provider:model, and that provider's key must be set, "
            f"for openai OPENAI_API_KEY ({type(error).__name__})"
        )
        raise ModelUnavailable(f"The model {name!r} cannot be used: {cause_of(error) or otherwise}.") from error
    return model
