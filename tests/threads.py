"""A thread that lives through turns, tool loops, edits and branches, for tests of what the model sees of it."""

from dataclasses import dataclass

from memory.context.tokens import TokenCounter, Tokenizer
from tests.laws.life import Kept, Life, broken_pairs, newest_user, own_ids, varied, words

__all__ = ["Life", "Thread", "broken_pairs", "newest_user", "own_ids", "varied", "word_counter", "words"]


def word_counter() -> TokenCounter:
    """A counter whose tokens are words: quick, and easy to reckon with."""
    return TokenCounter(tokenizer=Tokenizer((lambda: lambda text: len(text.split()), None)))


@dataclass
class Thread(Kept):
    """The same, and what its tokens are counted with."""

    counter: TokenCounter
    max_tokens: int
