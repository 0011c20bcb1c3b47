"""Made-up conversations of a fixed size, and models that answer without thinking."""

import uuid
from collections.abc import Sequence
from random import Random

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

_TEXT = (
    "the we to of and a in that it trip hotel Bergen June train ticket price eleven evening weather rain boat "
    "museum breakfast Ada Tom decided maybe tomorrow question answer plan budget number address street open list"
)


def words(number: int, seed: int) -> str:
    """Return so many words, always the same for a seed."""
    return " ".join(Random(seed).choices(_TEXT.split(), k=number))


def question(turn: int, size: int = 40) -> HumanMessage:
    return HumanMessage(words(size, turn), id=str(uuid.UUID(int=turn)))


def answer(turn: int, size: int = 40) -> AIMessage:
    return AIMessage(words(size, -turn), id=f"lc_run--{uuid.UUID(int=turn)}-0")


def conversation(messages: int) -> list[AnyMessage]:
    return [question(n) if n % 2 == 0 else answer(n) for n in range(messages)]


def from_checkpoint(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the messages as a turn gets them: new objects with new strings."""
    serializer = JsonPlusSerializer()
    loaded: list[AnyMessage] = serializer.loads_typed(serializer.dumps_typed(list(messages)))
    return loaded


def summarizer() -> FakeListChatModel:
    """A model that always writes the same summary, of about 130 tokens."""
    return FakeListChatModel(responses=[words(110, 7)])


def speaker() -> FakeListChatModel:
    """A model that answers in 40 words, each time others."""
    return FakeListChatModel(responses=[words(40, -seed) for seed in range(500)])
