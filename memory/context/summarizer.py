"""What is due for a summary, what is cut, and what is shown: decisions, which yield the calls of model and hook."""

import functools
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig

from memory import prompts
from memory.context.budget import Budget, choose_cut, fit, newest_question, shorten, shorten_text, units
from memory.context.effects import (
    Call,
    FlushHook,
    PreparedSummary,
    SoFar,
    SummaryEffects,
    async_summary_handlers,
    summary_handlers,
)
from memory.context.left_out import NOTHING_LEFT_OUT, LeftOut
from memory.context.running_summary import (
    SUMMARY_ID,
    DividedMessages,
    RunningSummary,
    WrittenSummary,
    divide,
    rehydrate,
    summary_text,
)
from memory.context.summary_prompt import WORDS_PER_TOKEN, SummaryPrompts, in_portions, summary_in
from memory.context.tokens import TokenCounter, shared_counter
from memory.door import Ask, aperform, perform, tolerated
from memory.text import digest, without_middle

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
        left_out: The messages that `messages` leaves out though no summary stands for them.
        handed_over: The messages that the hook was given though no summary stands for them yet.
    """

    messages: list[BaseMessage]
    running_summary: RunningSummary | None = None
    cut: Cut | None = None
    failed: bool = False
    left_out: LeftOut = NOTHING_LEFT_OUT
    handed_over: LeftOut = NOTHING_LEFT_OUT


def _result(
    talk: DividedMessages,
    view: list[BaseMessage],
    left_out: Collection[str | None],
    handed: Collection[str | None],
) -> SummarizationResult:
    left, given = LeftOut.of(talk.live, left_out), LeftOut.of(talk.live, handed)
    return SummarizationResult(view, talk.running, left_out=left, handed_over=given)


@dataclass(frozen=True, slots=True)
class Measured:
    """A conversation and its tokens.

    Attributes:
        talk: The conversation.
        counts: Tokens of each live message.
        system: Tokens of the system messages.
        beside: Tokens of system messages and summary.
        handed: Ids of live messages that the hook was given already.
    """

    talk: DividedMessages
    counts: list[int]
    system: int
    beside: int
    handed: Collection[str | None]

    def ids(self, places: Iterable[int]) -> set[str | None]:
        """Return the ids of live messages."""
        return {self.talk.live[at].id for at in places}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarizer:
    """Keeps a conversation within a budget. `summarize_messages` says what its choices mean.

    Raises:
        ValueError: If `portion_tokens` cannot be meant.
    """

    model: LanguageModelLike
    budget: Budget
    prompts: SummaryPrompts = field(default_factory=SummaryPrompts)
    counter: TokenCounter = field(default_factory=shared_counter)
    final_prompt: ChatPromptTemplate | None = None
    portion_tokens: int | None = None
    memory_flush_hook: FlushHook | None = None
    prepared_summary: PreparedSummary | None = None

    def __post_init__(self) -> None:
        if self.portion_tokens is not None and self.portion_tokens < 1:
            raise ValueError(f"portion_tokens must be at least 1, not {self.portion_tokens!r}")

    def measured(
        self, messages: Sequence[BaseMessage], running_summary: object, handed_over: object = None
    ) -> Measured:
        """Return a conversation, oldest message first, with its tokens; the others as a state has them."""
        talk = divide(messages, rehydrate(running_summary))
        system = self.counter(talk.system) if talk.system else 0
        beside = system + self.summary_tokens(talk.running.summary) if talk.running else system
        handed = LeftOut.from_state(handed_over).among(talk.live) if handed_over else ()
        return Measured(talk, self.counter.each(talk.live), system, beside, handed)

    def result(
        self, now: Measured, config: RunnableConfig | None = None, *, waits: bool = True, has_failed: bool = False
    ) -> SummarizationResult:
        """Return what comes of a conversation: itself, or where it is time to cut, what `summarize` makes of it."""
        if not self.budget.is_exceeded(messages=sum(now.counts), beside=now.beside):
            return _result(now.talk, self.composed(now.talk), (), now.handed)
        return perform(self.summarize(now, waits=waits, has_failed=has_failed), summary_handlers(config))

    async def aresult(
        self, now: Measured, config: RunnableConfig | None = None, *, waits: bool = True, has_failed: bool = False
    ) -> SummarizationResult:
        """Do what `result` does without blocking the event loop."""
        if not self.budget.is_exceeded(messages=sum(now.counts), beside=now.beside):
            return _result(now.talk, self.composed(now.talk), (), now.handed)
        return await aperform(self.summarize(now, waits=waits, has_failed=has_failed), async_summary_handlers(config))

    def summarize(self, now: Measured, *, waits: bool, has_failed: bool) -> SummaryEffects[SummarizationResult]:
        """Summarize what no longer fits. A failure of model or hook changes nothing but this one view.

        The hook is given each message once, before it leaves: with its summary, or, where nobody waits for that, when
        the view first leaves it out. Then the summary that takes it in later does not give it to the hook again, and no
        view shows it again unless all messages fit. What a failing hook was given counts as not given.

        Args:
            now: The conversation.
            waits: Whether a model may be asked. If not, the view leaves out as much as a cut would take, with whole
                exchanges, until a prepared summary stands for it: so the next views begin as this one does, and a
                provider's cache of the prompt holds.
            has_failed: Whether the turn's summary failed already: then nobody is asked again.
        """
        leaving = self._leaving(now, waits=waits)
        is_due = bool(leaving) or not waits
        if is_due and not has_failed:
            with tolerated(logger, "%d messages not summarized this time", len(leaving)):
                return (yield from self._cut(now, leaving, waits=waits))
        view, left_out = self.view(now.talk, now.handed, now.ids(leaving))
        return replace(_result(now.talk, view, left_out, now.handed), failed=is_due)

    def _leaving(self, now: Measured, *, waits: bool) -> list[int]:
        """Return the places of the live messages that are to leave; none where shortening others does as well."""
        live, keep = now.talk.live, self.budget.keep(now.system)
        leaving = choose_cut(live, now.counts, keep)
        if waits and not leaving and self.view(now.talk)[1]:
            # Tool calls cannot be shortened: what goes for their sake is worth a summary, however little.
            return choose_cut(live, now.counts, replace(keep, least_cut=0))
        return leaving

    def _cut(self, now: Measured, leaving: Sequence[int], *, waits: bool) -> SummaryEffects[SummarizationResult]:
        """Put a summary in the place of what leaves, or as much of it as one that was written ahead stands for."""
        talk, done = now.talk, None
        prepared = (yield Call(self.prepared_summary)) if leaving and self.prepared_summary else None
        cut, summary = self._usable(now, prepared, leaving, waits=waits)
        is_ready = bool(cut)
        if waits and not cut:
            cut, summary = leaving, talk.summary
            for portion in self._portions(talk.fresh(now.ids(cut))):
                summary = yield from self._extended(summary, portion)
        after = talk.summarized(summary, cut) if cut else talk
        view, left_out = self.view(after, now.handed, now.ids(leaving))
        gone = now.ids(cut) | (set() if waits else left_out)
        new = talk.fresh(gone.difference(now.handed))
        if new and self.memory_flush_hook:
            yield Call(self.memory_flush_hook, (new,))
        if cut:
            taken, before = len(talk.fresh(now.ids(cut))), sum(now.counts) + now.beside
            done = Cut(taken, before, self.counter(view), self.summary_tokens(summary), is_ready)
            logger.info("summarized %d messages: %d tokens before, %d after", taken, before, done.tokens_after)
        return replace(_result(after, view, left_out, gone.union(now.handed)), cut=done)

    def _usable(
        self, now: Measured, prepared: object, leaving: Sequence[int], *, waits: bool
    ) -> tuple[Sequence[int], str]:
        """Return where the messages of a prepared summary stand, and its text; nothing if it is of no use.

        It stands for the first of the messages that leave, and the rest fits beside it; or nobody waits for a better.
        """
        if not isinstance(prepared, dict):
            return (), ""
        places, summary = leaving[: len(prepared["ids"])], prepared["summary"]
        if not places or prepared != written_summary(summary, now.talk.summary, [now.talk.live[at] for at in places]):
            return (), ""
        tokens = self.summary_tokens(summary)
        rest = sum(now.counts) - sum(now.counts[at] for at in places)
        fits = not waits or rest + now.system + tokens <= self.budget.max_tokens
        return (places, summary) if fits and tokens <= self.budget.max_summary_tokens else ((), "")

    def view(
        self, talk: DividedMessages, *without: Collection[str | None]
    ) -> tuple[list[BaseMessage], set[str | None]]:
        """Return a view within the budget, and the ids of the live messages that it leaves out.

        Args:
            talk: What it is made of.
            without: Ids of what is left out while not all fit, one collection after another; an answer goes with its
                question. The longest of what stays are shortened.
        """
        budget, counter, running = self.budget, self.counter, talk.running
        if running and self.summary_tokens(running.summary) > budget.max_summary_tokens:
            running = replace(running, summary=self.shortened(running.summary))  # its share was larger once
        summary = self.summary_tokens(running.summary) if running else 0
        system, half = [*talk.system], (budget.max_tokens - summary) // 2
        if counter(system) > half:
            logger.warning("system messages take more than half of %d tokens: they are shortened", budget.max_tokens)
            whole = SystemMessage("\n\n".join(message.text for message in system), id=system[-1].id)
            system = [shorten(whole, half, counter)]
        room = budget.room(counter(system) + summary)
        live = [*talk.live]
        newest = newest_question(units(live, counter.each(live)))
        asked = {live[at].id for at in newest.places} if newest else set()
        for gone in without:
            if counter(live) > room:
                live = [message for message in live if message.id not in gone or message.id in asked]
        if len(live) < len(talk.live):
            live = live[next((unit.places.start for unit in units(live, counter.each(live)) if unit.asks), 0) :]
        live = fit(live, room, counter, drop=False)
        left_out = {message.id for message in talk.live} - {message.id for message in live}
        return self.composed(replace(talk, system=tuple(system), live=tuple(live), running=running)), left_out

    def composed(self, talk: DividedMessages) -> list[BaseMessage]:
        """Return system messages, the summary's message and live messages, whatever fits."""
        if talk.running is None:
            return [*talk.system, *talk.live]
        if self.final_prompt is None:
            return [*talk.system, _summary_message(talk.running.summary).model_copy(), *talk.live]
        values = {"system_message": [*talk.system], "summary": talk.summary, "messages": [*talk.live]}
        given = {id(message) for message in (*talk.system, *talk.live)}
        # What the template adds gets the id by which the next summary takes its place.
        return [
            message if id(message) in given or message.id else message.model_copy(update={"id": SUMMARY_ID})
            for message in self.final_prompt.invoke(values).to_messages()
        ]

    def summary_tokens(self, summary: str) -> int:
        """Return the tokens that a summary takes in a view."""
        if self.final_prompt is None:
            return self.counter.message(_summary_message(summary))
        return self.counter(self.composed(DividedMessages(running=RunningSummary(summary))))

    def shortened(self, summary: str) -> str:
        """Return the summary within its share, its middle left out."""
        return shorten_text(summary, max(1, self.budget.max_summary_tokens - self.summary_tokens("")), self.counter)

    def leaves_soon(self, messages: Sequence[BaseMessage], running_summary: object, share: float) -> list[BaseMessage]:
        """Return the messages that the next cut will take, as far as they are known; empty if it is too early to say.

        Args:
            messages: The conversation, oldest first.
            running_summary: The running summary, in whatever form a state holds it.
            share: While less than this share of the budget is there, it is too early.
        """
        now = self.measured(messages, running_summary)
        keep = self.budget.keep_ahead(share, system=now.system, messages=sum(now.counts), beside=now.beside)
        live = now.talk.live
        return [live[index] for index in choose_cut(live, now.counts, keep, ahead=True)] if keep else []

    def prepare(
        self,
        leaving: Sequence[BaseMessage],
        running_summary: object,
        begun: WrittenSummary | None = None,
        so_far: SoFar = lambda _: True,
    ) -> SummaryEffects[WrittenSummary]:
        """Write the summary that the next cut will need, before it is due; `SummarizationNode.prepare` says how."""
        if begun and len(begun["ids"]) >= len(leaving):
            return begun
        running = rehydrate(running_summary)
        existing = running.summary if running else ""
        done, summary = (len(begun["ids"]), begun["summary"]) if begun else (0, existing)
        summarized = running.summarized_message_ids if running else ()
        ends = {unit.places.stop for unit in units(leaving, self.counter.each(leaving))}
        places = {message.id: at for at, message in enumerate(leaving)}
        for portion in self._portions([one for one in leaving[done:] if one.id not in summarized]):
            summary = yield from self._extended(summary, portion)
            end = places[portion[-1].id] + 1
            # A cut never comes between a call of a tool and its result.
            if end in ends and not so_far(part := written_summary(summary, existing, leaving[:end])):
                return part
        return written_summary(summary, existing, leaving)

    def _portions(self, messages: Sequence[BaseMessage]) -> Iterator[list[BaseMessage]]:
        room = self.budget.room(self.budget.max_summary_tokens)
        return in_portions(messages, min(room, self.portion_tokens or room), self.counter)

    def _extended(self, existing: str, portion: Sequence[BaseMessage]) -> SummaryEffects[str]:
        share = self.budget.max_summary_tokens
        most = max(1, int(share * WORDS_PER_TOKEN))
        shown = existing if self.portion_tokens is None else ""
        summary = summary_in((yield Ask(self.model, self.prompts.messages(portion, shown, most))))
        if not summary:
            raise ValueError("the model returned an empty summary")
        # A model that reads portions is a small one: what it writes shorter may lose nearly all.
        if self.portion_tokens is not None:
            summary = f"{existing}\n{summary}" if existing else summary
        elif self.summary_tokens(summary) > share:
            words = prompts.SHORTER_SUMMARY.replace("{max_words}", str(most)).replace("{summary}", summary)
            reply = yield Ask(self.model, [HumanMessage(words)])
            summary = min(summary_in(reply) or summary, summary, key=self.summary_tokens)
        return summary if self.summary_tokens(summary) <= share else self.shortened(summary)


def written_summary(summary: str, existing: str, messages: Sequence[BaseMessage]) -> WrittenSummary:
    """Return a summary as plain data, with what tells later whether it still stands for the same.

    Args:
        summary: The new summary.
        existing: The one before it, which went into it.
        messages: What else went into it.
    """
    said = (part for message in messages for part in (str(message.id), without_middle(message.text)))
    return {"summary": summary, "ids": [message.id for message in messages], "of": digest(existing, *said)}


@functools.lru_cache(maxsize=128)
def _summary_message(summary: str) -> SystemMessage:
    # To make a message takes ten times as long as to copy one, and a thread's summary is the same for many turns.
    return SystemMessage(summary_text(summary), id=SUMMARY_ID)
