"""Summarizing what no longer fits: one conversation in, what the model is to see of it out."""

import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate

from memory.context.budget import Budget, choose_cut, fit, shorten, shorten_text
from memory.context.running_summary import (
    SUMMARY_ID,
    DividedMessages,
    RunningSummary,
    WrittenSummary,
    divide,
    rehydrate,
    still_leaving,
    summary_text,
    written_summary,
)
from memory.context.summary_prompt import WORDS_PER_TOKEN, SummaryPrompts, portions, shorter, summary_in, words_for
from memory.context.tokens import TokenCounter, shared_counter
from memory.effects import Ask, tolerated

logger = logging.getLogger(__name__)

FlushHook = Callable[[list[BaseMessage]], Awaitable[None] | None]
"""Takes exactly the messages that are about to leave; returns at once. It may be a coroutine function."""


@dataclass(frozen=True, slots=True)
class Flush:
    """The effect of calling the hook with the messages that are about to leave; nothing is sent back."""

    hook: FlushHook
    messages: list[BaseMessage]


PreparedSummary = Callable[[], Awaitable[WrittenSummary | None] | WrittenSummary | None]
"""Returns the summary that was written ahead of time, if there is one; it may be a coroutine function."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """The effect of looking for a summary that was written ahead of time; it is sent back, or `None`."""

    source: PreparedSummary


T = TypeVar("T")
SummaryEffects = Generator[Ask | Flush | Fetch, Any, T]
"""Asks a model, is sent its reply's text, calls the flush hook, and looks for a summary written ahead of time."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What one summarization did: messages summarized, and tokens of the view before, after, and of the summary.

    `ready` says that the summary had been written ahead of time, so that nobody waited for a model.
    """

    messages: int
    tokens_before: int
    tokens_after: int
    summary_tokens: int
    ready: bool = False


@dataclass
class SummarizationResult:
    """What came of a conversation.

    Attributes:
        messages: What the model is to see: leading system messages, the summary's message, the rest. They fit the
            budget; where a message had to be shortened for that, this is a copy and the conversation has the original.
        running_summary: What to hand in next time; `None` as long as nothing was summarized.
        cut: What was summarized just now; `None` if nothing was.
        failed: Whether a summary was due and there is none, because the model or the hook failed.
        unflushed: The summary that exists though the hook failed.
    """

    messages: list[BaseMessage]
    running_summary: RunningSummary | None = None
    cut: Cut | None = None
    failed: bool = False
    unflushed: WrittenSummary | None = None


@dataclass(frozen=True, slots=True)
class _Measured:
    """A conversation and its tokens: of each live message, of the system message, and of that with the summary."""

    conversation: DividedMessages
    running: RunningSummary | None
    counts: list[int]
    system: int
    beside: int

    @property
    def tokens(self) -> int:
        return sum(self.counts)

    @property
    def existing(self) -> str:
        return self.running.summary if self.running else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarizer:
    """The decisions of the context tier, which yield the calls of model and hook as effects.

    Attributes:
        model: Writes the summaries.
        budget: What fits, and how far a cut goes down.
        counter: Counts messages.
        prompts: The words of a summary call.
        final_prompt: A template for the resulting messages, with the placeholders `system_message`, `summary` and
            `messages` as langmem takes it; `None` puts the summary into a system message.
        portion_tokens: Summarize so many tokens of messages in one call, each portion for itself, and join what comes
            of it to the existing summary; `None` has the existing summary rewritten.
        memory_flush_hook: Is given the messages that are about to leave, when their summary exists.
        prepared_summary: Is asked for a summary that `prepare` wrote, when one is due.

    Raises:
        ValueError: If `portion_tokens` cannot be meant.
    """

    model: LanguageModelLike
    budget: Budget
    counter: TokenCounter = field(default_factory=shared_counter)
    prompts: SummaryPrompts = field(default_factory=SummaryPrompts)
    final_prompt: ChatPromptTemplate | None = None
    portion_tokens: int | None = None
    memory_flush_hook: FlushHook | None = None
    prepared_summary: PreparedSummary | None = None

    def __post_init__(self) -> None:
        if self.portion_tokens is not None and self.portion_tokens < 1:
            raise ValueError(f"portion_tokens must be at least 1, not {self.portion_tokens!r}")

    def summarize(
        self,
        messages: Sequence[BaseMessage],
        running_summary: object,
        *,
        has_failed: bool = False,
        kept: object = None,
    ) -> SummaryEffects[SummarizationResult]:
        """Summarize what no longer fits. A failure of model or hook changes nothing but this one view.

        Args:
            messages: The conversation, oldest first.
            running_summary: The running summary, in whatever form a state holds it.
            has_failed: Whether the turn's summary failed already: then nobody is asked again, and the oldest are
                left out of the view.
            kept: The result's `unflushed` of an earlier turn: the hook is asked before a model is.

        Raises:
            ValueError: If a message that no summary stands for has no id.
        """
        measured = self._measured(messages, running_summary)
        conversation, running = measured.conversation, measured.running
        if not self.budget.is_exceeded(messages=measured.tokens, beside=measured.beside):
            return SummarizationResult(self._composed(conversation, running, conversation.live), running)
        leaving = choose_cut(conversation.live, measured.counts, self.budget.keep(measured.system))
        written: WrittenSummary | None = None
        if leaving and not has_failed:
            again = still_leaving(kept, measured.existing, conversation.live)
            with tolerated(logger, "%d messages not summarized this time", len(leaving)):
                ahead = None if again else (yield from self._ahead(measured, leaving))
                cut, summary = again or ahead or (leaving, "")
                gone = [conversation.live[index] for index in cut]
                summary = summary or (yield from self._written(_fresh(gone, running), measured.existing))
                written = written_summary(summary, measured.existing, gone)
                drop = again is not None  # what was said since may not fit beside it
                result = yield from self._summarized(measured, cut, summary, drop=drop)
                if ahead and result.cut:
                    result.cut = replace(result.cut, ready=True)
                return result
        view = self._fitting(conversation, running, drop=bool(leaving))
        return SummarizationResult(view, running, failed=bool(leaving), unflushed=written)

    def leaves_soon(self, messages: Sequence[BaseMessage], running_summary: object, share: float) -> list[BaseMessage]:
        """Return the messages that the next cut will take, as far as they are known; empty if it is too early to say.

        Args:
            messages: The conversation, oldest first.
            running_summary: The running summary, in whatever form a state holds it.
            share: While less than this share of the budget is there, it is too early.
        """
        measured = self._measured(messages, running_summary)
        keep = self.budget.keep_ahead(share, system=measured.system, messages=measured.tokens, beside=measured.beside)
        if keep is None:
            return []
        live = measured.conversation.live
        return [live[index] for index in choose_cut(live, measured.counts, keep)]

    def prepare(self, leaving: Sequence[BaseMessage], running_summary: object) -> SummaryEffects[WrittenSummary]:
        """Write the summary that the next cut will need, before it is due.

        Args:
            leaving: What `leaves_soon` returned.
            running_summary: The running summary, in whatever form a state holds it.

        Returns:
            What `prepared_summary` is to return when the cut is due.

        Raises:
            Exception: Whatever the model raises; `ValueError` if the summary is empty.
        """
        running = rehydrate(running_summary)
        existing = running.summary if running else ""
        summary = yield from self._written(_fresh(leaving, running), existing)
        return written_summary(summary, existing, leaving)

    def _measured(self, messages: Sequence[BaseMessage], running_summary: object) -> _Measured:
        running = rehydrate(running_summary)
        conversation = divide(messages, running)
        counts = self.counter.each(conversation.live, identified=True)
        system = self.counter(conversation.system)
        return _Measured(conversation, running, counts, system, system + self._summary_tokens(running))

    def _ahead(self, measured: _Measured, leaving: Sequence[int]) -> SummaryEffects[tuple[list[int], str] | None]:
        """Return where the messages of a prepared summary stand, and the summary; `None` unless it can be used.

        It stands for the first of the messages that leave, and the rest fits beside it.
        """
        record = (yield Fetch(self.prepared_summary)) if self.prepared_summary else None
        found = still_leaving(record, measured.existing, measured.conversation.live)
        if found is None:
            return None
        places, summary = found
        rest = measured.tokens - sum(measured.counts[at] for at in places)
        fits = rest + measured.system + self._text_tokens(summary) <= self.budget.max_tokens
        is_usable = fits and places == [*leaving[: len(places)]] and not self._is_too_long(summary)
        return found if is_usable else None

    def whole(self, messages: Sequence[BaseMessage], running: RunningSummary) -> list[BaseMessage]:
        """Return the messages of a state with the summary in place of those it stands for, nothing shortened."""
        conversation = divide(messages, running)
        return self._composed(conversation, running, conversation.live)

    def _summarized(
        self, measured: _Measured, leaving: Sequence[int], summary: str, *, drop: bool
    ) -> SummaryEffects[SummarizationResult]:
        conversation, running = measured.conversation, measured.running
        fresh = _fresh([conversation.live[index] for index in leaving], running)
        if fresh and self.memory_flush_hook:
            yield Flush(self.memory_flush_hook, fresh)
        extended = conversation.summarized(running, summary, leaving)
        absent = set(leaving)
        stay = tuple(message for index, message in enumerate(conversation.live) if index not in absent)
        view = self._fitting(DividedMessages(conversation.system, stay), extended, drop=drop)
        before = measured.tokens + measured.beside
        cut = Cut(len(fresh), before, self.counter(view), self._summary_tokens(extended))
        logger.info("summarized %d messages: %d tokens before, %d after", cut.messages, before, cut.tokens_after)
        return SummarizationResult(view, extended, cut)

    def _written(self, messages: Sequence[BaseMessage], existing: str) -> SummaryEffects[str]:
        """Return the summary that the model writes, portion by portion, within its share of the budget."""
        room = self.budget.room(self.budget.max_summary_tokens)
        if self.portion_tokens is None:
            for portion in portions(messages, room, self.counter):
                existing = yield from self._asked(portion, existing)
                if self._is_too_long(existing):
                    existing = yield from self._shorter(existing, self._max_words)
        else:
            for portion in portions(messages, min(room, self.portion_tokens), self.counter):
                part = yield from self._asked(portion, "")
                existing = f"{existing}\n{part}" if existing else part
                if self._is_too_long(existing):  # down to half, so that not every portion asks for it
                    existing = yield from self._shorter(existing, self._max_words // 2)
        return existing

    def _asked(self, portion: Sequence[BaseMessage], existing: str) -> SummaryEffects[str]:
        max_words = min(self._max_words, words_for(portion, existing))
        reply = yield Ask(self.model, self.prompts.messages(portion, existing, max_words))
        summary = summary_in(reply)
        if not summary:
            raise ValueError("the model returned an empty summary")
        return summary

    @property
    def _max_words(self) -> int:
        return max(1, int(self.budget.max_summary_tokens * WORDS_PER_TOKEN))

    def _is_too_long(self, summary: str) -> bool:
        return self._text_tokens(summary) > self.budget.max_summary_tokens

    def _shorter(self, summary: str, max_words: int) -> SummaryEffects[str]:
        reply = yield Ask(self.model, shorter(summary, max_words))
        again = summary_in(reply) or summary
        if not self._is_too_long(again):
            return again
        share = self.budget.max_summary_tokens
        logger.info("a summary was longer than its %d tokens even when asked again: it is cut", share)
        return self._cut(min(again, summary, key=len))

    def _cut(self, summary: str) -> str:
        room = self.budget.max_summary_tokens - self._text_tokens("")
        return shorten_text(summary, max(1, room), self.counter)

    def _fitting(
        self, conversation: DividedMessages, running: RunningSummary | None, *, drop: bool
    ) -> list[BaseMessage]:
        if running and self._is_too_long(running.summary):  # it was made when its share was larger
            running = replace(running, summary=self._cut(running.summary))
        summary = self._summary_tokens(running)
        system = [*conversation.system]
        half = (self.budget.max_tokens - summary) // 2
        if self.counter(system) > half:
            logger.warning("a system message takes more than half of %d tokens", self.budget.max_tokens)
            system = [shorten(message, half // len(system), self.counter) for message in system]
            counts = self.counter.each(system)
            while len(system) > 1 and sum(counts) > half:  # the oldest go, but not the last one
                system, counts = system[1:], counts[1:]
        room = self.budget.room(self.counter(system) + summary)
        live = fit(conversation.live, room, self.counter, drop=drop)
        return self._composed(DividedMessages(tuple(system), ()), running, live)

    def _composed(
        self, conversation: DividedMessages, running: RunningSummary | None, live: Sequence[BaseMessage]
    ) -> list[BaseMessage]:
        if running is None:
            return [*conversation.system, *live]
        if self.final_prompt is None:
            summary = SystemMessage(summary_text(running.summary), id=SUMMARY_ID)
            return [*conversation.system, summary, *live]
        values = {"system_message": [*conversation.system], "summary": running.summary, "messages": [*live]}
        given = {id(message) for message in (*conversation.system, *live)}
        # What the template adds gets the id by which the next summary takes its place.
        return [
            message if id(message) in given or message.id else message.model_copy(update={"id": SUMMARY_ID})
            for message in self.final_prompt.invoke(values).to_messages()
        ]

    def _summary_tokens(self, running: RunningSummary | None) -> int:
        return self._text_tokens(running.summary) if running else 0

    def _text_tokens(self, summary: str) -> int:
        return self.counter(self._composed(DividedMessages((), ()), RunningSummary(summary, set(), None), ()))


def _fresh(leaving: Sequence[BaseMessage], running: RunningSummary | None) -> list[BaseMessage]:
    """Return what leaves and is in no summary yet: one that a client sent again is not new."""
    summarized = running.summarized_message_ids if running else set()
    return [message for message in leaving if message.id not in summarized]
