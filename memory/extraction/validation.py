"""Which facts of a model's answer hold: each is judged alone, so that a bad one costs no good one. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from typing import Final

from memory import prompts
from memory.extraction.dialogue import answers, day_written, line_before, new_messages
from memory.extraction.form import MAX_FACTS_PER_ANSWER, Answer, FoundFact
from memory.extraction.grounding import has_blank, stands_in, unfounded
from memory.extraction.task import Task
from memory.facts.changes import Change, Extraction, Reason, Refusal, Section
from memory.facts.fact import Fact, period_end
from memory.facts.profile import SECTIONS, fitted_section
from memory.facts.words import words
from memory.message import StoredMessage, with_replies
from memory.screening.door import answers_with_secret, screened, secret_parts, secret_values
from memory.text import normalize, sentences

# What cites no message of the user, or is a section of the profile, has at least this share of its words from the user.
_GROUNDED: Final = 0.5
# Small models repeat the facts of the examples in their prompt. One with so many words, all from there, is a retelling.
_EXAMPLES: Final = frozenset(map(words, prompts.BRIEF_NOTES))
_EXAMPLE_WORDS: Final = words(prompts.EXTRACTION.partition("Example.")[2])
_RETOLD: Final = 4


def is_quoted(fact: FoundFact, messages: Sequence[StoredMessage]) -> bool:
    """Say whether the words that a fact quotes stand in the message that it cites, or in the line before it."""
    new = new_messages(messages)
    cited = _numbered(new, fact.message) if fact.message else new
    return any(stands_in(fact.quote or "", text) for each in cited for text in (each.text, line_before(each, messages)))


class Validation:
    """What judges one answer by what was said.

    Attributes:
        task: What the answer is to. Its messages are looked through once, for all facts.
        new: The messages that facts may come from.
        said: The words of the user.
    """

    def __init__(self, task: Task) -> None:
        self._changes: list[Change] = []
        self._refused: list[Refusal] = []
        self.task, self.new, self._sensitive, self._ordered = task, new_messages(task.messages), set[str](), set[str]()
        messages = task.messages
        # A question that a few words answer tells what they mean.
        asked = [line if answers(each.text, line := line_before(each, messages)) else "" for each in self.new]
        told = [f"{each.text} {line}" for each, line in zip(self.new, asked, strict=True)]
        self._words_of_new = list(map(words, told))
        self._user_text = " ".join((*(message.text for message in messages if message.role == "user"), *asked))
        self.said = words(self._user_text)
        self._heard = words(" ".join(message.text for message in messages if message.role != "user"))
        # What else tells the words of a secret holds it, too, also where it names none.
        texts = [message.text for message in messages]
        secret = [part for one in messages for part in secret_parts(one.text, is_reply=one.role == "assistant")]
        secret += [text for at, text in enumerate(texts) if answers_with_secret(texts[:at], text)]
        self._secrets = [value for part in secret for value in secret_values(part)]
        # What the user also says where no secret is tells none.
        theirs = (one.text for one in messages if one.role == "user" and one.text not in secret)
        harmless = {part for text in theirs for part in sentences(text)}.difference(secret)
        self._secret = words(" ".join(secret)) - words(" ".join(harmless))
        self._known = {normalize(fact.content) for fact in task.existing}

    def extraction(self, answer: Answer) -> Extraction:
        """Return the changes, sections and refusals of the answer, as the model gave it."""
        told = [each for each in answer.secrets if any(stands_in(each, message.text) for message in self.task.messages)]
        self._secret |= words(" ".join(told))
        orders = _source_ids(_numbered(self.new, *answer.orders))
        held = with_replies(self.task.messages, orders)
        self._ordered = {message.text for message in self.task.messages if message.id in held}
        for fact in answer.facts[:MAX_FACTS_PER_ANSWER]:
            self._take(fact)
        surplus = max(0, len(answer.facts) - MAX_FACTS_PER_ANSWER + answer.unread)
        # A section tells of all messages together, so that none can be told from an order that is among them.
        sections = [self._section(name, text) for name, text in answer.profile.items() if not orders]
        self._refused += [Refusal(reason="too_many")] * surplus
        # Of an answer that breaks off, or marks nothing, nobody knows what is harmless.
        marked = self.new if surplus or answer.sensitive is None else _numbered(self.new, *answer.sensitive)
        return Extraction(
            changes=tuple(dict.fromkeys(self._changes)),
            refused=(*self._refused, *(each for each in sections if isinstance(each, Refusal))),
            profile=tuple(each for each in sections if isinstance(each, Section)),
            harmless=frozenset(_source_ids(self.new)).difference(_source_ids(marked), self._sensitive),
            secrets=(*told, *self._secrets),
            orders=frozenset(orders),
        )

    def _take(self, fact: FoundFact) -> None:
        """Add the change of one fact, or its refusal, and note what it says of the message that it rests on."""
        known, sources = fact.known or 0, self._sources(fact)
        rests_on = sources or self.new
        if fact.topic != "none":  # of which message it tells, only a number of one says
            self._sensitive.update(_source_ids(_numbered(self.new, fact.message) or self.new))
        # A correction of no fact that was shown is news.
        target = self.task.shown[known - 1] if fact.action != "new" and 1 <= known <= len(self.task.shown) else None
        reason = next(self._objections(fact, target, sources), None)
        last, content = rests_on[-1], (fact.content or "")[: self.task.config.max_fact_chars]
        change = Change(action="new", sources=_source_ids(rests_on), said_at=last.time, said_after=last.edit)
        if target:
            action = fact.action or "corrects"
            change = replace(change, action=action, target=target.id, target_revision=target.revision)
        if change.action in ("new", "corrects"):
            begin, end = _period(fact, day_written(last, self.task.zone))
            change = replace(
                change, content="" if reason == "secret" else content, category=fact.category or "context",
                confidence=fact.confidence or 0.0, valid_from=begin, valid_to=end, topic=fact.topic or "",
            )  # fmt: skip
        if reason:
            self._refused.append(change.refused(reason))
        else:
            self._changes.append(change)

    @cached_property
    def _told(self) -> tuple[str, frozenset[str]]:
        """What lends a section, which is rewritten as a whole, numbers, dates and words: all that is known, or said."""
        known = (*(fact.content for fact in self.task.existing), *self.task.profile.values())
        return " ".join((self._user_text, *known)), frozenset(self.said | words(" ".join(known)))

    def _section(self, name: str, text: str) -> Section | Refusal | None:
        """Return a section of the profile as it was rewritten, or why not; `None` if there is no such section."""
        full = next((each for each in SECTIONS if name in (each, each.partition(".")[2])), None)
        if full is None:
            return None
        wanted, newest = words(text), self.new[-1]
        reason = self._objection(text)
        if not reason and (
            len(wanted & self._told[1]) < _GROUNDED * len(wanted)
            or unfounded(text, self._told[0], day_written(newest, self.task.zone))
        ):
            reason = "not_said"
        if reason:
            return Refusal(reason=reason, content="" if reason == "secret" else fitted_section(text))
        return Section(
            name=full,
            text=fitted_section(text),
            said_at=newest.time,
            said_after=newest.edit,
        )

    def _objections(self, fact: FoundFact, target: Fact | None, sources: Sequence[StoredMessage]) -> Iterator[Reason]:
        """Yield why a fact does not hold; the first reason counts.

        Args:
            fact: What the model told.
            target: The known fact that it confirms, corrects or ends.
            sources: The user's messages that it was taken from; none if it cites one that is not there.
        """
        is_confirmed = target is not None and fact.action == "confirms"
        is_told = target is None or fact.action == "corrects"  # it says what is true, in a sentence of its own
        if fact.action is None or (fact.action == "ends" and target is None):
            yield "malformed"
        if fact.quote and not is_quoted(fact, self.task.messages):
            yield "not_said"
        if target and is_confirmed and not fact.quote and not self._is_repeated(target.content):
            yield "not_said"
        confidence = 1.0 if is_confirmed else fact.confidence
        if confidence is None:
            yield "bad_confidence"
        elif confidence < self.task.config.confidence_threshold:
            yield "low_confidence"
        if is_told:
            yield from self._unfit(fact)
        if not sources:
            yield "not_said"
        if is_told:
            yield from self._unsaid(fact, target, sources)
        # Models repeat what they were shown as known.
        content = fact.content or ""
        if target is None and normalize(content) in self._known and not self._is_repeated(content):
            yield "duplicate"

    def _unfit(self, fact: FoundFact) -> Iterator[Reason]:
        """Yield what is wrong with what a fact tells, whoever said it."""
        content = fact.content or ""
        if len(content) > self.task.config.max_fact_chars:
            yield "too_long"
        if not normalize(content):
            yield "empty"
        if fact.category is None:
            yield "unknown_category"
        if objection := self._objection(content):
            yield objection
        if words(content) & self._secret:
            yield "suspected"

    def _unsaid(self, fact: FoundFact, target: Fact | None, sources: Sequence[StoredMessage]) -> Iterator[Reason]:
        """Yield that the user did not say it; or that it rests on an order, or has numbers of nobody, which waits.

        Without a quote, a fact has at least as many of the user's words as of the assistant's. Words of neither are a
        paraphrase, or another language, and count for nobody.
        """
        wanted = words(fact.content or "")
        is_retold = len(wanted) >= _RETOLD and wanted <= _EXAMPLE_WORDS and not wanted & self.said
        if is_retold or (wanted in _EXAMPLES and not wanted <= self.said):
            yield "not_said"
        if not fact.quote and len(wanted & (self._heard - self.said)) > len(wanted & self.said):
            yield "not_said"
        lines = [line_before(each, self.task.messages) for each in sources] if fact.quote else []
        rests_on = [each.text for each in sources if stands_in(fact.quote or each.text, each.text)] or lines
        if not self._ordered.isdisjoint(rests_on):
            yield "instruction_like"
        # "On the 7th" may be said of the message's own day.
        days = [day.isoformat() for each in sources if (day := day_written(each, self.task.zone))]
        said = " ".join((self._user_text, *lines, *days, target.content if target else ""))
        if unfounded(fact.content or "", said, day_written(sources[-1], self.task.zone)):
            yield "unfounded"

    def _objection(self, text: str) -> Reason | None:
        """Say why a text must not be kept, whoever said it."""
        return screened(text) or ("placeholder" if has_blank(text, self._user_text) else None)

    def _is_repeated(self, content: str) -> bool:
        """Say whether the user said or affirmed it again just now."""
        return any(words(content) & each for each in self._words_of_new)

    def _sources(self, fact: FoundFact) -> list[StoredMessage]:
        """Return the user's messages a fact was taken from; none where it cites one that is not there.

        The one it cites; where it cites none, or one that is not there, the one that shares most words with it.
        """
        cited, wanted = _numbered(self.new, fact.message), words(fact.content or "")
        if cited or not wanted:
            return cited or self.new
        if fact.quote and (quoted := [each for each in self.new if stands_in(fact.quote, each.text)]):
            return quoted[:1]
        shared, at = max((len(wanted & own), -at) for at, own in enumerate(self._words_of_new))
        if shared >= _GROUNDED * len(wanted):
            return [self.new[-at]]
        return [] if "message" in fact.model_fields_set else self.new


def _period(fact: FoundFact, said: date | None) -> tuple[str, str]:
    """Return from when and until when a fact holds, as the model told it; empty where that cannot be.

    A fact that was over when it was said tells of the past, which stays true: it has no end.
    """
    begin, end = fact.valid_from or "", fact.valid_until or ""
    begin, last = begin if period_end(begin) else "", period_end(end)
    if last is None or said is None or last < said or (begin and begin[: len(end)] > end[: len(begin)]):
        end = ""
    return begin, end


def _numbered(new: Sequence[StoredMessage], *numbers: int | None) -> list[StoredMessage]:
    return [message for number, message in enumerate(new, 1) if number in numbers]


def _source_ids(sources: Iterable[StoredMessage]) -> tuple[str, ...]:
    """Return the ids of messages, once for all pieces of one."""
    return tuple(dict.fromkeys(message.id for message in sources))
