"""Tokens: of texts, by cl100k_base where it can be had, and of messages, each counted once in its life."""

import asyncio
import functools
import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, MessageLikeRepresentation, ToolMessage

from memory.context.turns import blocks_of
from memory.door import in_daemon_thread
from memory.message import as_messages

logger = logging.getLogger(__name__)

MESSAGE_TOKENS = 4
"""Role and separators of one message, as OpenAI's cookbook counts them for chat models (3, and 1 for the role)."""

MEDIA_TOKENS = 1600
"""One image, sound or file: what the largest image costs at Anthropic, above the 1,445 of OpenAI's largest."""

LOW_DETAIL_TOKENS = 85
"""One image that is sent with low detail, at OpenAI."""

CACHED_MESSAGES = 50_000

_CALL_BLOCKS = frozenset({"tool_use", "tool_call", "function_call"})
_MEDIA_BLOCKS = {
    **dict.fromkeys(("image", "image_url", "input_image", "image_generation_call"), "image"),
    **dict.fromkeys(("audio", "input_audio"), "audio"),
    **dict.fromkeys(("file", "input_file", "document", "media"), "file"),
    "video": "video",
}

ENCODING = "cl100k_base"
EXACT_CHARS = 200_000
"""Longer texts are sampled: tiktoken takes 0.1 s for so many of the worst characters, one run of white space, and for
longer runs more than in proportion."""

_SAMPLES = 50
_SAMPLE_CHARS = 4_000

Encoder = Callable[[str], int]
"""Text in, its number of tokens out."""

MessagesCounter = Callable[[Iterable[BaseMessage]], int]
"""Langmem's form of a counter: messages in, their tokens out."""


def estimate(text: str) -> int:
    """Return `len(text) // 4`: about right for English, three times too low for Chinese or Japanese."""
    return len(text) // 4


def load_toktok() -> Encoder:
    """Return the encoder of toktok: the same tokens as tiktoken's, with the ranks inside the package.

    Raises:
        ImportError: If the package is not installed (it is the extra `tokens`).
    """
    # The module's door to its tokenizer: its public `batch_count` costs a single text six times as much.
    from toktok import _encoding  # optional, and slow to import: only when a count is wanted

    return _encoding(ENCODING).count  # type: ignore[no-any-return]  # it has no type information


def load_tiktoken() -> Encoder:
    """Return the encoder of tiktoken, which fetches its ranks from the network when its cache is empty.

    Raises:
        ImportError: If tiktoken is not installed.
        Exception: Whatever the network raises when the ranks cannot be fetched.
    """
    import tiktoken  # may be absent

    encode = tiktoken.get_encoding(ENCODING).encode_ordinary  # `encode` raises on "<|endoftext|>" in a text
    return lambda text: len(encode(text))


