"""When an agent's conversation is summarized, and how much of it stays: so many tokens, or so many messages."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

from langchain_core.language_models import BaseChatModel
from pydantic import Field, TypeAdapter, ValidationError

from graphs.process.models import input_tokens
from memory.context.budget import Budget, Keep

Size = tuple[Literal["tokens", "messages"], int]
"""As LangChain's middleware writes it."""

# `True` is a whole number to Python, and a slip of the pen here.
_SIZE: TypeAdapter[Size] = TypeAdapter(tuple[Literal["tokens", "messages"], Annotated[int, Field(strict=True, ge=1)]])
_DEFAULT_SHARE = 0.8
_DEFAULT_TOKENS = 8192
_LONGEST_VIEW = 32_768
"""Tokens of a view where only numbers of messages are named and nobody knows what the model takes."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """When a summary is due: at so many tokens, or at so many messages; 0 asks for none."""

    tokens: int = 0
    messages: int = 0

    def is_reached(self, *, tokens: int, messages: int) -> bool:
        """Say whether there is as much."""
        return tokens >= self.tokens and messages >= self.messages


@dataclass(frozen=True, slots=True)
class Limits:
    """What `trigger` and `keep` come to for a model.

    Attributes:
        due: When a summary is due.
        max_tokens: What messages and summary may have once it is due.
        keep_tokens: A cut goes down to so many tokens; `None` says half.
        keep_messages: A cut goes down to so many messages.
    """

    due: Threshold
    max_tokens: int
    keep_tokens: int | None = None
    keep_messages: int | None = None

    @classmethod
    def of(cls, trigger: Size | None, keep: Size, model: BaseChatModel) -> Self:
        """Return the limits; `ValueError` if a choice cannot be meant, which the message names."""
        window = input_tokens(model)
        if trigger is None:
            trigger = ("tokens", int(window * _DEFAULT_SHARE) or _DEFAULT_TOKENS)
        due = Threshold(**_limit("trigger", trigger))
        left = _limit("keep", keep)
        return cls(due, due.tokens or window or _LONGEST_VIEW, left.get("tokens"), left.get("messages"))

    def budget(self, max_summary_tokens: int, frame: int) -> "DueBudget":
        """Return the budget of a conversation whose summary is due.

        Args:
            max_summary_tokens: What the summary may have; at most half.
            frame: Tokens of the words around the summary.
        """
        max_tokens = max(2, self.max_tokens - frame)
        return DueBudget(
            max_tokens=max_tokens,
            max_summary_tokens=min(max_summary_tokens, max_tokens // 2),
            keep_tokens=self.keep_tokens,
            keep_messages=self.keep_messages,
            due=replace(self.due, tokens=max(0, self.due.tokens - frame)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DueBudget(Budget):
    """A budget that is exceeded: something else than tokens alone says when a summary is due.

    Attributes:
        due: What says so, without the words around the summary.
        live: How many messages no summary stands for.
    """

    due: Threshold
    live: int = 0

    def keep_ahead(self, share: float, *, system: int, messages: int, beside: int) -> Keep | None:
        """Return what stays now of what the next cut will leave, as `Budget` does.

        At least so much is said until a summary is due, a question in any case, and that will stay as well.
        """
        keep, tokens = self.keep(system), messages + beside
        if self.due.is_reached(tokens=tokens, messages=self.live):
            return keep
        if tokens < share * self.due.tokens or self.live < share * self.due.messages:
            return None
        to_come = max(1, self.due.messages - self.live)
        # Half of what messages have had so far: a summary of more than will leave would be of no use.
        tokens_to_come = max(self.due.tokens - tokens, to_come * messages // (2 * max(1, self.live)))
        if tokens_to_come > keep.tokens or (keep.messages is not None and to_come >= keep.messages):
            return None
        stay = None if keep.messages is None else keep.messages - to_come
        return replace(keep, tokens=keep.tokens - tokens_to_come, messages=stay)

    def is_exceeded(self, *, messages: int, beside: int) -> bool:  # noqa: ARG002 - the base class names them
        """Return that it is time to cut."""
        return True


def _limit(name: Literal["trigger", "keep"], said: object) -> dict[str, int]:
    try:
        kind, number = _SIZE.validate_python(said)
    except ValidationError as error:
        raise ValueError(
            f'{name} must be a number of tokens or messages, at least 1, such as ("tokens", 4000), not {said!r}'
        ) from error
    return {kind: number}
