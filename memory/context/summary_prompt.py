"""From messages to the prompts of a summary call: plain text, in portions that the summarizing model can take."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate

from memory import prompts, text
from memory.context.budget import shorten_text
from memory.context.tokens import TokenCounter, media_kind

Prompt = str | ChatPromptTemplate
"""A prompt's words, or a template with the placeholder `messages` as langmem takes it."""

WORDS_PER_TOKEN = 0.7
"""English needs about four tokens for three words; a little less leaves room for names and numbers."""

_LEAST_WORDS = 30
_CHARS_PER_WORD = 6

_SPEAKERS = {"human": "User", "ai": "Assistant", "system": "System"}


@dataclass(frozen=True, slots=True)
class SummaryPrompts:
    """The two prompts of a summary: for the first one, and for one that extends another.

    Raises:
        ValueError: If words for an extended summary do not say where the existing one goes.
    """

    initial_summary_prompt: Prompt = prompts.INITIAL_SUMMARY
    existing_summary_prompt: Prompt = prompts.UPDATE_SUMMARY

    def __post_init__(self) -> None:
        prompt = self.existing_summary_prompt
        if isinstance(prompt, str) and "{existing_summary}" not in prompt:
            raise ValueError("existing_summary_prompt must contain {existing_summary}")

    def messages(self, portion: Sequence[BaseMessage], existing: str, max_words: int) -> list[BaseMessage]:
        """Return what the model is sent to summarize one portion of plain messages."""
        prompt = self.existing_summary_prompt if existing else self.initial_summary_prompt
        if not isinstance(prompt, str):
            values = (
                {"messages": list(portion), "existing_summary": existing} if existing else {"messages": list(portion)}
            )
            return prompt.invoke(values).to_messages()
        transcript = text.fenced("conversation", "\n".join(map(_line, portion)))
        words = prompt.replace("{max_words}", str(max_words)).replace("{existing_summary}", existing)
        return [HumanMessage(f"{transcript}\n\n{words}")]


def words_for(portion: Sequence[BaseMessage], existing: str) -> int:
    """Return how many words are worth asking for: half of what was said, and the existing summary.

    A small model that may write more than there is to say fills the rest with what nobody said.
    """
    chars = sum(len(message.text) for message in portion) // 2 + len(existing)
    return max(_LEAST_WORDS, chars // _CHARS_PER_WORD)


def shorter(summary: str, max_words: int) -> list[BaseMessage]:
    """Return what the model is sent when its summary was longer than its share."""
    words = prompts.SHORTER_SUMMARY.replace("{max_words}", str(max_words)).replace("{summary}", summary)
    return [HumanMessage(words)]


def portions(messages: Sequence[BaseMessage], limit: int, counter: TokenCounter) -> Iterator[list[BaseMessage]]:
    """Yield the messages as plain ones, in portions of `limit` tokens at most; none is left out.

    Providers refuse tool calls whose tools are not declared, and images are of no use here: each message becomes
    text, with its tool calls written out. One that is longer than a whole portion is shortened with a visible note.
    """
    portion: list[BaseMessage] = []
    room = limit
    for message in messages:
        plain, tokens = _plain(message), counter.message(message)
        if tokens > limit:
            plain = plain.model_copy(update={"content": shorten_text(plain.text, limit, counter)})
            tokens = min(limit, counter.message(plain))
        if tokens > room:
            yield portion
            portion, room = [], limit
        room -= tokens
        portion.append(plain)
    if portion:
        yield portion


def _plain(message: BaseMessage) -> BaseMessage:
    kind = next((kind for kind in (HumanMessage, SystemMessage) if isinstance(message, kind)), AIMessage)
    return kind(_said(message), id=message.id)


def _said(message: BaseMessage) -> str:
    parts = [str(message.text)]
    if isinstance(message, ToolMessage):
        parts = [f"[result of {message.name or 'a tool'}] {message.text}"]
    if isinstance(message, AIMessage):
        parts += [f"[calls {call['name']}({_written_out(call['args'])})]" for call in message.tool_calls]
    if not isinstance(message.content, str):
        parts += [f"[{kind}]" for kind in map(media_kind, message.content) if kind]
    return "\n".join(part for part in parts if part)


def _written_out(arguments: object) -> str:
    return text.sanitize(json.dumps(arguments, default=str, ensure_ascii=False))


def _line(message: BaseMessage) -> str:
    """Return a message under its speaker's name; what looks like another speaker's line in it is indented."""
    said = message.text.replace("\n", "\n  ")
    return f"{_SPEAKERS.get(message.type, 'Assistant')}: {said}"
