"""Which facts of a model's answer hold: each is judged alone, so that a bad one costs no good one. Pure."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, Self

from memory import prompts
from memory.config import CATEGORIES, NAMED_TOPICS, Category, MemoryConfig, Topic
from memory.extraction.answer import MAX_FACTS_PER_ANSWER, Answer
from memory.extraction.days import with_dates
from memory.extraction.dialogue import affirmed, day_of, new_messages
from memory.extraction.foreign_examples import FOREIGN_NOTES
from memory.extraction.grounding import (
    Grounds,
    has_placeholder,
    in_third_person,
    is_small_talk,
    is_thanks_or_greeting,
    unsaid,
)
from memory.extraction.validity import validity
from memory.facts.changes import ACTIONS, Action, Change, Extraction, Reason, Refusal, Section
from memory.facts.fact import Fact
from memory.facts.profile import SECTIONS, Profile, base_of, bounded
from memory.facts.words import words
from memory.message import StoredMessage
from memory.screening.door import screened, secret_parts
from memory.text import normalize, one_line

# What cites no message of the user, or is a section of the profile, has at least this share of its words from the user.
_GROUNDED: Final = 0.5
_EXAMPLE: Final = frozenset(map(normalize, (*prompts.BRIEF_NOTES, *FOREIGN_NOTES)))
_EXAMPLE_WORDS: Final = words(prompts.EXTRACTION.partition("Example.")[2])
# A fact of so many words that all stand there, and of which the user said none, was copied from there.
_RETOLD: Final = 4
_BRACKETS = re.compile(r" \([^()]{4,40}\)")
_NUMERAL = re.compile(r"\s{0,8}[+-]?(?:\d{1,64}(?:\.\d{0,64})?|\.\d{1,64})\s{0,8}")


def validated(
    answer: Answer,
    messages: Sequence[StoredMessage],
    *,
    existing: Sequence[Fact],
    shown: Sequence[Fact],
    profile: Profile,
    config: MemoryConfig,
) -> Extraction:
    """Return the changes, sections and refusals of an answer.

    Args:
        answer: What the model said.
        messages: What it was shown.
        existing: The active facts, for duplicates.
        shown: The facts it was shown, in the order of their numbers.
        profile: The profile it was shown.
        config: Threshold and longest fact.
    """
    reading = _Reading(messages, existing, shown, profile, config)
    for raw in answer.facts[:MAX_FACTS_PER_ANSWER]:
        reading.take(_RawFact.of(raw))
    surplus = len(answer.facts) - MAX_FACTS_PER_ANSWER + answer.unread
    refused = [*reading.refused, *[Refusal(reason="too_many")] * max(0, surplus)]
    found = [reading.section(name, text) for name, text in answer.profile]
    return Extraction(
        changes=tuple(reading.changes),
        refused=(*refused, *(each for each in found if isinstance(each, Refusal))),
        profile=tuple(each for each in found if isinstance(each, Section)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _RawFact:
    """One fact of an answer, as far as it can be read; nothing of it is judged yet.

    Attributes:
        content: On one line; empty if it is no text.
        action: What to do; `None` if it is no such thing.
        known: The number of the known fact, from 1; 0 if there is none.
        message: The number of the message it cites, from 1.
        cites: Whether it cites any, also one that is not there.
        category: `None` if it is none.
        confidence: From 0 to 1; `None` if it is no such number.
        topic: The sensitive topic that it names; empty if none.
    """

    content: str
    action: Action | None
    known: int
    message: float | None
    cites: bool
    category: Category | None
    confidence: float | None
    topic: Topic | Literal[""] = ""

    @classmethod
    def of(cls, raw: object) -> Self:
        """Return what can be read of a value; of one that is no object, nothing."""
        values = raw if isinstance(raw, Mapping) else {"action": None}
        content, wanted, category = values.get("content"), values.get("action", "new"), values.get("category")
        known, confidence = _number(values.get("known")), _number(values.get("confidence"))
        return cls(
            content=one_line(content) if isinstance(content, str) else "",
            action=next((action for action in ACTIONS if action == wanted), None),
            known=int(known) if known is not None and known == int(known) else 0,
            message=_number(values.get("message")),
            cites=values.get("message") is not None,
            category=next((each for each in CATEGORIES if each == category), None),
            confidence=confidence if confidence is not None and 0 <= confidence <= 1 else None,
            topic=next((each for each in NAMED_TOPICS if each == values.get("topic")), ""),
        )


class _Refused(Exception):
    """A fact does not hold; `reason` says why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


