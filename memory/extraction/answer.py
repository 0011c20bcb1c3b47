"""The memory model's answer: asked for as JSON where the model can, and read with tolerance."""

import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import BaseOutputParser
from langchain_core.runnables import Runnable, RunnableSequence

from memory.extraction.form import FACT_LISTS, Answer
from memory.forms import read_as
from memory.model_calls import reason_logged, status_of

logger = logging.getLogger(__name__)

# Twice what fits into the schema where each fact and section is as long as may be; of more only that is read,
# unless it is JSON as a whole.
MAX_ANSWER_CHARS: Final = 120_000
# No more brackets are tried: each may be read up to the end.
MAX_OBJECTS: Final = 200
_FEW_OBJECTS: Final = 8
# Not as of a reply: a JSON draft in a thought is no answer, wherever in a sentence the thought stands. Chat templates
# may swallow the opening tag. In a text of JSON no line ends with a tag, and behind one its text ends before a bracket.
_THOUGHT = re.compile(r"\A.*</think(?:ing)?>(?=[^\"\[{`]{0,500}[\[{`]|[^\S\n]*\n)", re.DOTALL | re.IGNORECASE)
_THINKING = re.compile(r"\A[^\[{]*?<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
# A model copies LaTeX, a pattern or a path as it stands: a backslash there is none of JSON's.
_ESCAPE = re.compile(r'\\(["\\/bfnrtu])?')
_OPENING = re.compile(r"[{\[]")
_BEGINNING = re.compile(r"\A\s*(?:```(?:json)?\s*)?[{\[]")
_OBJECT = re.compile(r"{")
_SENTENCE = re.compile(r'"')
_CONTENT: Final = '"content"'
_FACT_LIST = re.compile(rf'"(?:{"|".join(FACT_LISTS)})"\s*:\s*\[')
# Python refuses to convert more than 4,300 digits, and a float has no more than 309.
_DECODER: Final = json.JSONDecoder(parse_int=lambda digits: float(digits[:400]))


class ExtractionError(ValueError):
    """The model's answer holds no JSON that could be facts; `raw` is the answer."""

    def __init__(self, raw: str) -> None:
        super().__init__(f"no facts could be read from an answer of {len(raw)} characters")
        self.raw = raw


def parse_answer(raw: str) -> Answer:
    """Return what an answer holds: of drafts the last, of one that broke off, or is broken, the facts that are whole.

    Raises:
        ExtractionError: If there is no JSON in what is read of it that could hold facts.
    """
    said = _THINKING.sub("", _THOUGHT.sub("", raw))
    said = _ESCAPE.sub(lambda found: found[0] if found[1] else 2 * found[0], said)
    text = said[:MAX_ANSWER_CHARS]
    # Of a long answer a few values of the whole are looked at, then those of its beginning.
    looked = [*_values(said, _OPENING, tries=_FEW_OBJECTS)] if text != said else []
    for values in (looked, _values(text, _OPENING)):
        answers = [(answer, end) for value, end in values if (answer := _answer_in(value, text))]
        if answers:
            break
    answer, end = answers[-1] if answers else (None, 0)
    opening = _FACT_LIST.search(text, end)
    if answer is not None and opening is None:
        return answer
    begin = opening.end() if opening else len(text) if _CONTENT not in text else 0
    parts = _OBJECT if _CONTENT in text else _SENTENCE
    whole = tuple(value for value, _ in _values(text, parts, begin) if _is_fact(value))
    if whole:  # of one it is known that it is no whole one
        return Answer(facts=whole, unread=max(0, said.count(_CONTENT, begin) - len(whole) - 1))
    if answer is None:
        raise ExtractionError(raw)
    return answer


def _answer_in(value: object, text: str) -> Answer | None:
    """Return the answer that a JSON value in a text is; `None` if it is only a part of one."""
    if not value:
        return None if _CONTENT in text else Answer()
    if isinstance(value, list):  # some models leave the object around the list out
        return Answer(facts=tuple(value)) if all(map(_is_fact, value)) else None
    if isinstance(value, Mapping) and not value.keys().isdisjoint((*FACT_LISTS, "profile")):
        return read_as(Answer, {**value, "unread": 0}, ())  # a count of ours, which no model gives
    return None


def _is_fact(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, Mapping) and "content" in value)


