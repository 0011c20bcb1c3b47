"""One model call: a provider that refuses a prompt is asked again with less of it."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable

from graphs.model_errors import explain, is_context_overflow, refuses_content
from graphs.prompt import Prompt
from graphs.refused import NOTHING, Refused, refused_more, remembering
from graphs.view import smaller
from memory.provider_reason import origin, provider_reason, words_of

logger = logging.getLogger(__name__)

_SIZES = 3


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


async def ask(model: Runnable[LanguageModelInput, AIMessage], prompt: Prompt, name: str) -> AIMessage:
    """Return the model's answer; it says what of the prompt the model could not read.

    Args:
        model: The model, with its tools.
        prompt: What it is asked.
        name: The model's name, for errors and for later turns.

    Raises:
        ModelUnavailable: If it refuses, or fails otherwise; the sentence says what to set.
    """
    attempt: Attempt | None = Attempt(prompt.room())
    while attempt:
        try:
            answer = await model.ainvoke(prompt.without(attempt.refused).view(attempt.room))
            return remembering(answer, name, attempt.refused)
        except Exception as error:  # each provider's package has exceptions of its own
            failure, attempt = error, attempt.after(error, prompt.messages)
            if attempt:
                left_out = ", ".join(sorted({kind for _, kind in attempt.refused})) or "nothing"
                logger.warning(
                    "%s refused a prompt (%s): it is asked again with %d tokens at most, left out: %s",
                    name, type(error).__name__, attempt.room, left_out,
                )  # fmt: skip
    reason = provider_reason(failure, map(words_of, prompt.view(prompt.room())))
    logger.warning("%s failed: %s (%s)", name, reason, origin(failure))
    raise explain(failure, name, reason) from failure