class _Reading:
    """One answer on its way to changes."""

    def __init__(
        self,
        messages: Sequence[StoredMessage],
        existing: Sequence[Fact],
        shown: Sequence[Fact],
        profile: Profile,
        config: MemoryConfig,
    ) -> None:
        self.changes: list[Change] = []
        self.refused: list[Refusal] = []
        self._new = new_messages(messages)
        # What the assistant said and the user affirmed counts as the user's.
        spoken = [*(message for message in messages if message.role == "user"), *affirmed(messages)]
        self._said = _words(message.text for message in spoken)
        self._heard = _words(message.text for message in messages if message.role != "user")
        self._remembered = _words([*(fact.content for fact in existing), *profile.values()])
        self._user_text = " ".join(message.text for message in messages if message.role == "user")
        self._shown_texts = [*(fact.content for fact in shown), *profile.values()]
        self._spoken = [(message.text, day_of(message)) for message in spoken]
        self._shown, self._profile, self._config = shown, profile, config
        self._words_of_new = [words(message.text) for message in self._new]
        agreed_to = _words(message.text for message in affirmed(messages, just_now=True))
        self._just_said = agreed_to.union(*self._words_of_new)
        # What else tells the words of a secret holds it, too, also where it names none.
        self._secret = _words(part for message in messages for part in secret_parts(message.text))
        self._contents = {fact.id: fact.content for fact in existing}
        self._revisions = {fact.id: fact.revision for fact in existing}
        self._ids = {normalize(fact.content): fact.id for fact in existing if fact.status == "active"}
        self._taken: set[str] = set()
        self._corrected: set[tuple[str, str | None]] = set()

    @cached_property
    def _grounds(self) -> Grounds:
        return Grounds.of(self._spoken).lent(names=self._shown_texts)

    def take(self, fact: _RawFact) -> None:
        """Add the change of one fact, or its refusal."""
        try:
            self.changes.append(self._change(fact))
        except _Refused as refused:
            sources = self._cited(fact) or self._new
            self.refused.append(
                Refusal(
                    reason=refused.reason,
                    content="" if refused.reason == "secret" else fact.content[: self._config.max_fact_chars],
                    category=fact.category or "context",
                    confidence=fact.confidence or 0.0,
                    sources=_ids(sources),
                    said_at=sources[-1].time,
                )
            )

    def section(self, name: str, text: str) -> Section | Refusal | None:
        """Return a section of the profile as it was rewritten, or why not; `None` if there is no such section."""
        full = next((each for each in SECTIONS if name in (each, each.partition(".")[2])), None)
        if full is None:
            return None
        reason = self._objection(text)
        if reason is None:
            told = len(words(text) & (self._said | self._remembered))
            # It is rewritten as a whole, so all that it was told of before may lend it names, numbers and dates.
            grounds = self._grounds.lent(all_of=self._shown_texts)
            if told < _GROUNDED * len(words(text)) or unsaid(text, grounds, self._user_text):
                reason = "not_said"
        if reason is not None:
            return Refusal(reason=reason, content="" if reason == "secret" else bounded(text))
        newest = self._new[-1]
        return Section(
            name=full,
            text=bounded(text),
            base=base_of(self._profile.get(full, "")),
            said_at=newest.time,
            said_after=newest.edit,
        )

    def _change(self, fact: _RawFact) -> Change:
        """Return what a fact changes; a correction of no fact that was shown is news."""
        action, target = fact.action, self._shown[fact.known - 1].id if 1 <= fact.known <= len(self._shown) else None
        if action is None or (action == "ends" and target is None):
            raise _Refused("malformed")
        if target is None or action == "new":
            action, target = "new", None
        if action == "confirms" and not self._is_repeated(self._contents.get(target or "", "")):
            raise _Refused("not_said")
        if action == "ends":
            self._confidence(fact)
        if action in ("confirms", "ends"):
            return self._made(fact, Change(action=action, target=target))
        content = self._content(fact)
        if fact.category is None:
            raise _Refused("unknown_category")
        confidence = self._confidence(fact)
        if objection := self._objection(content):
            raise _Refused(objection)
        if words(content) & self._secret:
            raise _Refused("suspected")
        self._check_said(content, target, self._sources(fact))
        self._learn(content, target, fact)
        begin, end = validity(content, day_of(self._sources(fact)[-1]))
        change = Change(
            action=action, content=content, category=fact.category, confidence=confidence, target=target,
            valid_from=begin, valid_to=end, topic=fact.topic,
        )  # fmt: skip
        return self._made(fact, change)

    def _made(self, fact: _RawFact, change: Change) -> Change:
        sources = self._sources(fact)
        return replace(
            change,
            sources=_ids(sources),
            said_at=sources[-1].time,
            said_after=sources[-1].edit,
            target_revision=self._revisions.get(change.target or "", 0),
        )

    def _content(self, fact: _RawFact) -> str:
        """Return the content in the third person, with dates behind "yesterday" and the like, which models leave."""
        content = fact.content
        if len(content) <= self._config.max_fact_chars:
            content, day = in_third_person(content), day_of(self._sources(fact)[-1])
            content = with_dates(content, day) if day else content
        if len(content) > self._config.max_fact_chars:
            raise _Refused("too_long")
        if not normalize(content):
            raise _Refused("empty")
        return content

    def _confidence(self, fact: _RawFact) -> float:
        if fact.confidence is None:
            raise _Refused("bad_confidence")
        if fact.confidence < self._config.confidence_threshold:
            raise _Refused("low_confidence")
        return fact.confidence

    def _objection(self, text: str) -> Reason | None:
        """Say why a text must not be kept, whoever said it."""
        return screened(text) or ("placeholder" if has_placeholder(text, self._user_text) else None)

    def _check_said(self, content: str, target: str | None, sources: Sequence[StoredMessage]) -> None:
        """Refuse what tells nothing, and what the user did not say.

        A fact has at least as many of their words as of the assistant's. Words of neither are a paraphrase, or another
        language, and count for nobody.
        """
        if is_small_talk(content) or all(is_thanks_or_greeting(message.text) for message in sources):
            raise _Refused("small_talk")
        wanted = words(content)
        is_retold = len(wanted) >= _RETOLD and wanted <= _EXAMPLE_WORDS and not wanted & self._said
        if is_retold or (normalize(content) in _EXAMPLE and not wanted <= self._said):
            raise _Refused("not_said")  # small models repeat the prompt's example
        if len(wanted & (self._heard - self._said)) > len(wanted & self._said):
            raise _Refused("not_said")
        day, bare = day_of(sources[-1]), _BRACKETS.sub("", content)
        # Dates in brackets that were resolved here are ours, and nobody has to have said them.
        text = bare if day and with_dates(bare, day) == content else content
        grounds = self._grounds.lent(all_of=[self._contents[target]]) if target in self._contents else self._grounds
        if unsaid(text, grounds, *(message.text for message in sources)):
            raise _Refused("not_said")

    def _is_repeated(self, content: str) -> bool:
        """Say whether the user said or affirmed it again just now: models repeat what they were shown as known."""
        return bool(words(content) & self._just_said)

    def _learn(self, content: str, target: str | None, fact: _RawFact) -> None:
        """Refuse what the answer says twice, and what a fact says already: if the user repeated it, it is confirmed.

        A correction is no repeat, even if another fact says the truth by now: the wrong one has to go.
        """
        said = normalize(content)
        same = self._ids.get(said)
        if target is None and same is not None and self._is_repeated(content):
            self.changes.append(self._made(fact, Change(action="confirms", target=same)))
        is_repeat = said in self._taken or same is not None if target is None else (said, target) in self._corrected
        if is_repeat:
            raise _Refused("duplicate")
        self._taken.add(said)
        self._corrected.add((said, target))

    def _sources(self, fact: _RawFact) -> list[StoredMessage]:
        """Return the user's messages a fact was taken from.

        The one it cites; where it cites none, or one that is not there, the one that shares most words with it.
        """
        cited, wanted = self._cited(fact), words(fact.content)
        if cited or not wanted:
            return cited or self._new
        shared, at = max((len(wanted & own), -at) for at, own in enumerate(self._words_of_new))
        if shared >= _GROUNDED * len(wanted):
            return [self._new[-at]]
        if fact.cites:
            raise _Refused("not_said")
        return self._new

    def _cited(self, fact: _RawFact) -> list[StoredMessage]:
        return [message for n, message in enumerate(self._new, 1) if n == fact.message]


def _ids(sources: Iterable[StoredMessage]) -> tuple[str, ...]:
    """Return the ids of messages, once for all pieces of one."""
    return tuple(dict.fromkeys(message.id for message in sources))


def _words(texts: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*map(words, texts))


def _number(value: object) -> float | None:
    """Return a finite number, also of one that is written as text; `None` for all else, `true` too."""
    if isinstance(value, str) and _NUMERAL.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return None
    return number if math.isfinite(number) else None
