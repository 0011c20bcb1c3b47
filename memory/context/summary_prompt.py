"""One summary call: the prompt, in portions that the summarizing model can take, and what its reply says."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate

from memory import text
from memory.context.budget import shorten_text
from memory.context.tokens import TokenCounter, media_kind
from memory.context.turns import blocks_of, in_turns

Prompt = str | ChatPromptTemplate
"""A prompt's words, or a template with the placeholder `messages` as langmem takes it."""

WORDS_PER_TOKEN = 0.7
"""English needs about four tokens for three words; a little less leaves room for names and numbers."""

_LEAST_WORDS = 30
_CHARS_PER_WORD = 6

# Shorter sentences ("He agreed.") may be meant twice.
_LEAST_SENTENCE: Final = 5
_SENTENCE_END = re.compile(r"(?<=[.!?\u3002\n])(?=\s)")
# A phrase of whole words four times in a row is a loop; a longer one than this a sentence that stands there twice.
_LOOP = re.compile(r"(?<!\S)(\S.{0,80}?)(?:\s+\1(?!\S)){3,}", re.IGNORECASE)

_SPEAKERS = {"human": "User", "ai": "Assistant", "system": "System"}


def prompt_of(prompt: Prompt, portion: Sequence[BaseMessage], existing: str, most: int) -> list[BaseMessage]:
    """Return what the model is sent to summarize one portion of plain messages in `most` words at most.

    The words are bounded by half of the messages' and the existing summary: a small model that may write more makes
    things up.
    """
    if not isinstance(prompt, str):
        return in_turns(prompt.invoke({"messages": [*portion], "existing_summary": existing}).to_messages())
    # What looks like another speaker's line in a message is indented.
    lines = (f"{_SPEAKERS.get(one.type, 'Assistant')}: {one.text}".replace("\n", "\n  ") for one in portion)
    transcript = text.fenced("conversation", "\n".join(lines))
    chars = sum(len(message.text) for message in portion) // 2 + len(existing)
    words = min(most, max(_LEAST_WORDS, chars // _CHARS_PER_WORD))
    asked = prompt.replace("{max_words}", str(words)).replace("{existing_summary}", existing)
    return [HumanMessage(f"{transcript}\n\n{asked}")]


def in_portions(messages: Sequence[BaseMessage], limit: int, counter: TokenCounter) -> Iterator[list[BaseMessage]]:
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
    """Return a message as text only: calls and media would be refused where their results or senders are missing."""
    kind = next((kind for kind in (HumanMessage, SystemMessage) if isinstance(message, kind)), AIMessage)
    texts = (block.get("text") for block in blocks_of(message.content))
    said = text.without_middle("".join(each for each in texts if isinstance(each, str)))
    if isinstance(message, HumanMessage) and (name := text.fit_name(message.name or "")):
        said = f"{name}: {said}"
    parts = [f"[result of {message.name or 'a tool'}] {said}" if isinstance(message, ToolMessage) else said]
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            arguments = text.sanitize(json.dumps(call["args"], default=str, ensure_ascii=False))
            parts.append(f"[calls {call['name']}({arguments})]")
    if not isinstance(message.content, str):
        parts += [f"[{media}]" for media in map(media_kind, message.content) if media]
    return kind("\n".join(part for part in parts if part), id=message.id)


def without_loops(said: str) -> str:
    """Return a text without sentences that stood in it before, and with a phrase that repeats itself in a row once."""
    kept, seen = [], set[str]()
    for part in _SENTENCE_END.split(_LOOP.sub(r"\1", said)):
        sentence = text.normalize(part)
        if sentence not in seen or len(sentence.split()) < _LEAST_SENTENCE:
            kept.append(part)
        seen.add(sentence)
    return "".join(kept)


def summary_in(reply: str) -> str:
    """Return the summary in a reply, without thoughts that a model wrote before it, and without its loops."""
    return without_loops(text.sanitize(text.after_thoughts(reply)).strip())
