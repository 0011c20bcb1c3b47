"""What the model is to see of a conversation: system messages, the summary's message, the messages, in the budget."""

import functools
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate

from memory.context.budget import Budget, fit, has_question, shorten, shorten_text, units
from memory.context.running_summary import SUMMARY_ID, DividedMessages, RunningSummary, summary_text
from memory.context.tokens import TokenCounter, shared_counter

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Without:
    """What a view leaves out where not all fits.

    Attributes:
        before: Ids of what earlier views left out.
        more: Ids of what else goes where the rest does not fit either.
    """

    before: Collection[str | None]
    more: Collection[str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """Makes views of a conversation.

    Attributes:
        budget: What fits.
        counter: Counts messages.
        final_prompt: A template for the resulting messages, with the placeholders `system_message`, `summary` and
            `messages` as langmem takes it; `None` puts the summary into a system message.
    """

    budget: Budget
    counter: TokenCounter = field(default_factory=shared_counter)
    final_prompt: ChatPromptTemplate | None = None

    def fitting(
        self,
        conversation: DividedMessages,
        running: RunningSummary | None,
        *,
        drop: bool,
        without: Without | None = None,
    ) -> tuple[list[BaseMessage], set[str | None]]:
        """Return a view within the budget, and the ids of the live messages that it leaves out.

        Args:
            conversation: What it is made of.
            running: What stands for the rest.
            drop: Whether the oldest are left out before anything is shortened.
            without: What is left out unless all fit; an answer then goes with its question. `None` where a message is
                as good as another.
        """
        if running and self.is_too_long(running.summary):  # it was made when its share was larger
            running = replace(running, summary=self.cut(running.summary))
        summary = self.summary_tokens(running)
        system = [*conversation.system]
        half = (self.budget.max_tokens - summary) // 2
        if self.counter(system) > half:
            logger.warning(
                "system messages take more than half of %d tokens: they are shortened", self.budget.max_tokens
            )
            whole = SystemMessage("\n\n".join(message.text for message in system), id=system[-1].id)
            system = [shorten(whole, half, self.counter)]
        room = self.budget.room(self.counter(system) + summary)
        live = [*conversation.live]
        asked = {live[at].id for at in _newest_question(live)}
        for gone in (without.before, without.more) if without else ():
            if self.counter(live) > room:
                live = [message for message in live if message.id not in gone or message.id in asked]
        live = fit(live, room, self.counter, drop=drop)
        if without is not None and len(live) < len(conversation.live):
            live = _from_a_question(live)
        left_out = {message.id for message in conversation.live} - {message.id for message in live}
        return self.composed(system, running, live), left_out

    def composed(
        self,
        system: Sequence[BaseMessage],
        running: RunningSummary | None,
        live: Sequence[BaseMessage],
        summary: Sequence[BaseMessage] = (),
    ) -> list[BaseMessage]:
        """Return the view of these live messages, whatever fits; the summary may be made already."""
        if running is None:
            return [*system, *live]
        if self.final_prompt is None:
            summary = summary or (_summary_message(running.summary).model_copy(),)
            return [*system, *summary, *live]
        values = {"system_message": [*system], "summary": running.summary, "messages": [*live]}
        given = {id(message) for message in (*system, *live)}
        # What the template adds gets the id by which the next summary takes its place.
        return [
            message if id(message) in given or message.id else message.model_copy(update={"id": SUMMARY_ID})
            for message in self.final_prompt.invoke(values).to_messages()
        ]

    def summary(self, running: RunningSummary | None) -> list[BaseMessage]:
        """Return what a view of a running summary alone is."""
        return self.composed((), running, ())

    def summary_tokens(self, running: RunningSummary | None) -> int:
        """Return the tokens that a running summary takes in a view."""
        return self.text_tokens(running.summary) if running else 0

    def text_tokens(self, summary: str) -> int:
        """Return the tokens that a summary takes in a view."""
        return self.counter(self.summary(RunningSummary(summary, set(), None)))

    def is_too_long(self, summary: str) -> bool:
        """Say whether a summary takes more than its share."""
        return self.text_tokens(summary) > self.budget.max_summary_tokens

    def cut(self, summary: str) -> str:
        """Return the summary within its share, its middle left out."""
        room = self.budget.max_summary_tokens - self.text_tokens("")
        return shorten_text(summary, max(1, room), self.counter)


@functools.lru_cache(maxsize=128)
def _summary_message(summary: str) -> SystemMessage:
    # To make a message takes ten times as long as to copy one, and a thread's summary is the same for many turns.
    return SystemMessage(summary_text(summary), id=SUMMARY_ID)


def _newest_question(live: Sequence[BaseMessage]) -> range:
    """Return the places of the newest user message and of what must stay with it."""
    return next((group for group in reversed(units(live)) if has_question(live, group)), range(0))


def _from_a_question(live: list[BaseMessage]) -> list[BaseMessage]:
    """Return the messages without the replies at their beginning: what they reply to is left out."""
    return live[next((group.start for group in units(live) if has_question(live, group)), 0) :]
