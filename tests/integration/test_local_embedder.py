"""The embedded embedder itself, where its packages and weights are: no test fetches them."""

import math

import pytest

from graphs.local.embedder import PACKAGES, BgeSmall, is_fetched, is_installed
from graphs.local.weights import cache_folder


@pytest.fixture(scope="module")
def embeddings() -> BgeSmall:
    if not is_installed():
        pytest.skip(f"needs {', '.join(PACKAGES)}: the extra `embedder`")
    if not is_fetched(cache_folder()):
        pytest.skip("needs the weights: python -m graphs.local.embedder")
    return BgeSmall(cache_folder())


def closeness(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_what_means_the_same_is_closer_than_what_shares_no_meaning(embeddings: BgeSmall) -> None:
    question = embeddings.embed_query("What food is dangerous for me?")
    allergy, home = embeddings.embed_documents(["Is allergic to peanuts", "Lives in Bergen"])
    assert closeness(question, allergy) > closeness(question, home) + 0.1
    assert all(math.hypot(*vector) == pytest.approx(1, abs=1e-5) for vector in (question, allergy, home))


def test_a_vector_does_not_depend_on_what_is_embedded_beside_it(embeddings: BgeSmall) -> None:
    texts = ["Is allergic to peanuts", "Lives in Bergen " * 200, ""]
    assert embeddings.embed_documents(texts) == [embeddings.embed_documents([text])[0] for text in texts]
