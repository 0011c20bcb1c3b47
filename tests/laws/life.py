"""A thread that lives through turns, tool loops, edits and branches, and what is asked of what a model sees of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph.message import add_messages


def words(number: int, word: str = "word") -> str:
    return " ".join([word] * number)


def varied(number: int, word: str = "word") -> str:
    """Return so many words that are no loop."""
    return " ".join(f"{word}{at}" for at in range(number))


def human(name: str, size: int = 20) -> HumanMessage:
    return HumanMessage(f"{name} {words(size - 1)}", id=name)


def talk(turns: int, size: int = 20, first: int = 1) -> list[BaseMessage]:
    """Return exchanges h1 a1 h2 a2 …, the last one still unanswered."""
    said: list[BaseMessage] = []
    for n in range(first, first + turns):
        said += [human(f"h{n}", size), AIMessage(f"a{n} {words(size - 1)}", id=f"a{n}")]
    return said[:-1]


@dataclass(kw_only=True)
class Kept:
    """What a checkpointer would keep; `flushed` is every message the hook was given, in order, a fork restores it."""

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


@dataclass
class Life:
    """Random turns of a thread; the same seed lives the same life."""

    thread: Any
    random: Random
    largest: int
    seen: Callable[[list[BaseMessage]], None]
    saved: list[tuple[Any, ...]] = field(default_factory=list)

    def turn(self) -> None:
        self._before()
        size = self.random.choice([1, 5, 20, self.largest // 8, self.random.randrange(1, self.largest)])
        thread = self.thread
        name = thread.identity("h")
        thread.say(HumanMessage(self._content(f"{name} {words(size)}"), id=name))
        self.seen(thread.summarize())
        for _ in range(self.random.choice([0, 0, 0, 1, 2, 7])):
            self._tools()
            self.seen(thread.summarize())
        name = thread.identity("a")
        thread.say(AIMessage(f"{name} {words(self.random.randrange(1, 30))}", id=name))

    def _content(self, text: str) -> Any:
        kind = self.random.randrange(12)
        if kind == 0:
            return [{"type": "text", "text": text}]
        if kind == 1:
            return [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": "x", "detail": "low"}}]
        return text

    def _tools(self) -> None:
        """One or several calls, their results in any order, sometimes two model messages before the results."""
        calls = [
            {"name": "look", "args": {"q": words(self.random.randrange(1, 9))}, "id": self.thread.identity("c")}
            for _ in range(self.random.choice([1, 1, 2, 3]))
        ]
        split = self.random.randrange(len(calls)) if self.random.random() < 0.2 else 0
        for part in (calls[:split], calls[split:]):
            if part:
                self.thread.say(AIMessage("", tool_calls=part, id=self.thread.identity("a")))
        self.random.shuffle(calls)
        for call in calls:
            size = self.random.choice([1, 10, self.largest // 3])
            self.thread.say(ToolMessage(words(size), tool_call_id=call["id"], id=self.thread.identity("t")))

    def _before(self) -> None:
        """Now and then somebody edits, removes, or goes back to an earlier state."""
        thread, dice = self.thread, self.random.random()
        if dice < 0.02 and thread.messages:
            old = self.random.choice(thread.messages)
            if isinstance(old, HumanMessage):
                thread.say(HumanMessage(words(5, "edited"), id=old.id))
        elif dice < 0.03:
            self._remove_an_exchange()
        elif dice < 0.05:
            self.saved.append((list(thread.messages), dict(thread.context), list(thread.flushed), set(thread.removed)))
        elif dice < 0.06 and self.saved:
            thread.messages, thread.context, thread.flushed, thread.removed = (
                type(kept)(kept) for kept in self.random.choice(self.saved)
            )

    def _remove_an_exchange(self) -> None:
        plain = [m for m in self.thread.messages if isinstance(m, HumanMessage)]
        if plain:
            gone = self.random.choice(plain)
            self.thread.messages = [m for m in self.thread.messages if m.id != gone.id]
            self.thread.removed.add(str(gone.id))


def broken_pairs(messages: Sequence[BaseMessage], state: Sequence[BaseMessage]) -> list[str | None]:
    """Results without their call, and calls without a result that the state has."""
    called: set[str | None] = {call["id"] for m in messages if isinstance(m, AIMessage) for call in m.tool_calls}
    answered: set[str | None] = {m.tool_call_id for m in messages if isinstance(m, ToolMessage)}
    available = {m.tool_call_id for m in state if isinstance(m, ToolMessage)}
    return [*(answered - called), *((called & available) - answered)]


def newest_user(messages: Sequence[BaseMessage]) -> str | None:
    return next((m.id for m in reversed(messages) if isinstance(m, HumanMessage)), None)


def own_ids(messages: Sequence[BaseMessage]) -> set[str]:
    return {str(m.id) for m in messages if not isinstance(m, SystemMessage)}
