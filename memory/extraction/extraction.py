"""From what was said to facts: a model is asked, its answer read with tolerance, its facts validated one by one."""

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, Self

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from memory import prompts
from memory.config import MemoryConfig
from memory.effects import aperform, perform
from memory.extraction.answer import ExtractionError, aask, ask, parse_answer
from memory.extraction.brief import ExtractionCall, read_briefly
from memory.extraction.dialogue import answers, in_pieces, line_before, new_messages, render_dialogue
from memory.extraction.form import FIELDS, Answer, FoundFact, answer_schema
from memory.extraction.validation import is_quoted, validated
from memory.facts.changes import Extraction, Refusal, reasons
from memory.facts.fact import Fact, strongest_first
from memory.facts.profile import Profile
from memory.facts.words import related, words
from memory.message import GivenMessages, StoredMessage, messages_of
from memory.text import one_line

logger = logging.getLogger(__name__)

# Each is a line of the prompt: more would take the room of the messages in a small model's window.
MAX_SHOWN: Final = 20


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
        time_zone: Where the user is: it says on which day a message was written. By default its own time does.

    Returns:
        The changes to make, the sections that changed, and what was refused, each with its reason.

    Raises:
        ExtractionError: If the answer holds no facts that can be read; it carries the answer.
        TimeoutError: If the model does not answer within `config.model_timeout_seconds`.
    """
    task = _Task.of(messages_of(messages, time), existing, profile, config, time_zone)
    timeout = task.config.model_timeout_seconds
    return perform(task.extraction(), {ExtractionCall: lambda call: ask(model, call.prompt, call.schema, timeout)})


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
    task = _Task.of(messages_of(messages, time), existing, profile, config, time_zone)
    timeout = task.config.model_timeout_seconds
    return await aperform(
        task.extraction(), {ExtractionCall: lambda call: aask(model, call.prompt, call.schema, timeout)}
    )


def judge_fact(
    fact: Mapping[str, object],
    messages: Sequence[StoredMessage],
    *,
    corrects: Fact | None = None,
    existing: Sequence[Fact] = (),
    config: MemoryConfig | None = None,
    time_zone: tzinfo | None = None,
) -> Extraction:
    """Return what becomes of one fact that a model tells unasked, by the rules of `extract_facts`.

    Args:
        fact: Its `content`, `category` and `confidence`.
        messages: What was said, oldest first; with no new message of the user, nothing was.
        corrects: The fact that it takes the place of, if any.
        existing: The active facts.
        config: Threshold and longest fact.
        time_zone: Where the user is.
    """
    task = _Task.of(messages, existing, None, config, time_zone)
    if not new_messages(task.messages):
        return Extraction(refused=(Refusal(reason="not_said"),))
    # Whoever tells it unasked may have been talked into it: half of its words are the user's, or it waits to be said.
    said = [message.text for message in task.messages if message.role == "user"]
    said += [
        line for each in new_messages(task.messages) if answers(each.text, line := line_before(each, task.messages))
    ]
    wanted = words(str(fact.get("content", "")))
    if 2 * len(wanted & words(" ".join((*said, corrects.content if corrects else "")))) < len(wanted):
        return Extraction(refused=(Refusal(reason="not_said"),))
    if corrects is not None:
        task = replace(task, shown=[corrects, *task.shown])
        fact = {**fact, "action": "corrects", "known": 1}
    return task.judged(Answer(facts=(fact,)))


def _moved(time: str, zone: tzinfo) -> str:
    """Return an ISO time as the clocks of a zone tell it; one without an offset, or that is none, stays."""
    try:
        moment = datetime.fromisoformat(time)
        return moment.astimezone(zone).isoformat() if moment.tzinfo else time
    except (ValueError, OverflowError):
        return time


@dataclass(frozen=True, slots=True)
class _Task:
    """What the model is to read, and what its answer is judged by."""

    messages: Sequence[StoredMessage]
    existing: Sequence[Fact]
    shown: Sequence[Fact]
    profile: Profile
    config: MemoryConfig
    zone: tzinfo | None

    @classmethod
    def of(
        cls,
        messages: Sequence[StoredMessage],
        existing: Sequence[Fact],
        profile: Profile | None,
        config: MemoryConfig | None,
        zone: tzinfo | None,
    ) -> Self:
        active = [fact for fact in existing if fact.status == "active"]
        shown = strongest_first(active)
        if len(active) > MAX_SHOWN:  # of many facts, those that have to do with what was said
            shown = related(active, " ".join(message.text for message in messages), MAX_SHOWN)
        if zone:  # the same moments, whose days may be others
            messages = [replace(message, time=_moved(message.time, zone)) for message in messages]
        return cls(in_pieces(messages), active, shown, profile or {}, config or MemoryConfig(), zone)

    def extraction(self) -> Generator[ExtractionCall, str, Extraction]:
        """Ask the model in the form that it can bear, and return what of its answer holds."""
        new = new_messages(self.messages)
        if not new:
            return Extraction()
        if self.config.extraction_form == "brief":
            return self.judged((yield from read_briefly(self.messages, self.shown, self.config)))
        prompt, schema = self._prompt(), answer_schema(new, self.config)
        raw = yield ExtractionCall(prompt, schema)
        answer = parse_answer(raw)
        found = [(each, FoundFact.of(each)) for each in answer.facts]
        loose = [fact for _, fact in found if fact.quote and not is_quoted(fact, self.messages)]
        if loose:  # once more for words that stand nowhere; what still quotes none that do is refused
            wrong, more = "\n".join(f"- {fact.quote}" for fact in loose), tuple[Any, ...]()
            again = yield ExtractionCall(
                [*prompt, AIMessage(raw), HumanMessage(prompts.EXTRACTION_AGAIN.format(quotes=wrong))], schema
            )
            with suppress(ExtractionError):
                more = parse_answer(again).facts
            logger.info("asked once more for the words of %d facts, got %d", len(loose), len(more))
            answer = answer.model_copy(update={"facts": (*(each for each, fact in found if fact not in loose), *more)})
        return self.judged(answer)

    def _prompt(self) -> list[BaseMessage]:
        """Return what the model is sent: the rules, then known facts, profile and messages as material."""
        known = "\n".join(f"{n}. {one_line(fact.content)}" for n, fact in enumerate(self.shown, 1))
        sections = "\n".join(f"{name.partition('.')[2]}: {one_line(text)}" for name, text in self.profile.items())
        material = prompts.EXTRACTION_INPUT.format(
            known=known or "(none)", profile=sections or "(none)", messages=render_dialogue(self.messages)
        )
        rules = (self.config.extraction_prompt or prompts.EXTRACTION).replace("{fields}", FIELDS)
        return [SystemMessage(rules), HumanMessage(material)]

    def judged(self, answer: Answer) -> Extraction:
        """Return what of the model's answer holds."""
        extraction = validated(
            answer,
            self.messages,
            existing=self.existing,
            shown=self.shown,
            profile=self.profile,
            config=self.config,
        )
        if self.zone:  # what is stored tells its times in UTC, as some are compared as text
            extraction = replace(
                extraction,
                changes=tuple(replace(each, said_at=_moved(each.said_at, UTC)) for each in extraction.changes),
                profile=tuple(replace(each, said_at=_moved(each.said_at, UTC)) for each in extraction.profile),
            )
        logger.info(
            "extracted %d changes and %d sections from %d messages, refused %s",
            *(len(extraction.changes), len(extraction.profile), len(self.messages), reasons(extraction.refused)),
        )
        return extraction
