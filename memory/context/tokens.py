"""Tokens of messages: a deterministic count, made once in a message's life."""

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, MessageLikeRepresentation, ToolMessage

from memory.context.tokenizer import Tokenizer
from memory.message import as_messages

MESSAGE_TOKENS = 4
"""Role and separators of one message, as OpenAI's cookbook counts them for chat models (3, and 1 for the role)."""

MEDIA_TOKENS = 1600
"""One image, sound or file: what the largest image costs at Anthropic, above the 1,445 of OpenAI's largest."""

LOW_DETAIL_TOKENS = 85
"""One image that is sent with low detail, at OpenAI."""

CACHED_MESSAGES = 50_000

_TEXT_BLOCKS = {"text": "text", "output_text": "text", "input_text": "text", "reasoning": "reasoning"}
_TEXT_BLOCKS |= {"thinking": "thinking", "refusal": "refusal"}
_CALL_BLOCKS = frozenset({"tool_use", "tool_call", "function_call"})
_MEDIA_BLOCKS = {
    **dict.fromkeys(("image", "image_url", "input_image", "image_generation_call"), "image"),
    **dict.fromkeys(("audio", "input_audio"), "audio"),
    **dict.fromkeys(("file", "input_file", "document", "media"), "file"),
    "video": "video",
}

MessagesCounter = Callable[[Iterable[BaseMessage]], int]
"""Langmem's form of a counter: messages in, their tokens out."""


class TokenCounter:
    """Counts messages, each once: a count is remembered under what it depends on, for the newest messages counted.

    A counter is also a counter in langmem's form: calling it with messages returns their sum. Where it lives as long
    as the process, a message that comes back from a checkpoint with every turn is still tokenized only once.

    Args:
        count_messages: Another way to count, in langmem's form. It is called with one message at a time, and must
            not count less for several messages than for each of them.
        tokenizer: Counts texts; the process's own by default.
        size: How many counts are remembered at least; at most twice as many are.
    """

    def __init__(
        self,
        count_messages: MessagesCounter | None = None,
        *,
        tokenizer: Tokenizer | None = None,
        size: int = CACHED_MESSAGES,
    ) -> None:
        self.tokenizer = tokenizer or Tokenizer()
        self._count_messages = count_messages
        self._size = size
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    @classmethod
    def of(cls, count_messages: "MessagesCounter | TokenCounter | None") -> "TokenCounter":
        """Return the counter meant: itself, one around a function in langmem's form, or the process's own."""
        if count_messages is None:
            return shared_counter()
        return count_messages if isinstance(count_messages, TokenCounter) else cls(count_messages)

    async def awarm_up(self) -> None:
        """Load the tokenizer, in a thread; one that no message is counted with is left alone."""
        if self._count_messages is None:
            await self.tokenizer.awarm_up()

    def __call__(self, messages: Iterable[BaseMessage]) -> int:
        """Return the tokens of all messages."""
        return sum(self.each(messages))

    def text(self, text: str) -> int:
        """Return the tokens of a text."""
        return self.tokenizer.count(text)

    def message(self, message: BaseMessage) -> int:
        """Return the tokens of one message: text, tool calls with their arguments, media, and what frames it."""
        (tokens,) = self.each((message,))
        return tokens

    def each(self, messages: Iterable[BaseMessage]) -> list[int]:
        """Return the tokens of each message."""
        counts: list[int] = []
        young = self._young
        for message in messages:
            fields = message.__dict__  # three times as quick as attributes of a pydantic model
            text, media = fields["content"], 0
            if type(message) is not HumanMessage or not isinstance(text, str):
                called = fields.get("tool_calls") or fields.get("invalid_tool_calls")
                if called or not isinstance(text, str) or "tool_call_id" in fields:
                    text, media = _rendered(message)
            key = hash((fields["type"], text, media))
            count = young.get(key)
            counts.append(self._remembered(key, message, text, media) if count is None else count)
        return counts

    def _remembered(self, key: int, message: BaseMessage, text: str, media: int) -> int:
        """Count a message that is not among the young ones. When those are full they become the old, and the old go."""
        tokens = self._old.get(key)
        if tokens is None and self._count_messages is not None:
            tokens = self._count_messages([message])
        elif tokens is None:
            tokens = MESSAGE_TOKENS + self.text(text) + media
            if not self.tokenizer.settled:
                return tokens  # an estimate that must not outlive the loading of the tokenizer
        if len(self._young) >= self._size:
            self._old, self._young = self._young, {}
        self._young[key] = tokens
        return tokens


@functools.cache
def shared_counter() -> TokenCounter:
    """Return the counter of this process, which everyone uses who is given none."""
    return TokenCounter()


def count_tokens(text: str | Sequence[MessageLikeRepresentation]) -> int:
    """Return the number of cl100k_base tokens of a text, or of a list of messages in any form that LangChain takes.

    Where neither tiktoken nor the extra `tokens` can be loaded it is `len(text) // 4`, after one warning. On the
    event loop it never waits for the tokenizer: until that is loaded it estimates, after a warning of its own. There
    use `acount_tokens`.
    """
    return shared_counter().text(text) if isinstance(text, str) else shared_counter()(as_messages(text))


async def acount_tokens(text: str | Sequence[MessageLikeRepresentation]) -> int:
    """Do what `count_tokens` does, once the tokenizer is loaded, in a thread: never an estimate where it can be had."""
    await shared_counter().awarm_up()
    return count_tokens(text)


def _rendered(message: BaseMessage) -> tuple[str, int]:
    """Return the text of a message as far as it costs tokens, and the tokens of its media."""
    texts: list[str] = []
    media = 0
    calls = [*message.tool_calls, *message.invalid_tool_calls] if isinstance(message, AIMessage) else []
    for block in [message.content] if isinstance(message.content, str) else message.content:
        if isinstance(block, str):
            texts.append(block)
        elif block.get("type") in _MEDIA_BLOCKS:
            media += media_tokens(block)
        elif not (calls and block.get("type") in _CALL_BLOCKS):  # the same calls stand in `tool_calls`
            part = block.get(_TEXT_BLOCKS.get(str(block.get("type")), ""))
            texts.append(part if isinstance(part, str) else json.dumps(block, default=str))
    for call in calls:
        # Arguments that a model garbled are text, and are sent as they are.
        arguments = call["args"] if isinstance(call["args"], str) else json.dumps(call["args"], default=str)
        texts.append(f"{call['id']} {call['name']}({arguments})")
    texts += [message.tool_call_id] if isinstance(message, ToolMessage) else []
    return "\n".join(texts), media


def media_tokens(block: Mapping[str, Any]) -> int:
    """Return what one image, sound or file counts, whatever its size."""
    image = block.get("image_url", block)
    detail = image.get("detail") if isinstance(image, Mapping) else block.get("detail")
    return LOW_DETAIL_TOKENS if detail == "low" else MEDIA_TOKENS


def media_kind(block: object) -> str | None:
    """Return whether a content block is an `image`, `audio`, `video` or a `file`; `None` if it is none of them."""
    return _MEDIA_BLOCKS.get(str(block.get("type"))) if isinstance(block, Mapping) else None
