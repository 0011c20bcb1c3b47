"""From what was said to facts: a model is asked, its answer read with tolerance, its facts validated one by one."""

import asyncio
import contextvars
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import tzinfo
from functools import partial
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import TAG_NOSTREAM

from memory import prompts
from memory.config import MemoryConfig
from memory.door import in_daemon_thread, in_this_thread
from memory.extraction.answer import Asking, ExtractionError, Prompt, asked, parse_answer
from memory.extraction.brief import read_briefly
from memory.extraction.dialogue import new_messages, render_dialogue
from memory.extraction.form import FIELDS, Answer, FoundFact, answer_schema
from memory.extraction.task import Task
from memory.extraction.validation import Validation, is_quoted
from memory.facts.changes import Extraction, Refusal, reasons
from memory.facts.fact import Fact
from memory.facts.profile import Profile
from memory.facts.words import words
from memory.message import GivenMessages, StoredMessage, messages_of
from memory.text import one_line

logger = logging.getLogger(__name__)

_CALL: Final[RunnableConfig] = {"tags": [TAG_NOSTREAM], "run_name": "extract_facts"}


def extract_facts(
    model: BaseChatModel,
    messages: GivenMessages | Sequence[StoredMessage],
    *,
    time: str = "",
    existing: Sequence[Fact] = (),
    profile: Profile | None = None,
    config: MemoryConfig | None = None,
    time_zone: tzinfo | None = None,
) -> Extraction:
    """Ask the model once what is worth remembering, and keep what holds.

    Only new messages of the user make facts; what the assistant said, and messages marked as seen, are context. With
    no new message of the user the model is not asked.

    Args:
        model: The memory model.
        messages: What was said, oldest first, in any form that LangChain takes or as memory keeps it; a long message
            of the user is read in pieces.
        time: When LangChain's messages were said, ISO 8601: it is what "yesterday" counts from; unknown by default.
        existing: The active facts; the related ones are shown to the model, which may confirm or correct them.
        profile: The profile's sections by name (`user.work`).
        config: Threshold, longest fact, deadline, and the prompt if another than the shipped one.
        time_zone: The user's, for the day of each message; by default that of the message's own time.

    Returns:
        The changes to make, the sections that changed, and what was refused, each with its reason.

    Raises:
        ExtractionError: If the answer holds no facts that can be read; it carries the answer.
        TimeoutError: If the model does not answer within `config.model_timeout_seconds`.
    """
    task = Task.of(messages_of(messages, time), existing, profile, config, time_zone)

    async def ask(runnable: Runnable[Any, Any], prompt: Prompt) -> Any:
        # On a daemon thread: a hung call must not keep the process alive.
        call = partial(contextvars.copy_context().run, runnable.invoke, prompt, _CALL)
        return in_daemon_thread(call, "palimpsest-extract").result(task.config.model_timeout_seconds)

    return in_this_thread(_extraction(ask, model, task))


async def aextract_facts(
    model: BaseChatModel,
    messages: GivenMessages | Sequence[StoredMessage],
    *,
    time: str = "",
    existing: Sequence[Fact] = (),
    profile: Profile | None = None,
    config: MemoryConfig | None = None,
    time_zone: tzinfo | None = None,
) -> Extraction:
    """Do what `extract_facts` does, asynchronously."""
    task = Task.of(messages_of(messages, time), existing, profile, config, time_zone)

    async def ask(runnable: Runnable[Any, Any], prompt: Prompt) -> Any:
        async with asyncio.timeout(task.config.model_timeout_seconds):
            return await runnable.ainvoke(prompt, _CALL)

    return await _extraction(ask, model, task)


def judge_fact(
    fact: Mapping[str, object],
    messages: Sequence[StoredMessage],
    *,
    corrects: Fact | None = None,
    existing: Sequence[Fact] = (),
    config: MemoryConfig | None = None,
    time_zone: tzinfo | None = None,
) -> Extraction:
    """Return what becomes of a fact that a model's tool tells, by the rules of `extract_facts`.

    Args:
        fact: Its `content`, `category` and `confidence`.
        messages: What was said, oldest first; without a new message of the user the fact is refused.
        corrects: The fact that it takes the place of, if any.
        existing: The active facts.
        config: Threshold and longest fact.
        time_zone: Where the user is.
    """
    task, wanted = Task.of(messages, existing, None, config, time_zone), words(str(fact["content"]))
    if corrects is not None:
        task = replace(task, shown=[corrects, *task.shown])
        fact = {**fact, "action": "corrects", "known": 1}
    validation = Validation(task)
    said = validation.said | words(corrects.content if corrects else "")
    # The model may have been talked into it: half of the words must be the user's.
    if not validation.new or 2 * len(wanted & said) < len(wanted):
        return Extraction(refused=(Refusal(reason="not_said"),))
    return _judged(Answer(facts=(FoundFact.of(fact),)), validation)


async def _extraction(ask: Asking, model: BaseChatModel, task: Task) -> Extraction:
    """Ask the model in the form that it can answer in, and return what of it holds."""
    new = new_messages(task.messages)
    if not new:
        return Extraction()
    if task.config.extraction_form == "brief":
        return _judged(await read_briefly(partial(asked, ask, model), task), Validation(task))
    known = "\n".join(f"{n}. {one_line(fact.content)}" for n, fact in enumerate(task.shown, 1))
    sections = "\n".join(f"{name.partition('.')[2]}: {one_line(text)}" for name, text in task.profile.items())
    material = prompts.EXTRACTION_INPUT.format(
        known=known or "(none)", profile=sections or "(none)", messages=render_dialogue(task.messages, task.zone)
    )
    rules = (task.config.extraction_prompt or prompts.EXTRACTION).replace("{fields}", FIELDS)
    prompt: Prompt = [SystemMessage(rules), HumanMessage(material)]
    schema = answer_schema(new, task.config)
    raw = await asked(ask, model, prompt, schema)
    answer = parse_answer(raw)
    loose = [fact for fact in answer.facts if fact.quote and not is_quoted(fact, task.messages)]
    if loose:  # quoted words that stand nowhere are asked for once more, then refused
        wrong, more = "\n".join(f"- {fact.quote}" for fact in loose), tuple[FoundFact, ...]()
        prompt = [*prompt, AIMessage(raw), HumanMessage(prompts.EXTRACTION_AGAIN.format(quotes=wrong))]
        again = await asked(ask, model, prompt, schema)
        with suppress(ExtractionError):
            more = parse_answer(again).facts
        logger.info("asked once more for the words of %d facts, got %d", len(loose), len(more))
        answer = answer.model_copy(update={"facts": (*(fact for fact in answer.facts if fact not in loose), *more)})
    return _judged(answer, Validation(task))


def _judged(answer: Answer, validation: Validation) -> Extraction:
    extraction = validation.extraction(answer)
    logger.info(
        "extracted %d changes and %d sections from %d messages, refused %s",
        *(len(extraction.changes), len(extraction.profile), len(validation.task.messages), reasons(extraction.refused)),
    )
    return extraction