def _values(text: str, opening: re.Pattern[str], at: int = 0, tries: int = MAX_OBJECTS) -> Iterator[tuple[Any, int]]:
    """Yield the JSON values that begin with such a bracket, the outermost first, and their ends; bounded work."""
    for _ in range(tries):
        found = opening.search(text, at)
        if found is None:
            return
        try:
            value, at = _DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            at = found.start() + 1
        else:
            yield value, at


# What a server answers that does not know JSON schemas: bad request, or not to be processed.
_REFUSES_SCHEMA: Final = frozenset({400, 422})
# They keep a small model from never ending its answer, but not every server that takes a schema takes them.
_BOUNDS: Final = frozenset({"maxItems", "maxLength"})

Prompt = list[BaseMessage]
Asking = Callable[[Runnable[Any, Any], Prompt], Awaitable[Any]]


async def asked(ask: Asking, model: BaseChatModel, prompt: Prompt, schema: dict[str, Any]) -> str:
    """Ask with the schema, then in the ways that a model may take instead, and return the first answer's text.

    Args:
        ask: How a model is asked.
        model: Any chat model.
        prompt: What it is sent.
        schema: The JSON schema of the answer, for models that take one, without its bounds for those that refuse them.

    Raises:
        Exception: What the model raises. Of an answer that reached the length limit what there is counts.
    """
    with reason_logged(logger, "an extraction call"):
        for structured in _structured(model, schema):
            try:
                return _answered_text(await ask(structured, prompt))
            except Exception as error:  # whatever a provider's client raises for "I know no schemas"
                if broken_off := _broken_off(error):
                    return broken_off
                if status_of(error) not in _REFUSES_SCHEMA:
                    raise
        return _answered_text(await ask(model, prompt))


def _structured(model: BaseChatModel, schema: dict[str, Any]) -> Iterator[Runnable[Any, Any]]:
    """Yield the model bound to the schema, then to the schema without bounds; nothing if it has no way of its own.

    The inherited way is a forced tool call, which small local servers answer with prose.
    """
    if type(model).with_structured_output is BaseChatModel.with_structured_output:
        return
    for each in (schema, _unbounded(schema)):
        try:
            structured = model.with_structured_output(each, method="json_schema")
        except (NotImplementedError, TypeError, ValueError):
            return
        if isinstance(structured, RunnableSequence) and isinstance(structured.last, BaseOutputParser):
            # Without LangChain's parser: its work is quadratic in what is no JSON.
            structured = reduce(or_, structured.steps[:-1])
        yield structured


def _unbounded(schema: Any) -> Any:
    """Return a JSON schema without its bounds."""
    if isinstance(schema, Mapping):
        return {name: _unbounded(value) for name, value in schema.items() if name not in _BOUNDS}
    return [_unbounded(each) for each in schema] if isinstance(schema, list) else schema


def _broken_off(error: Exception) -> str:
    """Return the text of an answer that reached the length limit; empty if it is another error.

    OpenAI's client raises for it where a schema was asked for, and hands over the completion.
    """
    choices = getattr(getattr(error, "completion", None), "choices", None)
    if not choices or choices[0].finish_reason != "length":
        return ""
    text = choices[0].message.content or ""
    logger.warning("an answer broke off at the length limit after %d characters: what is whole counts", len(text))
    return str(text)


def _answered_text(answer: Any) -> str:
    """Return what a model answered, wherever it stands: as text, as a call of a tool, or among its thoughts."""
    if not isinstance(answer, AIMessage):
        return answer if isinstance(answer, str) else json.dumps(answer, default=str)
    if answer.text.strip():
        return answer.text
    calls = (each["args"] for each in (*answer.tool_calls, *answer.invalid_tool_calls))
    found = (each if isinstance(each, str) else json.dumps(each) for each in calls)
    if call := next(found, ""):
        return call
    # Some servers tell as the model's reasoning all that it writes. What does not begin as JSON is no answer: a model
    # thought until its limit, and a draft would count.
    blocks = answer.content if isinstance(answer.content, list) else []
    parts = (answer.additional_kwargs, *(each for each in blocks if isinstance(each, dict)))
    told = (part.get(name) for part in parts for name in ("reasoning_content", "reasoning", "thinking"))
    return next((text for text in told if isinstance(text, str) and _BEGINNING.match(text)), "")
