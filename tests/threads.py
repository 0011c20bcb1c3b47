"""A thread that lives through turns, tool loops, edits and branches, for tests of what the model sees of it."""

from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.graph.message import add_messages

from memory.context.tokens import TokenCounter, Tokenizer
from tests.laws.life import Life, broken_pairs, newest_user, own_ids, varied, words

__all__ = ["Life", "Thread", "broken_pairs", "newest_user", "own_ids", "varied", "word_counter", "words"]


def word_counter() -> TokenCounter:
    """A counter whose tokens are words: quick, and easy to reckon with."""
    return TokenCounter(tokenizer=Tokenizer((lambda: lambda text: len(text.split()), None)))


@dataclass
class Thread:
    """What a checkpointer would keep; `flushed` is every message the hook was given, in order, a fork restores it."""

    counter: TokenCounter
    max_tokens: int
    messages: list[Any] = field(default_factory=list)
    context: dict[str, Any] = field(default_factory=dict)
    flushed: list[str] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)
    made: int = 0

    def say(self, message: BaseMessage) -> None:
        self.messages = list(add_messages(self.messages, message))

    def identity(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"
