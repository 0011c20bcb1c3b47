"""The tokenizer of a process: cl100k_base where it can be had, an estimate where it cannot."""

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial

from memory.door import in_daemon_thread

logger = logging.getLogger(__name__)

Encoder = Callable[[str], int]
"""Text in, its number of tokens out."""

ENCODING = "cl100k_base"
EXACT_CHARS = 200_000
"""Longer texts are sampled: tiktoken needs up to 0.1 s for so many of the worst characters (one run of white space),
and its time for such a run grows faster than the run."""

_SAMPLES = 50
_SAMPLE_CHARS = 4_000


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

    Loading may wait for a network that never answers. So nobody waits longer for that than `patience`, the event loop
    does not wait at all, and what has been settled stays: the counts of one process do not change under way.

    Args:
        loaders: Tried in this order; the first that returns an encoder is used, the rest is not tried.
        patience: Seconds after which an unfinished load counts as failed.
        offline: Those of the loaders that need no network. They have the time that they take: a busy machine would
            otherwise count by estimates for as long as the process lives.
    """

    def __init__(
        self,
        loaders: Sequence[Callable[[], Encoder]] = (load_toktok, load_tiktoken),
        *,
        patience: float = 5.0,
        offline: Collection[Callable[[], Encoder]] = (load_toktok,),
    ) -> None:
        self._loaders, self._patience, self._offline = loaders, patience, offline
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
        """Load the encoder now, waiting `patience` seconds at most for a network. Not for the event loop: it blocks."""
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
            if _on_event_loop():
                self._begin_to_load()
                return estimate(text)
            self.warm_up()
        encode = self._encode or estimate
        if len(text) <= EXACT_CHARS or encode is estimate:
            return _encoded(encode, text)
        starts = (index * (len(text) - _SAMPLE_CHARS) // (_SAMPLES - 1) for index in range(_SAMPLES))
        sampled = sum(_encoded(encode, text[start : start + _SAMPLE_CHARS]) for start in starts)
        return -(-sampled * len(text) // (_SAMPLES * _SAMPLE_CHARS))

    def _begin_to_load(self) -> None:
        if self._has_told:
            return
        self._has_told = True
        in_daemon_thread(self.warm_up, "load-tokenizer")
        logger.warning(
            "Tokens are estimated as len(text) // 4 until tiktoken or palimpsest-memory[tokens] is loaded: the event "
            "loop must not wait for it; await acount_tokens() first"
        )

    def _loaded(self) -> Encoder:
        for load in self._loaders:
            try:
                loading = in_daemon_thread(partial(_working, load), "load-tokenizer")
                return loading.result(None if load in self._offline else self._patience)
            except Exception as error:  # absent package, no network, bad cache: each means that this one cannot count
                logger.debug("%s cannot be loaded: %s", load.__name__, type(error).__name__)
        logger.log(
            logging.INFO if self._has_told else logging.WARNING,
            "No tokenizer for %s can be loaded: tokens are estimated as len(text) // 4. Install tiktoken, or, "
            "where it cannot fetch its ranks from the network, palimpsest-memory[tokens]",
            ENCODING,
        )
        return estimate


def _working(load: Callable[[], Encoder]) -> Encoder:
    encode = load()
    encode("")
    return encode


def _on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _encoded(encode: Encoder, text: str) -> int:
    try:
        return encode(text)
    except UnicodeEncodeError:  # a lone surrogate counts as U+FFFD, as in tiktoken
        return encode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
