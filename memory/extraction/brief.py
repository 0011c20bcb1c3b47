"""Extraction as a small model can do it: message by message, each answered with a list of plain sentences. Pure.

A model of one or two billion parameters loses messages when it reads many at once, and fields of a fact when it must
fill in ten. Here it reads one message, in a conversation that begins with examples, and writes sentences. What rules
make of them comes with the model (`MemoryConfig.note_rules`).
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from memory import prompts
from memory.extraction.answer import Prompt, parse_answer
from memory.extraction.dialogue import MAX_CONTEXT_CHARS, answers, day_written, line_before, new_messages, shortened
from memory.extraction.form import Answer, FoundFact, object_schema
from memory.extraction.task import Task
from memory.facts.words import words
from memory.text import one_line, sentences

# The model names no confidence: what it writes in this form is what the user said.
CONFIDENCE: Final = 0.9
# A small model repeats itself until something ends it. A message of a sentence or two holds a few facts.
_A_FEW: Final = 4
_MOST: Final = 12
_CHARS_PER_FACT: Final = 120
_SENTENCE_CHARS: Final = 240


async def read_briefly(ask: Callable[[Prompt, dict[str, Any]], Awaitable[str]], task: Task) -> Answer:
    """Ask for each new message of the user what it tells, and return all of it as one answer.

    Each call repeats the one before and adds a message, so that a server that keeps the prompt reads only that one.
    """
    messages, config = task.messages, task.config
    rules, new = config.note_rules, new_messages(messages)
    prompt: Prompt = [SystemMessage(config.extraction_prompt or prompts.BRIEF_EXTRACTION)]
    examples = rules.examples(" ".join(message.text for message in new)) if rules else prompts.BRIEF_EXAMPLES
    for said, noted in examples:
        prompt += [HumanMessage(said), AIMessage(noted)]
    facts: list[FoundFact] = []
    heard = " ".join(each.text for each in messages)
    for number, message in enumerate(new, 1):
        text, before = one_line(message.text), line_before(message, messages)
        question = next((part for part in reversed(sentences(before)) if part.endswith("?")), "")
        is_answer = bool(question) and answers(text, before)
        told = (rules.stated(text, day_written(message, task.zone)) if rules else text) or (text if is_answer else "")
        if not is_answer and not words(told):
            continue
        shown = HumanMessage(
            f'Asked "{shortened(question, MAX_CONTEXT_CHARS)}", the user says: {told}' if is_answer else told
        )
        most = min(_MOST, _A_FEW + len(text) // _CHARS_PER_FACT)
        sentence = {"type": "string", "maxLength": min(_SENTENCE_CHARS, config.max_fact_chars)}
        schema = {
            "title": "facts",
            "description": "What the message tells.",
            **object_schema(facts={"type": "array", "maxItems": most, "items": sentence}),
        }
        raw = await ask([*prompt, shown], schema)
        given = [each.content for each in parse_answer(raw).facts if each.content][:most]
        kept = (
            rules.kept(given, told, heard, config.max_fact_chars) if rules else [(each, "knowledge") for each in given]
        )
        for content, category in kept:
            known = 0
            if rules:
                replaces = partial(rules.replaces, text, content)
                facts = [each for each in facts if each.message == number or not replaces(each.content or "")]
                known = next((at for at, fact in enumerate(task.shown, 1) if replaces(fact.content)), 0)
            facts.append(
                FoundFact(
                    message=number, action="corrects" if known else "new", known=known, content=content,
                    category=category, confidence=CONFIDENCE,
                )
            )  # fmt: skip
        # A model that saw itself note nothing goes on to note nothing.
        prompt += [shown, AIMessage(raw)] if given else []
    return Answer(facts=tuple(facts))
