"""Asking a model for a summary: portion by portion, each answer within the summary's share of the budget."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import BaseMessage

from memory.context.budget import units
from memory.context.effects import SummaryEffects, SummaryProgress
from memory.context.running_summary import RunningSummary, WrittenSummary, rehydrate, written_summary
from memory.context.summary_prompt import (
    WORDS_PER_TOKEN,
    SummaryPrompts,
    in_portions,
    shorter,
    summary_in,
    words_for,
)
from memory.context.view import Views
from memory.effects import Ask

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryWriter(Views):
    """Writes summaries.

    Attributes:
        model: Who is asked.
        prompts: The words of a call.
        portion_tokens: Summarize so many tokens of messages in one call, each portion for itself, and join what comes
            of it to the existing summary, of which the middle goes when it gets too long; `None` has the existing
            summary rewritten.

    Raises:
        ValueError: If `portion_tokens` cannot be meant.
    """

    model: LanguageModelLike
    prompts: SummaryPrompts = field(default_factory=SummaryPrompts)
    portion_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.portion_tokens is not None and self.portion_tokens < 1:
            raise ValueError(f"portion_tokens must be at least 1, not {self.portion_tokens!r}")

    def written(self, messages: Sequence[BaseMessage], existing: str) -> SummaryEffects[str]:
        """Return the summary of an existing one and these messages."""
        for portion in self._portions(messages):
            existing = yield from self._extended(existing, portion)
        return existing

    def prepare(
        self, leaving: Sequence[BaseMessage], running_summary: object, begun: WrittenSummary | None = None
    ) -> SummaryEffects[WrittenSummary]:
        """Write the summary that the next cut will need, before it is due, and tell of each part that is done.

        Args:
            leaving: What `leaves_soon` returned.
            running_summary: The running summary, in whatever form a state holds it.
            begun: What an earlier try told last, for the first of these messages: they are not asked for again.

        Returns:
            What `prepared_summary` is to return when the cut is due; a part of it, if it was not to go on.

        Raises:
            Exception: Whatever the model raises; `ValueError` if the summary is empty.
        """
        if begun and len(begun["ids"]) >= len(leaving):
            return begun
        running = rehydrate(running_summary)
        existing = running.summary if running else ""
        done, summary = (len(begun["ids"]), begun["summary"]) if begun else (0, existing)
        ends = {group.stop for group in units(leaving)}
        places = {message.id: at for at, message in enumerate(leaving)}
        for portion in self._portions(fresh(leaving[done:], running)):
            summary = yield from self._extended(summary, portion)
            end = places[portion[-1].id] + 1
            # A cut never comes between a call of a tool and its result.
            if end in ends and not (yield SummaryProgress(part := written_summary(summary, existing, leaving[:end]))):
                return part
        return written_summary(summary, existing, leaving)

    def _portions(self, messages: Sequence[BaseMessage]) -> Iterator[list[BaseMessage]]:
        room = self.budget.room(self.budget.max_summary_tokens)
        return in_portions(messages, min(room, self.portion_tokens or room), self.counter)

    def _extended(self, existing: str, portion: Sequence[BaseMessage]) -> SummaryEffects[str]:
        most = max(1, int(self.budget.max_summary_tokens * WORDS_PER_TOKEN))
        shown = existing if self.portion_tokens is None else ""
        prompt = self.prompts.messages(portion, shown, min(most, words_for(portion, shown)))
        summary = summary_in((yield Ask(self.model, prompt)))
        if not summary:
            raise ValueError("the model returned an empty summary")
        if self.portion_tokens is not None:
            summary = f"{existing}\n{summary}" if existing else summary
        if not self.is_too_long(summary):
            return summary
        # A model that reads portions is a small one: what it writes shorter may lose nearly all.
        if self.portion_tokens is not None:
            return self.cut(summary)
        reply = yield Ask(self.model, shorter(summary, most))
        again = summary_in(reply) or summary
        if not self.is_too_long(again):
            return again
        share = self.budget.max_summary_tokens
        logger.info("a summary was longer than its %d tokens even when asked again: it is cut", share)
        return self.cut(min(again, summary, key=len))


def fresh(leaving: Sequence[BaseMessage], running: RunningSummary | None) -> list[BaseMessage]:
    """Return what leaves and is in no summary yet: one that a client sent again is not new."""
    summarized = running.summarized_message_ids if running else set()
    return [message for message in leaving if message.id not in summarized]
