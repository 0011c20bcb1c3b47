"""The parts of one model call, how the tokens are divided among them, and how the model is asked."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Self

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from graphs.events import TokenParts
from graphs.model_failures import explain, is_context_overflow, refuses_content, says_it_all
from graphs.models import ainvoke, is_own_answer
from graphs.turn.content import NOTHING, Refused, as_sent, refused_before, refused_more, remembering, standard, without
from graphs.turn.context import Context
from graphs.turn.sources import without_sources
from graphs.turn.text import Pieces, check_text
from graphs.turn.thread import Thread
from graphs.turn.view import Shares, shares, smaller, view
from memory.context.running_summary import RunningSummary, summary_text
from memory.context.tokens import TokenCounter
from memory.facts.snapshot import MemorySnapshot
from memory.injection.injected import Injected, render_block, render_deltas
from memory.provider_reason import origin, provider_reason

logger = logging.getLogger(__name__)

_MEMORY_SHARE = 4
_SIZES = 3


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What one model call is made of.

    Attributes:
        context: The run's choices.
        system_prompt: The assistant's instructions, and those that a client put into the thread.
        running: The thread's running summary.
        messages: The messages that no summary stands for, their content in standard form.
        tools: What the model may call.
        counter: Counts tokens.
        block: The memory block, as quoted text.
        recalled: What was recalled for single messages, as quoted text, by the messages' ids.
    """

    context: Context
    system_prompt: str
    running: RunningSummary | None
    messages: tuple[BaseMessage, ...]
    tools: tuple[BaseTool, ...]
    counter: TokenCounter
    block: str = ""
    recalled: Mapping[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """The running summary's text, or nothing."""
        return self.running.summary if self.running else ""

    @property
    def memory_budget(self) -> int:
        """Tokens of the memory block: what was asked for, but a quarter of the whole prompt at most."""
        return memory_share(self.context)

    @property
    def memory_room(self) -> int:
        """Tokens that what was recalled for single messages may take together, before a new block takes its place."""
        return self.context.max_tokens // _MEMORY_SHARE

    @cached_property
    def shares(self) -> Shares:
        """How many tokens each part has."""
        return shares(
            max_tokens=self.context.max_tokens,
            reply_tokens=self.context.reply_tokens,
            system_prompt=self.system_prompt,
            memory_block=self.block,
            recalled=self.recalled,
            tools=self.tools,
            counter=self.counter,
        )

    def showing(self, injected: Injected | None, snapshot: MemorySnapshot | None) -> Self:
        """Return the prompt with this memory in it: the texts of what was chosen, as they are now."""
        if injected is None or snapshot is None:
            return replace(self, block="", recalled={})
        block = render_block(injected, snapshot, self.memory_budget, self.counter.text)
        return replace(self, block=block, recalled=render_deltas(injected, snapshot))

    def without(self, refused: Refused) -> Self:
        """Return the prompt with a note in the place of what a model could not read."""
        if not refused:
            return self
        return replace(self, messages=tuple(standard(without(message, refused)) for message in self.messages))

    def for_model(self, model: BaseChatModel) -> Self:
        """Return the prompt with answers of models of another kind as this one may have them."""
        is_own = partial(is_own_answer, model, self.tools)
        return replace(self, messages=tuple(as_sent(self.messages, is_own)))

    def view(self, max_tokens: int) -> list[BaseMessage]:
        """Return what the model is sent, in at most so many tokens without tool schemas and reply."""
        return view(
            system_prompt=self.system_prompt,
            memory_block=self.block,
            summary=self.summary,
            messages=self.messages,
            recalled=self.recalled,
            max_tokens=max_tokens,
            counter=self.counter,
        )

    def room(self) -> int:
        """Return the tokens of a whole view, without tool schemas and reply."""
        return self.context.max_tokens - self.shares.reply - self.shares.tools

    def exceeds(self) -> bool:
        """Return whether messages and summary no longer fit their share, so that a summary is due."""
        summary = self.counter.message(SystemMessage(summary_text(self.summary))) if self.running else 0
        return self.counter(self.messages) + summary > self.shares.messages

    def tokens(self) -> TokenParts:
        """Return the tokens of each part, for receipts and events."""
        return TokenParts(
            system=self.shares.system + self.shares.tools,
            memory=self.shares.memory,
            recalled=self.shares.recalled,
            summary=self.counter.text(self.summary),
            messages=self.counter(self.messages),
            budget=self.context.max_tokens,
        )


def memory_share(context: Context) -> int:
    """Return the tokens of the memory block: what was asked for, but a quarter of the whole prompt at most."""
    return min(context.memory_tokens, context.max_tokens // _MEMORY_SHARE)


def prompt_of(
    context: Context,
    thread: Thread,
    messages: Sequence[BaseMessage],
    tools: Sequence[BaseTool],
    counter: TokenCounter,
    *,
    model: str = "",
) -> Prompt:
    """Return the prompt that a thread comes to, without memory.

    Args:
        context: The run's choices.
        thread: The thread.
        messages: Those of its messages that the model may see, without instructions that a client gives among them.
        tools: What the model may call.
        counter: Counts tokens.
        model: Whose earlier refusals count: what this model could not read is left out.
    """
    given = (context.system_prompt, *(one.text for one in thread.divided.system))
    prompt = Prompt(
        context=context,
        system_prompt="\n\n".join(dict.fromkeys(filter(None, given))),
        running=thread.running,
        messages=tuple(without_sources(standard(message)) for message in messages),
        tools=tuple(tools),
        counter=counter,
    )
    return prompt.without(refused_before(messages, model))


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one try sends: in how many tokens, and without which content."""

    room: int
    refused: Refused = NOTHING
    sizes: int = 1

    def after(self, error: Exception, messages: Sequence[BaseMessage]) -> Self | None:
        """Return the next try after this one failed; `None` if less of the prompt would fail the same way.

        Args:
            error: What the call raised.
            messages: What the prompt is made of.
        """
        if is_context_overflow(error):
            smaller_one = replace(self, room=smaller(self.room), sizes=self.sizes + 1)
            return smaller_one if self.sizes < _SIZES else None
        more = refused_more(messages, self.refused, str(error)) if refuses_content(error) else None
        return replace(self, refused=more) if more else None


async def ask_to_chat(model: Runnable[LanguageModelInput, AIMessage], prompt: Prompt, name: str) -> AIMessage:
    """Return the model's answer; it says what of the prompt the model could not read.

    Args:
        model: The model, with its tools.
        prompt: What it is asked.
        name: The model's name, for errors and for later turns.

    Raises:
        ModelUnavailable: If it refuses, fails otherwise, or answers what is no text; the sentence says what to do.
    """
    attempt: Attempt | None = Attempt(prompt.room())
    while attempt:
        pieces = Pieces(name)
        try:
            sent = prompt.without(attempt.refused).view(attempt.room)
            answer = pieces.without_completed(await ainvoke(model, sent, pieces.config()))
        except Exception as error:  # each provider's package has exceptions of its own
            failure, attempt = error, attempt.after(error, prompt.messages)
            if attempt:
                left_out = ", ".join(sorted({kind for _, kind in attempt.refused})) or "nothing"
                logger.warning(
                    "%s refused a prompt (%s): it is asked again with %d tokens at most, left out: %s",
                    name, type(error).__name__, attempt.room, left_out,
                )  # fmt: skip
        else:
            check_text(answer, name)
            return remembering(answer, name, attempt.refused)
    why = explain(failure, name)
    # Who runs the graph logs the sentence of the error.
    level = logging.INFO if says_it_all(why) else logging.WARNING
    logger.log(level, "%s failed: %s (%s)", name, provider_reason(failure), origin(failure))
    raise why from failure
