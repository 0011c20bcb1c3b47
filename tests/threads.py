"""A thread that lives through turns, tool loops, edits and branches, for tests of what the model sees of it."""

from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.graph.message import add_messages

from memory.context.summarization import Cut, SummarizationNode
from memory.context.tokenizer import Tokenizer
from memory.context.tokens import TokenCounter
from tests.fakes import RecordingModel
from tests.laws.life import Life, broken_pairs, newest_user, own_ids, varied, words

__all__ = ["Life", "Thread", "broken_pairs", "newest_user", "own_ids", "start", "varied", "word_counter", "words"]


def word_counter() -> TokenCounter:
    """A counter whose tokens are words: quick, and easy to reckon with."""
    return TokenCounter(tokenizer=Tokenizer([lambda: lambda text: len(text.split())]))


@dataclass
class Thread:
    """What a checkpointer and a graph would do around a `SummarizationNode`, and what must never happen.

    `flushed` is every message the hook was given, in order; `branch` restores them with the state, as a fork does.
    """

    node: SummarizationNode
    counter: TokenCounter
    max_tokens: int
    messages: list[Any] = field(default_factory=list)
    context: dict[str, Any] = field(default_factory=dict)
    flushed: list[str] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)
    made: int = 0
    said: int = 0
    tokens_said: int = 0
    cuts: list[Cut] = field(default_factory=list)

    @property
    def is_compact(self) -> bool:
        return self.node.input_messages_key == self.node.output_messages_key

    def say(self, message: BaseMessage) -> None:
        self.said += 1
        self.tokens_said += self.counter.message(message)
        self.messages = list(add_messages(self.messages, message))

    def identity(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    def summarize(self) -> list[BaseMessage]:
        """Run the node once, take its update over, and return what the model would see."""
        state = {"messages": self.messages, "context": self.context}
        result = self.node.result(state)
        update = self.node.update(state, result)
        self.cuts += [result.cut] if result.cut else []
        if self.is_compact:
            self.messages = list(add_messages(self.messages, update["messages"]))
        self.context = update.get("context", self.context)
        return result.messages


def start(max_tokens: int, *, compact: bool = False, model: RecordingModel | None = None, **options: Any) -> Thread:
    """Return an empty thread whose summaries count one for each call of the model."""
    counter = options.pop("counter", None) or word_counter()
    writer = model or RecordingModel(respond=lambda messages: f"summary of {len(messages[-1].text.split())} words")
    flushed: list[str] = []

    def hook(messages: list[BaseMessage]) -> None:
        thread.flushed.extend(str(message.id) for message in messages)

    node = SummarizationNode(
        model=writer,
        max_tokens=max_tokens,
        token_counter=counter,
        memory_flush_hook=options.pop("hook", hook),
        output_messages_key="messages" if compact else "summarized_messages",
        **options,
    )
    thread = Thread(node, counter, max_tokens, flushed=flushed)
    return thread
