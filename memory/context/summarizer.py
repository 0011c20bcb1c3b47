"""Summarizing what no longer fits: one conversation in, what the model is to see of it out."""

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.messages import BaseMessage

from memory.context.budget import choose_cut
from memory.context.effects import Fetch, Flush, FlushHook, PreparedSummary, SummaryEffects
from memory.context.left_out import LeftOut
from memory.context.running_summary import (
    DividedMessages,
    RunningSummary,
    WrittenSummary,
    divide,
    rehydrate,
    still_leaving,
    written_summary,
)
from memory.context.view import Without
from memory.context.writer import SummaryWriter, fresh
from memory.effects import tolerated

logger = logging.getLogger(__name__)


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
        left_out: The messages that `messages` leaves out though no summary stands for them.
        handed_over: The messages that the hook was given though no summary stands for them yet.
    """

    messages: list[BaseMessage]
    running_summary: RunningSummary | None = None
    cut: Cut | None = None
    failed: bool = False
    unflushed: WrittenSummary | None = None
    left_out: LeftOut = field(default_factory=LeftOut)
    handed_over: LeftOut = field(default_factory=LeftOut)


@dataclass(frozen=True, slots=True)
class _Measured:
    """A conversation and its tokens: of each live message, of the system message, and of that with the summary."""

    conversation: DividedMessages
    running: RunningSummary | None
    summary: list[BaseMessage]
    counts: list[int]
    system: int
    beside: int

    @property
    def live(self) -> tuple[BaseMessage, ...]:
        return self.conversation.live

    @property
    def tokens(self) -> int:
        return sum(self.counts)

    def ids(self, places: Iterable[int]) -> set[str | None]:
        return {self.live[at].id for at in places}

    @property
    def existing(self) -> str:
        return self.running.summary if self.running else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarizer(SummaryWriter):
    """The decisions of the context tier, which yield the calls of model and hook as effects.

    Attributes:
        memory_flush_hook: Is given the messages that are about to leave, when their summary exists.
        prepared_summary: Is asked for a summary that `prepare` wrote, when one is due.
    """

    memory_flush_hook: FlushHook | None = None
    prepared_summary: PreparedSummary | None = None

    def summarize(
        self,
        messages: Sequence[BaseMessage],
        running_summary: object,
        *,
        waits: bool = True,
        has_failed: bool = False,
        kept: object = None,
        handed_over: object = None,
    ) -> SummaryEffects[SummarizationResult]:
        """Summarize what no longer fits. A failure of model or hook changes nothing but this one view.

        The hook is given each message once, before it leaves: with its summary, or, where nobody waits for that, when
        the view first leaves it out. Then the summary that takes it in later does not give it to the hook again, and no
        view shows it again unless all messages fit. What a failing hook was given counts as not given.

        Args:
            messages: The conversation, oldest first.
            running_summary: The running summary, in whatever form a state holds it.
            waits: Whether a model may be asked. If not, the view leaves out as much as a cut would take, with whole
                exchanges, until a prepared summary stands for it: so the next views begin as this one does, and a
                provider's cache of the prompt holds.
            has_failed: Whether the turn's summary failed already: then nobody is asked again, and the oldest are
                left out of the view.
            kept: The result's `unflushed` of an earlier turn: the hook is asked before a model is.
            handed_over: The last result's `handed_over`, as a state holds it.
        """
        measured = self._measured(messages, running_summary)
        conversation, running, live = measured.conversation, measured.running, measured.live
        handed = LeftOut.from_state(handed_over).among(live)
        if not self.budget.is_exceeded(messages=measured.tokens, beside=measured.beside):
            return _result(
                live, (), handed, self.composed(conversation.system, running, live, measured.summary), running
            )
        keep = self.budget.keep(measured.system)
        leaving, shown = choose_cut(live, measured.counts, keep), None
        if waits and not leaving:
            shown = self.fitting(conversation, running, drop=False)
            if shown[1]:  # tool calls cannot be shortened: what goes for their sake is worth a summary, however little
                leaving, shown = choose_cut(live, measured.counts, replace(keep, least_cut=0)), None
        without = None if waits else Without(handed, measured.ids(leaving))
        written: WrittenSummary | None = None
        if (leaving or not waits) and not has_failed:
            with tolerated(logger, "%d messages not summarized this time", len(leaving)):
                there = yield from self._there(measured, leaving, kept, waits)
                if there is None and not waits:
                    view, left_out = self.fitting(conversation, running, drop=bool(leaving), without=without)
                    handed = yield from self._handed(measured, left_out, handed)
                    return _result(live, left_out, handed, view, running)
                cut, summary, ready = there or (leaving, "", False)
                gone = [live[index] for index in cut]
                summary = summary or (yield from self.written(fresh(gone, running), measured.existing))
                written = written_summary(summary, measured.existing, gone)
                drop = bool(there) or not waits  # what was said since may not fit beside it
                return (yield from self._summarized(measured, cut, summary, handed, without, drop=drop, ready=ready))
        view, left_out = shown or self.fitting(conversation, running, drop=bool(leaving), without=without)
        failed = bool(leaving) or not waits
        return replace(_result(live, left_out, handed, view, running), failed=failed, unflushed=written)

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
        return [measured.live[index] for index in choose_cut(measured.live, measured.counts, keep, ahead=True)]

    def _measured(self, messages: Sequence[BaseMessage], running_summary: object) -> _Measured:
        running = rehydrate(running_summary)
        conversation = divide(messages, running)
        counts = self.counter.each(conversation.live)
        system = self.counter(conversation.system)
        summary = self.summary(running)
        return _Measured(conversation, running, summary, counts, system, system + self.counter(summary))

    def _there(
        self, measured: _Measured, leaving: Sequence[int], kept: object, waits: bool
    ) -> SummaryEffects[tuple[list[int], str, bool] | None]:
        """Return a summary that exists: where its messages stand, its text, and whether it was written ahead.

        One that was written ahead stands for the first of the messages that leave, and the rest fits beside it; or
        nobody waits for a better.
        """
        if not leaving:
            return None
        if again := still_leaving(kept, measured.existing, measured.live):
            return *again, False
        record = (yield Fetch(self.prepared_summary)) if self.prepared_summary else None
        found = still_leaving(record, measured.existing, measured.live)
        if found is None:
            return None
        places, summary = found
        rest = measured.tokens - sum(measured.counts[at] for at in places)
        fits = rest + measured.system + self.text_tokens(summary) <= self.budget.max_tokens
        is_usable = (fits or not waits) and places == [*leaving[: len(places)]] and not self.is_too_long(summary)
        return (*found, True) if is_usable else None

    def whole(self, messages: Sequence[BaseMessage], running: RunningSummary) -> list[BaseMessage]:
        """Return the messages of a state with the summary in place of those it stands for, nothing shortened."""
        conversation = divide(messages, running)
        return self.composed(conversation.system, running, conversation.live)

    def _summarized(
        self,
        measured: _Measured,
        cut: Sequence[int],
        summary: str,
        handed: Collection[str | None],
        without: Without | None,
        *,
        drop: bool,
        ready: bool,
    ) -> SummaryEffects[SummarizationResult]:
        conversation, running, live = measured.conversation, measured.running, measured.live
        extended = conversation.summarized(running, summary, cut)
        absent = set(cut)
        stay = DividedMessages(conversation.system, tuple(one for at, one in enumerate(live) if at not in absent))
        view, left_out = self.fitting(stay, extended, drop=drop, without=without)
        gone = measured.ids(cut)
        handed = yield from self._handed(measured, gone | left_out if without else gone, handed)
        number = len(fresh([live[at] for at in cut], running))
        tokens = measured.tokens + measured.beside
        done = Cut(number, tokens, self.counter(view), self.summary_tokens(extended), ready)
        logger.info("summarized %d messages: %d tokens before, %d after", number, tokens, done.tokens_after)
        return replace(_result(stay.live, left_out, handed, view, extended), cut=done)

    def _handed(
        self, measured: _Measured, leaving: Collection[str | None], handed: Collection[str | None]
    ) -> SummaryEffects[set[str | None]]:
        """Give the hook the messages with these ids that it was not given before, and return all that it was given."""
        new = [one for one in fresh(measured.live, measured.running) if one.id in leaving and one.id not in handed]
        if new and self.memory_flush_hook:
            yield Flush(self.memory_flush_hook, new)
        return {*handed, *leaving}


def _result(
    live: Sequence[BaseMessage],
    left_out: Collection[str | None],
    handed: Collection[str | None],
    view: list[BaseMessage],
    running: RunningSummary | None,
) -> SummarizationResult:
    left, given = LeftOut.of(live, left_out), LeftOut.of(live, handed)
    return SummarizationResult(view, running, left_out=left, handed_over=given)
