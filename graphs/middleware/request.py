"""What the middleware changes in a call of the model: system message, users' messages, their order."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, cast

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, BaseMessage, SystemMessage

from graphs.process.models import is_own_answer
from graphs.turn.calls import paired
from graphs.turn.content import as_sent
from memory.context.running_summary import divide
from memory.context.turns import blocks_of, in_turns, one_after_another

Request = ModelRequest[Any]
Response = ModelResponse[Any]
Handler = Callable[[Request], Response]
AsyncHandler = Callable[[Request], Awaitable[Response]]

_MARK = {"type": "ephemeral"}


def with_text(system: SystemMessage | None, text: str, *, marks_stable: bool = False) -> SystemMessage | None:
    """Return the system message with a text behind it, as what changes least comes first.

    Args:
        system: The system message so far.
        text: The text; where both are empty, there is no system message.
        marks_stable: Whether to mark the end of the message so far, so that the provider caches up to there. Where
            somebody else set marks, none is added: providers take only a few.
    """
    # An agent may have none, or an empty one (deepagents), which no server takes.
    if system is None or not system.text.strip():
        return SystemMessage(text) if text else None
    if not text:
        return system
    said = system.content
    if marks_stable:
        *others, last = blocks = blocks_of(said)
        is_marked = any("cache_control" in block for block in blocks)
        said = [*others, last if is_marked else {**last, "cache_control": _MARK}]
    return system.model_copy(update={"content": one_after_another(said, text)})


def ordered(request: Request, make: Callable[..., Sequence[BaseMessage]] | None = None) -> Request:
    """Return the request as its model takes it, whichever one answered before, and whatever its chat template is.

    That is one system message, then user and assistant in turn.

    Args:
        request: The request.
        make: Makes its messages of `system_prompt`, the text of system messages in the thread, and of `messages`, the
            others; by default these stay.
    """
    parted = divide(request.messages, None)
    given = "\n\n".join(message.text for message in parted.system)
    is_own = partial(is_own_answer, request.model, request.tools)
    said = as_sent(parted.live, is_own)
    made = make(system_prompt=given, messages=said) if make else in_turns([SystemMessage(given), *paired(said)])
    system = "".join(message.text for message in made if isinstance(message, SystemMessage))
    messages = [message for message in made if not isinstance(message, SystemMessage)]
    return request.override(
        system_message=with_text(request.system_message, system), messages=cast("list[AnyMessage]", messages)
    )
