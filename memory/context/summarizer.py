"""What is due for a summary, what is cut, and what is shown: decisions, which ask a model and call a hook."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.constants import TAG_NOSTREAM

from memory import prompts
from memory.context.budget import Budget, choose_cut, fit, newest_question, shorten, shorten_text, units
from memory.context.running_summary import (
    HANDED_OVER,
    SUMMARY_ID,
    DividedMessages,
    LeftOut,
    RunningSummary,
    WrittenSummary,
    divide,
    rehydrate,
    summary_text,
)
from memory.context.summary_prompt import WORDS_PER_TOKEN, Prompt, in_portions, prompt_of, summary_in
from memory.context.tokens import MessagesCounter, TokenCounter
from memory.door import in_daemon_thread, tolerated
from memory.model_calls import reason_logged
from memory.text import digest, without_middle

logger = logging.getLogger(__name__)

FlushHook = Callable[[list[BaseMessage]], Awaitable[None] | None]
"""Takes exactly the messages that are about to leave; returns at once. It may be a coroutine function."""

PreparedSummary = Callable[[], Awaitable[WrittenSummary | None] | WrittenSummary | None]
"""Returns the summary that was written ahead of time, if there is one; it may be a coroutine function."""


@dataclass(frozen=True, slots=True)
class Caller:
    """How a model is asked, and a function of the program called.

    Attributes:
        config: The run's.
        is_awaited: Whether coroutines are awaited on the event loop; else all calls block this thread.
    """

    config: RunnableConfig | None = None
    is_awaited: bool = False

    async def ask(self, model: LanguageModelLike, prompt: list[BaseMessage]) -> str:
        """Return the text that a model answers. Its tokens are no part of the answer that a user watches."""
        config = merge_configs(self.config, {"tags": [TAG_NOSTREAM], "run_name": "summarize"})
        with reason_logged(logger, "a summary call"):
            reply = await model.ainvoke(prompt, config) if self.is_awaited else model.invoke(prompt, config)
        return reply.text if isinstance(reply, BaseMessage) else str(reply)

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function, or a coroutine function, returns. The event loop waits for neither."""
        if not self.is_awaited:
            called = function(*arguments)
            if not inspect.isawaitable(called):
                return called

            async def wait() -> Any:
                return await called

            # On another thread, as an event loop may run in this one, and loops cannot be nested.
            return in_daemon_thread(partial(copy_context().run, asyncio.run, wait())).result()
        # An object with an `async def __call__` is no coroutine function: it makes its coroutine on a thread.
        is_coroutine = inspect.iscoroutinefunction(function)
        called = function(*arguments) if is_coroutine else await asyncio.to_thread(function, *arguments)
        return await called if inspect.isawaitable(called) else called


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
    left_out: LeftOut = field(default_factory=LeftOut)
    handed_over: LeftOut = field(default_factory=LeftOut)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarizer(Budget):
    """Keeps a conversation within its budget. `summarize_messages` says what its choices mean.

    `frame` is how many tokens more a summary takes where it is shown in other words than ours.

    Raises:
        ValueError: If `portion_tokens`, or a prompt, cannot be meant.
    """

    model: LanguageModelLike
    token_counter: MessagesCounter | TokenCounter | None = None
    initial_summary_prompt: Prompt = prompts.INITIAL_SUMMARY
    existing_summary_prompt: Prompt = prompts.UPDATE_SUMMARY
    final_prompt: ChatPromptTemplate | None = None
    memory_flush_hook: FlushHook | None = None
    prepared_summary: PreparedSummary | None = None
    frame: int = 0
    counter: TokenCounter = field(init=False)

    def __post_init__(self) -> None:
        Budget.__post_init__(self)
        object.__setattr__(self, "counter", TokenCounter.of(self.token_counter))
        prompt = self.existing_summary_prompt
        if isinstance(prompt, str) and "{existing_summary}" not in prompt:
            raise ValueError("existing_summary_prompt must contain {existing_summary}")

    def measured(self, messages: Sequence[BaseMessage], context: Mapping[str, Any]) -> Measured:
        """Return a conversation, oldest message first, with its tokens, and what a state's `context` says of it."""
        talk = divide(messages, rehydrate(context.get("running_summary")))
        system = self.counter(talk.system) if talk.system else 0
        beside = system + self.summary_tokens(talk.running.summary) if talk.running else system
        handed = LeftOut.from_state(context[HANDED_OVER]).among(talk.live) if HANDED_OVER in context else ()
        return Measured(talk, self.counter.each(talk.live), system, beside, handed)

    async def outcome(
        self, now: Measured, caller: Caller, *, waits: bool = True, has_failed: bool = False
    ) -> SummarizationResult:
        """Return what comes of a conversation: itself, or a summary and what still fits.

        A failure of model or hook changes this one view only. The hook is given each message once, before it leaves:
        with its summary, or, if the turn does not wait for the summary, when the view first leaves the message out. No
        view shows such a message again unless all fit, and its later summary does not give it to the hook again.
        Messages that a failing hook was given are given to it again.

        Args:
            now: The conversation.
            caller: How the model is asked and the hook called.
            waits: Whether a model may be asked. If not, the view leaves out as much as a cut would take, with whole
                exchanges, until a prepared summary stands for it: so the next views begin as this one does, and a
                provider's cache of the prompt holds.
            has_failed: Whether the turn's summary failed already: then nobody is asked again.
        """
        talk, left_out, is_due = now.talk, set[str | None](), False
        if self.is_exceeded(now.counts, now.beside):
            keep = self.keep(now.system)
            leaving = choose_cut(talk.live, self.counter, keep)
            if waits and not leaving and self.view(talk)[1]:
                # Tool calls cannot be shortened: messages that leave to make room for them are summarized, however few.
                leaving = choose_cut(talk.live, self.counter, keep, is_urgent=True)
            is_due = bool(leaving) or not waits
            if is_due and not has_failed:
                with tolerated(logger, "%d messages not summarized this time", len(leaving)):
                    return await self._cut(now, leaving, caller, waits=waits)
            view, left_out = self.view(talk, now.handed, _ids(leaving))
        else:
            view = self.composed(talk)
        left, handed = LeftOut.of(talk.live, left_out), LeftOut.of(talk.live, now.handed)
        return SummarizationResult(view, talk.running, None, is_due, left, handed)

    async def _cut(
        self, now: Measured, leaving: list[BaseMessage], caller: Caller, *, waits: bool
    ) -> SummarizationResult:
        """Put a summary in the place of what leaves, or as much of it as one that was written ahead stands for."""
        talk, done, draft = now.talk, None, Draft(self, now.talk, leaving)
        prepared = (await caller.call(self.prepared_summary)) if leaving and self.prepared_summary else None
        cut, summary = list[BaseMessage](), ""
        if isinstance(prepared, dict) and draft.is_begun_by(prepared):
            part, tokens = leaving[: len(prepared["ids"])], self.summary_tokens(prepared["summary"])
            # It stands for the first of the messages that leave. It is enough if the others fit beside it, or if
            # the turn does not wait for a model.
            fits = not waits or sum(now.counts) - self.counter(part) + now.system + tokens <= self.max_tokens
            if fits and tokens <= self.max_summary_tokens:
                cut, summary = part, prepared["summary"]
        is_ready = bool(cut)
        if waits and not cut:
            cut, summary = leaving, (await draft.write(caller=caller))["summary"]
        after = talk.summarized(summary, cut) if cut else talk
        view, left_out = self.view(after, now.handed, _ids(leaving))
        gone = _ids(cut) | (set() if waits else left_out)
        new = talk.fresh(gone.difference(now.handed))
        if new and self.memory_flush_hook:
            await caller.call(self.memory_flush_hook, new)
        if cut:
            taken, before = len(talk.fresh(_ids(cut))), sum(now.counts) + now.beside
            done = Cut(taken, before, self.counter(view), self.summary_tokens(summary), is_ready)
            logger.info("summarized %d messages: %d tokens before, %d after", taken, before, done.tokens_after)
        left, handed = LeftOut.of(after.live, left_out), LeftOut.of(after.live, gone.union(now.handed))
        return SummarizationResult(view, after.running, done, False, left, handed)

    def view(
        self, talk: DividedMessages, *without: Collection[str | None]
    ) -> tuple[list[BaseMessage], set[str | None]]:
        """Return a view within the budget, and the ids of the live messages that it leaves out.

        Args:
            talk: What it is made of.
            without: Ids of what is left out while not all fit, one collection after another; an answer goes with its
                question. The longest of what stays are shortened.
        """
        counter, running = self.counter, talk.running
        if running:
            running = replace(running, summary=self.shortened(running.summary))  # its share was larger once
        summary = self.summary_tokens(running.summary) if running else 0
        system, half = [*talk.system], (self.max_tokens - summary) // 2
        if counter(system) > half:
            logger.warning("system messages take more than half of %d tokens: shortened", self.max_tokens)
            whole = SystemMessage("\n\n".join(message.text for message in system), id=system[-1].id)
            system = [shorten(whole, half, counter)]
        room = self.room(counter(system) + summary)
        live = [*talk.live]
        newest = newest_question(units(live, counter))
        asked = {live[at].id for at in newest.places} if newest else set()
        for gone in without:
            if counter(live) > room:
                live = [message for message in live if message.id not in gone or message.id in asked]
        if len(live) < len(talk.live):
            live = live[next((unit.places.start for unit in units(live, counter) if unit.asks), 0) :]
        live = fit(live, room, counter, drop=False)
        left_out = _ids(talk.live) - _ids(live)
        return self.composed(replace(talk, system=tuple(system), live=tuple(live), running=running)), left_out

    def composed(self, talk: DividedMessages) -> list[BaseMessage]:
        """Return system messages, the summary's message and live messages, whatever fits."""
        if talk.running is None:
            return [*talk.system, *talk.live]
        if self.final_prompt is None:
            return [*talk.system, _summary_message(talk.running.summary).model_copy(), *talk.live]
        values = {"system_message": [*talk.system], "summary": talk.summary, "messages": [*talk.live]}
        # What the template adds gets the id by which the next summary takes its place.
        return [
            message if message.id else message.model_copy(update={"id": SUMMARY_ID})
            for message in self.final_prompt.invoke(values).to_messages()
        ]

    def summary_tokens(self, summary: str) -> int:
        """Return the tokens that a summary takes in a view."""
        if self.final_prompt is None:
            return self.frame + self.counter.message(_summary_message(summary))
        return self.counter(self.composed(DividedMessages(running=RunningSummary(summary))))

    def shortened(self, summary: str) -> str:
        """Return the summary within its share, the middle of a longer one left out."""
        share = self.max_summary_tokens
        if self.summary_tokens(summary) <= share:
            return summary
        return shorten_text(summary, max(1, share - self.summary_tokens("")), self.counter)


