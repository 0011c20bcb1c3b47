"""What model calls take: how many, for which purpose, and their tokens; seen from outside, whatever model it is."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.context import register_configure_hook

CallPurpose = Literal["chat", "summary", "extraction", "rollup"]
CALL_PURPOSES: Final[tuple[CallPurpose, ...]] = get_args(CallPurpose)

_CHARS_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """One model call that has ended.

    Attributes:
        purpose: What it was for.
        model: Which model, as `provider:model`; empty where nobody named one.
        input_tokens: What the model read, by its provider's word; estimated where the provider says nothing.
        output_tokens: What it wrote; the same.
        is_estimated: Whether the tokens are estimated, at four characters each.
        failed: Whether the call failed; of its tokens nobody tells, so that they are none.
    """

    purpose: CallPurpose
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    is_estimated: bool = False
    failed: bool = False

    @property
    def tokens(self) -> int:
        """All tokens of the call."""
        return self.input_tokens + self.output_tokens


Observe = Callable[[ModelUsage], None]
"""Is told of each call when it has ended, on whichever thread that was; it must not block."""


@contextmanager
def observed(purpose: CallPurpose, model: str, observe: Observe) -> Iterator[None]:
    """Tell an observer of every model call that is made inside, on this thread or task or what takes its context."""
    token = _observer.set(_Observer(purpose, model, observe))
    try:
        yield
    finally:
        _observer.reset(token)


class _Observer(BaseCallbackHandler):
    """Sees calls begin and end; LangChain gives it to every model that is called where it is set."""

    # On the event loop, as it only adds: each call would take a thread otherwise.
    run_inline = True

    def __init__(self, purpose: CallPurpose, model: str, observe: Observe) -> None:
        self._purpose, self._model, self._observe = purpose, model, observe
        self._lock = threading.Lock()
        self._read: dict[UUID, int] = {}

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **_: Any
    ) -> None:
        """Note how much the model is given to read, for providers that do not tell."""
        del serialized
        with self._lock:
            self._read[run_id] = sum(len(message.text) for prompt in messages for message in prompt)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Tell of the call."""
        with self._lock:
            read = self._read.pop(run_id, 0)
        answers = [one.message for each in response.generations for one in each if isinstance(one, ChatGeneration)]
        self._observe(_usage(self._purpose, self._model, answers, read))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Tell of a call that failed."""
        del error
        with self._lock:
            self._read.pop(run_id, None)
        self._observe(ModelUsage(purpose=self._purpose, model=self._model, failed=True))


def _usage(purpose: CallPurpose, model: str, answers: Sequence[BaseMessage], chars_read: int) -> ModelUsage:
    told = [answer.usage_metadata for answer in answers if isinstance(answer, AIMessage) and answer.usage_metadata]
    if told:
        return ModelUsage(
            purpose=purpose,
            model=model,
            input_tokens=sum(each["input_tokens"] for each in told),
            output_tokens=sum(each["output_tokens"] for each in told),
        )
    written = sum(len(answer.text) for answer in answers)
    return ModelUsage(
        purpose=purpose,
        model=model,
        input_tokens=-(-chars_read // _CHARS_PER_TOKEN),
        output_tokens=-(-written // _CHARS_PER_TOKEN),
        is_estimated=True,
    )


_observer: ContextVar[_Observer | None] = ContextVar("palimpsest_observer", default=None)
# What LangChain looks at whenever anything is called; it is the way to a model that somebody else has made.
register_configure_hook(_observer, inheritable=True)
