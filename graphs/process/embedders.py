"""Embedders by name, behind LangChain's `Embeddings`: loaded in the background, asked under a deadline, never needed.

Whatever goes wrong with one, recall goes by words alone; the log says so, once.
"""

import asyncio
import importlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from langchain_core.embeddings import Embeddings

from graphs.local import embedder as local
from graphs.local.weights import WeightsUnavailable, cache_folder
from graphs.process.failures import lacking
from graphs.settings import LOCAL, Settings
from memory.door import in_daemon_thread
from memory.recall.vectors import QueryVector, can_rank, packed

logger = logging.getLogger(__name__)

T = TypeVar("T")

NONE: Final = "none"

_BATCH = 64
_DOCUMENT_CHARS = 8_000  # providers refuse texts of more than about 8,000 tokens
_QUERY_CHARS = 2_000
_LATE_CALLS = 4
"""So many calls may run on past their deadline; while they do, no turn starts another."""
_RETRY_SECONDS = 600.0
_REMOTE_QUERY_SECONDS = 0.5  # so long a turn waits for a provider
_EXTRA = "install the extra `embedder`: pip install 'palimpsest-memory[embedder]'"


class EmbedderUnavailable(RuntimeError):
    """There is no embedder; the message is one sentence that says why and what to do."""


class Embedder:
    """One process's embedder. Threads and event loops may share it.

    Args:
        name: What its vectors are known by; those of another name are made anew.
        load: Returns the embedder; may block, and is called on a thread of its own when it is first needed.
        query_seconds: How long a turn waits for the vector of its question.
        clock: Returns seconds; only differences matter.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[], Embeddings],
        *,
        query_seconds: float = 0.15,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._load, self._query_seconds, self._clock = load, query_seconds, clock
        self._lock = threading.Lock()
        self._loading: Future[Embeddings] | None = None
        self._loaded_at = 0.0
        self._free = threading.Semaphore(_LATE_CALLS)
        self._said: set[str] = set()

    def start(self) -> Future[Embeddings]:
        """Begin to load it, unless that has been done; after a failure not again for ten minutes."""
        with self._lock:
            loading, now = self._loading, self._clock()
            is_failed = loading is not None and loading.done() and loading.exception() is not None
            if loading is None or (is_failed and now - self._loaded_at >= _RETRY_SECONDS):
                self._loading = loading = in_daemon_thread(partial(self._told, self._load), "palimpsest-embedder")
                self._loaded_at = now
            return loading

    async def aqueries(self, texts: Sequence[str]) -> Sequence[QueryVector]:
        """Return the vectors of sentences of a question, made in one go; none where not all are there in time.

        Loading is never waited for, and a call until the deadline.
        """
        asked, loading = [text.strip()[:_QUERY_CHARS] for text in texts], self.start()
        if not (asked and all(asked)) or not loading.done() or loading.exception() is not None:
            return ()
        if not self._free.acquire(blocking=False):
            return ()
        # A thread of its own: a provider's call that hangs must hold up neither the loop nor the end of the process.
        call = in_daemon_thread(partial(self._ask, loading.result(), [*dict.fromkeys(asked)]), "palimpsest-query")
        with suppress(Exception):  # providers have exceptions of their own; `_ask` has named it
            try:
                async with asyncio.timeout(self._query_seconds):
                    made = await asyncio.shield(asyncio.wrap_future(call))
                    return [made[text] for text in asked]
            except TimeoutError:
                self._say(f"gave no vector within {self._query_seconds:.2f} s")
        return ()

    def _ask(self, embeddings: Embeddings, asked: Sequence[str]) -> dict[str, QueryVector]:
        def embed() -> dict[str, QueryVector]:
            several = len(asked) > 1
            vectors = embeddings.embed_documents([*asked]) if several else [embeddings.embed_query(asked[0])]
            return {text: QueryVector.of(self.name, values) for text, values in zip(asked, vectors, strict=True)}

        try:
            return self._told(embed)
        finally:
            self._free.release()

    def documents(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vector of each text as it is kept. Blocks, also until it is loaded: never for a turn.

        Raises:
            EmbedderUnavailable: If it cannot be loaded.
            Exception: Whatever the embedder raises.
        """
        if not texts:
            return []
        try:
            embeddings = self.start().result()
        except Exception as error:  # said already, with its reason
            raise EmbedderUnavailable("there is no embedder") from error
        vectors: list[bytes] = []
        for start in range(0, len(texts), _BATCH):
            batch = [text[:_DOCUMENT_CHARS] or " " for text in texts[start : start + _BATCH]]
            vectors += [packed(values) for values in embeddings.embed_documents(batch)]
        return vectors

    def _told(self, work: Callable[[], T]) -> T:
        """Do the work, and log a failure: our own errors with their text, others by class, as they may quote texts."""
        try:
            return work()
        except Exception as error:
            is_ours = isinstance(error, EmbedderUnavailable | WeightsUnavailable)
            self._say(str(error) if is_ours else f"failed with {type(error).__name__}")
            raise

    def _say(self, what: str) -> None:
        level = logging.INFO if what in self._said else logging.WARNING
        self._said.add(what)
        logger.log(level, "embedder %s: %s; recall goes by words alone", self.name, what)


def embedder_of(settings: Settings) -> Embedder | None:
    """Return the embedder that the settings name, not yet loaded, or `None` if they name none."""
    if settings.embedder in ("", NONE):
        return None
    if settings.embedder == LOCAL:
        return Embedder(local.NAME, _load_local)

    return Embedder(settings.embedder, partial(_load_remote, settings), query_seconds=_REMOTE_QUERY_SECONDS)


def _load_local() -> Embeddings:
    try:
        for package in local.PACKAGES:  # before the weights are fetched
            importlib.import_module(package)
    except ImportError as error:
        raise EmbedderUnavailable(lacking(error, _EXTRA)) from error
    folder = cache_folder()
    if not local.is_fetched(folder):
        logger.info("fetching the weights of the embedder, %d MB, once", local.MEGABYTES)
    local.fetch_weights(folder)
    return local.BgeSmall(folder)


def _load_remote(settings: Settings) -> Embeddings:
    if not can_rank():  # it would be asked for nothing
        raise EmbedderUnavailable(f"ranking vectors needs numpy: {_EXTRA}")
    from langchain.embeddings import init_embeddings  # seconds of imports

    from graphs.process import provider_models

    options: dict[str, Any] = {"max_retries": 1} if settings.embedder.startswith("openai:") else {}
    try:
        if options and settings.openai_base_url:
            # Other servers want texts, not OpenAI's token numbers.
            options |= {"check_embedding_ctx_length": False, **provider_models.at_server(settings)}
            options.pop("http_socket_options", None)  # of chat models alone
        return init_embeddings(settings.embedder, **options)
    except ImportError as error:
        why = lacking(error, f"it needs a package that is not installed: {error}")
        raise EmbedderUnavailable(why) from error
    except Exception as error:  # unknown provider or missing key: each provider's package has its own exception
        raise EmbedderUnavailable(
            "PALIMPSEST_EMBEDDER must be local or provider:model with that provider's key set, for openai "
            f"OPENAI_API_KEY ({type(error).__name__})"
        ) from error
