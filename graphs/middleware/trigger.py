"""When an agent's conversation is summarized, and how much of it stays: in the words of LangChain's middleware."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self

from langchain.agents.middleware.summarization import ContextSize, TriggerClause
from langchain_core.language_models import BaseChatModel

from graphs.models import input_tokens
from memory.context.budget import Budget, Keep

Trigger = ContextSize | TriggerClause | list[ContextSize | TriggerClause] | None

_KINDS = ("tokens", "messages", "fraction")
_DEFAULT_SHARE = 0.8
_DEFAULT_TOKENS = 8192
_LONGEST_VIEW = 32_768
"""Tokens of a view where only numbers of messages are named and nobody knows what the model takes."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """When a summary is due: at so many tokens and so many messages; 0 asks for none."""

    tokens: int = 0
    messages: int = 0

    def is_reached(self, *, tokens: int, messages: int) -> bool:
        """Say whether there is as much."""
        return tokens >= self.tokens and messages >= self.messages


@dataclass(frozen=True, slots=True)
class Limits:
    """What `trigger` and `keep` come to for a model.

    Attributes:
        thresholds: A summary is due when one of them is reached.
        max_tokens: What messages and summary may have once it is due.
        keep_tokens: A cut goes down to so many tokens; `None` says half.
        keep_messages: A cut goes down to so many messages.
    """

    thresholds: tuple[Threshold, ...]
    max_tokens: int
    keep_tokens: int | None = None
    keep_messages: int | None = None

    @classmethod
    def of(cls, trigger: Trigger, keep: ContextSize, model: BaseChatModel) -> Self:
        """Return the limits.

        Raises:
            ValueError: If a choice cannot be meant; the message names it. A share needs a model whose profile tells
                how many tokens it takes.
        """
        window = input_tokens(model)
        if trigger is None:
            trigger = ("fraction", _DEFAULT_SHARE) if window else ("tokens", _DEFAULT_TOKENS)
        clauses: list[object] = list(trigger) if isinstance(trigger, list) else [trigger]
        if not clauses:
            raise ValueError("trigger must name at least one threshold")
        thresholds = tuple(_threshold(clause, window) for clause in clauses)
        stated = [threshold.tokens for threshold in thresholds if threshold.tokens]
        kind, size = _checked("keep", keep)
        return cls(
            thresholds,
            # Whichever of them is reached first, the view is to be within it.
            max_tokens=min(stated) if stated else window or _LONGEST_VIEW,
            keep_tokens=None if kind == "messages" else _tokens("keep", kind, size, window),
            keep_messages=int(size) if kind == "messages" else None,
        )

    def are_reached(self, *, tokens: int, messages: int) -> bool:
        """Say whether a summary is due."""
        return any(threshold.is_reached(tokens=tokens, messages=messages) for threshold in self.thresholds)

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
            thresholds=tuple(replace(each, tokens=max(0, each.tokens - frame)) for each in self.thresholds),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DueBudget(Budget):
    """A budget that is exceeded: something else than tokens alone says when a summary is due.

    Attributes:
        thresholds: What says so, without the words around the summary.
        live: How many messages no summary stands for.
    """

    thresholds: tuple[Threshold, ...] = ()
    live: int = 0

    def keep_ahead(self, share: float, *, system: int, messages: int, beside: int) -> Keep | None:
        """Return what stays now of what the next cut will leave, as `Budget` does.

        At least so much is said until a threshold is reached, a question in any case, and that will stay as well.
        """
        keep, tokens = self.keep(system), messages + beside
        if any(each.is_reached(tokens=tokens, messages=self.live) for each in self.thresholds):
            return keep
        if not any(tokens >= share * each.tokens and self.live >= share * each.messages for each in self.thresholds):
            return None
        to_come = max(1, min(each.messages for each in self.thresholds) - self.live)
        # Half of what messages have had so far: a summary of more than will leave would be of no use.
        tokens_to_come = max(
            min(each.tokens for each in self.thresholds) - tokens, to_come * messages // (2 * max(1, self.live))
        )
        if tokens_to_come > keep.tokens or (keep.messages is not None and to_come >= keep.messages):
            return None
        stay = None if keep.messages is None else keep.messages - to_come
        return replace(keep, tokens=keep.tokens - tokens_to_come, messages=stay)

    def is_exceeded(self, *, messages: int, beside: int) -> bool:  # noqa: ARG002 - the base class names them
        """Return that it is time to cut."""
        return True


def _threshold(clause: object, window: int) -> Threshold:
    said = clause.items() if isinstance(clause, Mapping) else [clause]
    if not said:
        raise ValueError("trigger must not be empty: name tokens, messages or fraction")
    tokens = messages = 0
    for each in said:
        kind, size = _checked("trigger", each)
        if kind == "messages":
            messages = int(size)
        else:
            tokens = max(tokens, _tokens("trigger", kind, size, window))
    return Threshold(tokens, messages)


def _checked(name: Literal["trigger", "keep"], said: object) -> tuple[str, float]:
    if not isinstance(said, tuple | list) or len(said) != 2:
        raise ValueError(f'{name} must be a pair such as ("tokens", 4000), not {said!r}')
    kind, number = said
    if kind not in _KINDS:
        raise ValueError(f"{name} must name tokens, messages or fraction, not {kind!r}")
    # `True` is a whole number to Python, and a slip of the pen here.
    is_number = isinstance(number, int | float if kind == "fraction" else int) and not isinstance(number, bool)
    if not is_number or number <= 0 or (kind == "fraction" and number > 1):
        wanted = "a number above 0 and at most 1" if kind == "fraction" else "a whole number of at least 1"
        raise ValueError(f"{name}: {kind} must be {wanted}, not {number!r}")
    return str(kind), float(number)


def _tokens(name: str, kind: str, size: float, window: int) -> int:
    if kind == "tokens":
        return int(size)
    if not window:
        raise ValueError(
            f"{name}: fraction needs a model whose profile names max_input_tokens; name tokens, or pass "
            'profile={"max_input_tokens": ...} to the model'
        )
    return max(1, int(window * size))