@dataclass(frozen=True, slots=True)
class Draft:
    """The summary of messages that leave a conversation, oldest first, before it is written."""

    summarizer: Summarizer
    talk: DividedMessages
    leaving: Sequence[BaseMessage]

    def so_far(self, summary: str, number: int) -> WrittenSummary:
        """Return a summary of the first messages as plain data, with what tells later if it still stands for them."""
        part = self.leaving[:number]
        said = (told for message in part for told in (str(message.id), without_middle(message.text)))
        return {"summary": summary, "ids": [one.id for one in part], "of": digest(self.talk.summary, *said)}

    def is_begun_by(self, written: WrittenSummary) -> bool:
        """Say whether a summary does for the first of these messages: what went into it is as it was."""
        number = len(written["ids"])
        return number > 0 and written == self.so_far(written["summary"], number)

    async def write(
        self,
        begun: WrittenSummary | None = None,
        goes_on: Callable[[WrittenSummary], bool] = lambda _: True,
        caller: Caller = Caller(is_awaited=True),
    ) -> WrittenSummary:
        """Write it; the conversation stays as it is.

        Args:
            begun: What an earlier try told `goes_on` last, if the draft `is_begun_by` it: it is gone on with.
            goes_on: Is told what a part of these messages comes to, each time the model has answered, and says whether
                to go on.
            caller: How the model is asked.

        Returns:
            What `prepared_summary` is to return when the cut is due; a part of it, if it was not to go on.

        Raises:
            Exception: Whatever the model raises; `ValueError` if the summary is empty.
        """
        by, leaving = self.summarizer, self.leaving
        summary, done = (begun["summary"], len(begun["ids"])) if begun else (self.talk.summary, 0)
        ends = {unit.places.stop for unit in units(leaving, by.counter)}
        places = {message.id: at for at, message in enumerate(leaving)}
        share = by.max_summary_tokens
        most, room = max(1, int(share * WORDS_PER_TOKEN)), by.room(share)
        new = self.talk.fresh(_ids(leaving[done:]))
        for portion in in_portions(new, min(room, by.portion_tokens or room), by.counter):
            shown = summary if by.portion_tokens is None else ""
            prompt = by.existing_summary_prompt if shown else by.initial_summary_prompt
            written = summary_in(await caller.ask(by.model, prompt_of(prompt, portion, shown, most)))
            if not written:
                raise ValueError("the model returned an empty summary")
            # A model that reads portions is a small one: what it writes shorter may lose nearly all.
            if by.portion_tokens is not None:
                written = f"{summary}\n{written}" if summary else written
            elif by.summary_tokens(written) > share:
                words = prompts.SHORTER_SUMMARY.replace("{max_words}", str(most)).replace("{summary}", written)
                shorter = summary_in(await caller.ask(by.model, [HumanMessage(words)]))
                written = min(shorter or written, written, key=by.summary_tokens)
            summary = by.shortened(written)
            end = places[portion[-1].id] + 1
            # A cut never comes between a call of a tool and its result.
            if end in ends and not goes_on(part := self.so_far(summary, end)):
                return part
        return self.so_far(summary, len(leaving))


def _ids(messages: Iterable[BaseMessage]) -> set[str | None]:
    return {message.id for message in messages}


@lru_cache(maxsize=128)
def _summary_message(summary: str) -> SystemMessage:
    # To make a message takes ten times as long as to copy one, and a thread's summary is the same for many turns.
    return SystemMessage(summary_text(summary), id=SUMMARY_ID)
