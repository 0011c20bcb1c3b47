"""An embedder behind `Embeddings`: loaded in the background, under a deadline, and never needed. Faked ones do here."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence

import pytest
from langchain_core.embeddings import Embeddings

from graphs.process import embedders
from graphs.process.embedders import Embedder, EmbedderUnavailable, embedder_of
from graphs.settings import Settings
from memory.recall.vectors import QueryVector
from tests.fakes import WordEmbeddings


class Troubled(WordEmbeddings):
    """An embedder that waits or fails, as a test says."""

    def __init__(self, gate: threading.Event | None = None, error: Exception | None = None) -> None:
        super().__init__()
        self._gate, self._error = gate, error

    def embed_query(self, text: str) -> list[float]:
        vector = super().embed_query(text)
        if self._gate:
            self._gate.wait(30)
        if self._error:
            raise self._error
        return vector


def loaded(embeddings: Embeddings, seconds: float = 30.0) -> Embedder:
    embedder = Embedder("fake:words", lambda: embeddings, query_seconds=seconds)
    embedder.start().result(30)
    return embedder


def failing(error: Exception, clock: Callable[[], float] = lambda: 0.0) -> Embedder:
    def load() -> Embeddings:
        raise error

    embedder = Embedder("fake:words", load, clock=clock)
    embedder.start().exception(30)
    return embedder


async def until(ask: Callable[[], Awaitable[Sequence[QueryVector]]]) -> None:
    for _ in range(1000):
        if await ask():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("there was no vector in ten seconds")


async def test_a_turn_does_not_wait_for_the_embedder_to_load() -> None:
    gate = threading.Event()

    def load() -> Embeddings:
        gate.wait(30)
        return WordEmbeddings()

    embedder = Embedder("fake:words", load, query_seconds=30)
    assert await embedder.aqueries(["What must I not eat?"]) == ()
    gate.set()
    assert len(embedder.documents(["Is allergic to peanuts"])) == 1
    assert len(await embedder.aqueries(["What must I not eat?"])) == 1


async def test_a_late_vector_is_not_waited_for_and_serves_the_next_turn(caplog: pytest.LogCaptureFixture) -> None:
    gate = threading.Event()
    embeddings = Troubled(gate)
    embedder = loaded(embeddings, seconds=0.01)
    for number in range(6):
        assert await embedder.aqueries([f"Question {number}?"]) == ()
    assert len(embeddings.asked) <= 4  # these hang, and no more are started
    gate.set()
    await until(lambda: embedder.aqueries(["Question 0?"]))
    assert [record.levelno for record in caplog.records].count(logging.WARNING) == 1
    assert "Question" not in caplog.text


async def test_the_sentences_of_a_message_are_embedded_in_one_go_and_each_once() -> None:
    class Counting(WordEmbeddings):
        calls = 0

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            self.calls += 1
            return super().embed_documents(texts)

    embeddings = Counting()
    embedder = loaded(embeddings)
    vectors = await embedder.aqueries(["I sail.", "Where to?", "I sail."])
    assert [each == vectors[0] for each in vectors] == [True, False, True]
    assert (embeddings.calls, embeddings.asked) == (1, ["I sail.", "Where to?"])
    assert await embedder.aqueries(["Where to?"]) == [vectors[1]]
    assert await embedder.aqueries(["I sail.", ""]) == ()


async def test_a_failing_embedder_costs_the_meaning_only_and_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    embedder = loaded(Troubled(error=ConnectionError("the text: I am ill")))
    assert await embedder.aqueries(["Am I ill?"]) == ()
    assert await embedder.aqueries(["Am I well?"]) == ()
    assert [record.levelno for record in caplog.records].count(logging.WARNING) == 1
    assert "embedder fake:words: failed with ConnectionError; recall goes by words alone" in caplog.text
    assert "ill" not in caplog.text
    with pytest.raises(ConnectionError):
        embedder.documents(["I am ill"])


async def test_an_embedder_that_cannot_be_loaded_is_tried_again_later(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    embedder = failing(EmbedderUnavailable("it needs a package"), lambda: now[0])
    assert await embedder.aqueries(["Am I ill?"]) == ()
    with pytest.raises(EmbedderUnavailable):
        embedder.documents(["I am ill"])
    first = embedder.start()
    assert embedder.start() is first
    now[0] = 601.0
    assert embedder.start() is not first
    assert "it needs a package; recall goes by words alone" in caplog.text


@pytest.mark.parametrize("name", ["", "none"])
def test_no_name_is_no_embedder(name: str) -> None:
    assert embedder_of(Settings(embedder=name)) is None


@pytest.mark.parametrize(
    ("name", "says"),
    [("nobody:knows", "PALIMPSEST_EMBEDDER must be local or provider:model"), ("cohere:embed", "not installed")],
)
def test_a_name_that_cannot_be_used_is_told_with_what_to_set(
    name: str, says: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedders, "can_rank", lambda: True)
    embedder = embedder_of(Settings(embedder=name))
    assert embedder is not None
    assert isinstance(embedder.start().exception(60), EmbedderUnavailable)
    assert says in caplog.text


def test_any_server_of_openais_protocol_is_sent_texts_and_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "can_rank", lambda: True)
    settings = Settings(embedder="openai:nomic", openai_base_url="http://127.0.0.1:1/v1")
    embedder = embedder_of(settings)
    assert embedder is not None
    embeddings = embedder.start().result(60)
    assert getattr(embeddings, "check_embedding_ctx_length", None) is False
    assert getattr(embeddings, "openai_api_base", None) == "http://127.0.0.1:1/v1"
