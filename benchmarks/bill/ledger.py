"""What models were sent: every call with its purpose and tokens, and how much of a chat prompt was sent before."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from benchmarks.bill.parts import Difference, Part, first_difference, of_extraction, of_summary, tokens_of
from memory.context.tokens import count_tokens

Purpose = Literal["chat", "summary", "extraction", "roll-up"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model.

    Attributes:
        turn: In which turn, from 0, or after it.
        purpose: What for.
        read: Tokens that it was sent, schemas of tools and answers included.
        written: Tokens that it answered.
        unchanged: Of a chat call, so many tokens are the beginning of the chat call before.
        is_warm: Whether that one was recent enough for a provider to have it in its cache.
        differs: Of a chat call, where it differs first from the chat call before.
        made_of: Of a call for extraction or a summary, the tokens of its parts.
    """

    turn: int
    purpose: Purpose
    read: int
    written: int
    unchanged: int = 0
    is_warm: bool = False
    differs: Difference = "end"
    made_of: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Ledger:
    """All calls of one contestant.

    Attributes:
        calls: What was asked, oldest first.
        turn: Which turn it is now.
        is_warm: Whether the turn before was recent.
    """

    calls: list[Call] = field(default_factory=list)
    turn: int = 0
    is_warm: bool = False
    _before: list[Part] = field(default_factory=list)

    def add(self, purpose: Purpose, prompt: Sequence[BaseMessage], beside: str, written: str) -> None:
        """Note a call.

        Args:
            purpose: What for.
            prompt: The messages.
            beside: What is sent beside them: schemas, as JSON.
            written: The answer.
        """
        parts = [(message.type, _text(message)) for message in prompt]
        read = sum(tokens_of(part) for part in parts) + (count_tokens(beside) if beside else 0)
        unchanged, differs, made_of = 0, first_difference(self._before, parts), dict[str, int]()
        if purpose == "chat":
            unchanged, self._before = unchanged_tokens(self._before, parts), parts
        if purpose == "extraction":
            made_of = of_extraction(parts, beside, written)
        if purpose == "summary":
            made_of = of_summary(parts, written)
        self.calls.append(
            Call(self.turn, purpose, read, count_tokens(written), unchanged, self.is_warm, differs, made_of)
        )


def unchanged_tokens(before: Sequence[Part], after: Sequence[Part]) -> int:
    """Return how many tokens two prompts begin with alike; of the first message that differs, its common beginning."""
    pairs = list(zip(before, after, strict=False))
    same = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    total = sum(map(tokens_of, same))
    if len(same) < len(pairs) and pairs[len(same)][0][0] == pairs[len(same)][1][0]:
        total += count_tokens(_common_beginning(pairs[len(same)][0][1], pairs[len(same)][1][1]))
    return total


def _common_beginning(one: str, other: str) -> str:
    return "".join(char for char, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _text(message: BaseMessage) -> str:
    called = getattr(message, "tool_calls", None)
    return message.text + (json.dumps(called) if called else "")


class CountingModel(BaseChatModel):
    """A chat model that answers at once and notes each call.

    Attributes:
        ledger: Where calls are noted.
        purpose: Says of a prompt what it is for.
        reply: Makes the answer of a prompt.
    """

    ledger: Any
    purpose: Callable[[Sequence[BaseMessage]], Purpose]
    reply: Callable[[Sequence[BaseMessage]], AIMessage]

    @property
    def _llm_type(self) -> str:
        return "counting"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        *,
        schemas: Sequence[Any] = (),
        **more: Any,
    ) -> ChatResult:
        answer = self.reply(messages)
        beside = json.dumps(schemas) if schemas else ""
        self.ledger.add(self.purpose(messages), messages, beside, _text(answer))
        return ChatResult(generations=[ChatGeneration(message=answer)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **more: Any) -> ChatResult:
        return self._generate(messages, *args, **more)

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Runnable[Any, AIMessage]:
        return self.bind(schemas=[convert_to_openai_tool(tool) for tool in tools])

    def with_structured_output(self, schema: Any, *args: Any, **more: Any) -> Runnable[Any, Any]:
        """Take the schema as providers do: it is sent, and counts."""
        return self.bind(schemas=[schema])