class Tokenizer:
    """Counts the tokens of texts, with an encoder that is loaded once, in a thread of its own.

    Loading may wait for a network that never answers. So threads wait for a few seconds, the event loop does not wait
    at all, and the first outcome stays, so that the counts of one process do not change under way.

    Args:
        loaders: Tried in this order; the first that returns an encoder is used, the rest is not tried. Each with the
            seconds after which an unfinished load counts as failed. What needs no network has the time that it takes:
            a busy machine would otherwise count by estimates for as long as the process lives.
    """

    def __init__(self, *loaders: tuple[Callable[[], Encoder], float | None]) -> None:
        self._loaders = loaders
        self._encode: Encoder | None = None
        self._lock = threading.Lock()
        self._has_told = False

    @property
    def settled(self) -> bool:
        """Whether it is decided what counts; until then a count on the event loop is an estimate."""
        return self._encode is not None

    @property
    def exact(self) -> bool:
        """Whether counts are those of cl100k_base."""
        return self._encode not in (None, estimate)

    def warm_up(self) -> None:
        """Load the encoder now, without waiting long for a network. Not for the event loop: it blocks."""
        with self._lock:
            if self._encode is None:
                self._encode = self._loaded()

    async def awarm_up(self) -> None:
        """Load the encoder now, in a thread."""
        if self._encode is None:
            await asyncio.to_thread(self.warm_up)

    def count(self, text: str) -> int:
        """Return the number of tokens of a text; special tokens in it are counted as the text they are.

        Texts longer than `EXACT_CHARS` are estimated from 50 samples spread evenly over them: within 1 % where the
        text is of one kind throughout, further off where it is not. On the event loop, before `awarm_up()`, the
        answer is `len(text) // 4`, with one warning, and loading is begun.
        """
        if self._encode is None:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                self.warm_up()
            else:
                if not self._has_told:
                    self._has_told = True
                    in_daemon_thread(self.warm_up, "load-tokenizer")
                    logger.warning(
                        "Tokens are estimated as len(text) // 4 until tiktoken or palimpsest-memory[tokens] is loaded: "
                        "the event loop must not wait for it; await acount_tokens() first"
                    )
                return estimate(text)
        encode = self._encode or estimate
        if len(text) <= EXACT_CHARS or encode is estimate:
            return _encoded(encode, text)
        starts = (index * (len(text) - _SAMPLE_CHARS) // (_SAMPLES - 1) for index in range(_SAMPLES))
        sampled = sum(_encoded(encode, text[start : start + _SAMPLE_CHARS]) for start in starts)
        return -(-sampled * len(text) // (_SAMPLES * _SAMPLE_CHARS))

    def _loaded(self) -> Encoder:
        for load, seconds in self._loaders:
            try:
                return in_daemon_thread(partial(_working, load), "load-tokenizer").result(seconds)
            except Exception as error:  # absent package, no network, bad cache: each means that this one cannot count
                logger.debug("%s cannot be loaded: %s", load.__name__, type(error).__name__)
        logger.log(
            logging.INFO if self._has_told else logging.WARNING,
            "No tokenizer for %s can be loaded: tokens are estimated as len(text) // 4. Install tiktoken, or, "
            "without a network, palimpsest-memory[tokens]",
            ENCODING,
        )
        return estimate


def _working(load: Callable[[], Encoder]) -> Encoder:
    encode = load()
    encode("")
    return encode


def _encoded(encode: Encoder, text: str) -> int:
    try:
        return encode(text)
    except UnicodeEncodeError:  # a lone surrogate counts as U+FFFD, as in tiktoken
        return encode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


class TokenCounter:
    """Counts messages, each once: a count is remembered under what it depends on, for so many messages.

    A counter is also a counter in langmem's form: calling it with messages returns their sum. Where it lives as long
    as the process, a message that comes back from a checkpoint with every turn is still tokenized only once.

    Args:
        count_messages: Another way to count, in langmem's form. It is called with one message at a time, and must
            not count less for several messages than for each of them.
        tokenizer: Counts texts; the process's own by default.
    """

    def __init__(self, count_messages: MessagesCounter | None = None, *, tokenizer: Tokenizer | None = None) -> None:
        self.tokenizer = tokenizer or shared_tokenizer()
        self._count_messages = count_messages
        self._known: dict[int, int] = {}

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
        for message in messages:
            fields = message.__dict__  # three times as quick as attributes of a pydantic model
            text, media = fields["content"], 0
            if type(message) is not HumanMessage or not isinstance(text, str):
                called = fields.get("tool_calls") or fields.get("invalid_tool_calls")
                if called or not isinstance(text, str) or "tool_call_id" in fields:
                    text, media = _rendered(message)
            key = hash((fields["type"], text, media))
            if (count := self._known.get(key)) is None:
                own = self._count_messages
                count = own([message]) if own else MESSAGE_TOKENS + self.text(text) + media
                # An estimate must not outlive the loading of the tokenizer.
                if own or self.tokenizer.settled:
                    if len(self._known) >= CACHED_MESSAGES:
                        self._known = {}  # another one, as threads may be reading this
                    self._known[key] = count
            counts.append(count)
        return counts


@functools.cache
def shared_tokenizer() -> Tokenizer:
    """Return the tokenizer of this process: it is loaded once, whoever counts."""
    return Tokenizer((load_toktok, None), (load_tiktoken, 5.0))


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
    for block in blocks_of(message.content):
        kind = str(block.get("type"))
        if kind in _MEDIA_BLOCKS:
            media += media_tokens(block)
        elif not (calls and kind in _CALL_BLOCKS):  # the same calls stand in `tool_calls`
            part = block.get("text", block.get(kind))  # thoughts and refusals stand under their own names
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
