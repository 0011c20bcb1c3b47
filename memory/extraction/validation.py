"""What of a model's answer holds: each fact for itself, so that a bad one never loses its good neighbours. Pure."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from memory import prompts
from memory.config import CATEGORIES, Category, MemoryConfig
from memory.extraction.answer import MAX_FACTS_PER_ANSWER, Answer
from memory.extraction.days import with_dates
from memory.extraction.dialogue import affirmed, day_of, new_messages
from memory.extraction.grounding import (
    Grounds,
    has_placeholder,
    in_third_person,
    is_small_talk,
    is_thanks_or_greeting,
    unsaid,
)
from memory.facts.changes import ACTIONS, Action, Change, Extraction, Reason, Refusal, Section
from memory.facts.fact import Fact
from memory.facts.profile import SECTIONS, Profile, base_of, bounded
from memory.facts.words import words
from memory.message import StoredMessage
from memory.screening.door import holds_secret, is_instruction_like
from memory.text import normalize, one_line

# What names no message of the user, or is a section of the profile, has so many of its words from the user at least.
_GROUNDED: Final = 0.5
_EXAMPLE: Final = frozenset(map(normalize, prompts.EXTRACTION_EXAMPLE))
_BRACKETS = re.compile(r" \([^()]{4,40}\)")
_NUMERAL = re.compile(r"\s{0,8}[+-]?(?:\d{1,64}(?:\.\d{0,64})?|\.\d{1,64})\s{0,8}")


class RefusedChange(Exception):
    """One fact was refused; `reason` says why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


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
        reading.take(raw)
    surplus = len(answer.facts) - MAX_FACTS_PER_ANSWER
    refused = [*reading.refused, *[Refusal(reason="too_many")] * max(0, surplus)]
    found = [reading.section(name, text) for name, text in answer.profile]
    return Extraction(
        changes=tuple(reading.changes),
        refused=(*refused, *(each for each in found if isinstance(each, Refusal))),
        profile=tuple(each for each in found if isinstance(each, Section)),
    )


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
        spoken = [*(message for message in messages if message.role == "user"), *affirmed(messages)]
        self._said = _words(message.text for message in spoken)
        self._heard = _words(message.text for message in messages if message.role != "user")
        self._remembered = _words([*(fact.content for fact in existing), *profile.values()])
        self._user_text = " ".join(message.text for message in messages if message.role == "user")
        self._known_texts = [*(fact.content for fact in shown), *profile.values()]
        self._spoken = [(message.text, day_of(message)) for message in spoken]
        self._shown, self._profile, self._config = shown, profile, config
        self._words_of_new = [words(message.text) for message in self._new]
        agreed_to = _words(message.text for message in affirmed(messages, just_now=True))
        self._just_said = agreed_to.union(*self._words_of_new)
        self._contents = {fact.id: fact.content for fact in existing}
        self._revisions = {fact.id: fact.revision for fact in existing}
        self._known = {normalize(fact.content): fact.id for fact in existing if fact.status == "active"}
        self._learned: set[str] = set()

    @cached_property
    def _grounds(self) -> Grounds:
        return Grounds.of(self._spoken).lent(names=self._known_texts)

    def take(self, raw: object) -> None:
        """Add the change of one fact, or its refusal."""
        try:
            if not isinstance(raw, Mapping):
                raise RefusedChange("malformed")
            self.changes.append(self._change(raw))
        except RefusedChange as refused:
            self._refuse(refused.reason, raw if isinstance(raw, Mapping) else {})

    def section(self, name: str, text: str) -> Section | Refusal | None:
        """Return a section of the profile as it was rewritten, or why not; `None` if there is no such section."""
        full = next((each for each in SECTIONS if name in (each, each.partition(".")[2])), None)
        if full is None:
            return None
        if holds_secret(text):
            return Refusal(reason="secret")
        if is_instruction_like(text):
            return Refusal(reason="instruction_like", content=bounded(text))
        if has_placeholder(text, self._user_text):
            return Refusal(reason="placeholder", content=bounded(text))
        if len(words(text) & (self._said | self._remembered)) < _GROUNDED * len(words(text)):
            return Refusal(reason="not_said", content=bounded(text))
        if unsaid(text, self._grounds.lent(all_of=self._known_texts), self._user_text):
            return Refusal(reason="not_said", content=bounded(text))
        newest = self._new[-1]
        return Section(
            name=full,
            text=bounded(text),
            base=base_of(self._profile.get(full, "")),
            said_at=newest.time,
            said_after=newest.edit,
        )

    def _change(self, raw: Mapping[str, object]) -> Change:
        action, target = self._action(raw)
        if action == "confirms":
            if not self._is_repeated(self._contents.get(target or "", "")):
                raise RefusedChange("not_said")
            return self._made(raw, Change(action=action, target=target))
        if action == "ends":
            self._confidence(raw)
            return self._made(raw, Change(action=action, target=target))
        content, category, confidence = self._content(raw), _checked_category(raw), self._confidence(raw)
        self._screen(content, target, raw)
        self._learn(content, target, raw)
        change = Change(action=action, content=content, category=category, confidence=confidence, target=target)
        return self._made(raw, change)

    def _made(self, raw: Mapping[str, object], change: Change) -> Change:
        sources = self._sources(raw)
        revision = self._revisions.get(change.target or "", 0)
        newest = sources[-1]
        return replace(
            change,
            sources=_ids(sources),
            said_at=newest.time,
            said_after=newest.edit,
            target_revision=revision,
        )

    def _refuse(self, reason: Reason, raw: Mapping[str, object]) -> None:
        sources = self._cited(raw) or self._new
        content = "" if reason == "secret" else _text(raw.get("content"))
        refusal = Refusal(
            reason=reason,
            content=content[: self._config.max_fact_chars],
            category=_category(raw) or "context",
            confidence=_share(raw.get("confidence")) or 0.0,
            sources=_ids(sources),
            said_at=sources[-1].time,
        )
        self.refused.append(refusal)

    def _action(self, raw: Mapping[str, object]) -> tuple[Action, str | None]:
        """Return what to do and to which fact; a correction of nothing known is news."""
        wanted = raw.get("action", "new")
        action = next((action for action in ACTIONS if action == wanted), None)
        number = _number(raw.get("known"))
        at = int(number) if number is not None and number == int(number) else 0
        target = self._shown[at - 1].id if 1 <= at <= len(self._shown) else None
        if action is None or (action == "ends" and target is None):
            raise RefusedChange("malformed")
        return (action, target) if target is not None and action != "new" else ("new", None)

    def _content(self, raw: Mapping[str, object]) -> str:
        content = _text(raw.get("content"))
        if len(content) <= self._config.max_fact_chars:
            content = self._dated(in_third_person(content), raw)
        if len(content) > self._config.max_fact_chars:
            raise RefusedChange("too_long")
        if not normalize(content):
            raise RefusedChange("empty")
        return content

    def _dated(self, content: str, raw: Mapping[str, object]) -> str:
        """Return the content with dates behind "yesterday" and the like, which models leave as they are."""
        day = day_of(self._sources(raw)[-1])
        return with_dates(content, day) if day else content

    def _confidence(self, raw: Mapping[str, object]) -> float:
        confidence = _share(raw.get("confidence"))
        if confidence is None:
            raise RefusedChange("bad_confidence")
        if confidence < self._config.confidence_threshold:
            raise RefusedChange("low_confidence")
        return confidence

    def _screen(self, content: str, target: str | None, raw: Mapping[str, object]) -> None:
        if holds_secret(content):
            raise RefusedChange("secret")
        if is_instruction_like(content):
            raise RefusedChange("instruction_like")
        if has_placeholder(content, self._user_text):
            raise RefusedChange("placeholder")
        sources = self._sources(raw)
        if is_small_talk(content) or all(is_thanks_or_greeting(message.text) for message in sources):
            raise RefusedChange("small_talk")
        if not self._was_said(content) or self._has_unsaid(content, target, sources):
            raise RefusedChange("not_said")

    def _has_unsaid(self, content: str, target: str | None, sources: Sequence[StoredMessage]) -> bool:
        """Say whether a name, number or date is nobody's; dates that were resolved here are ours."""
        day, bare = day_of(sources[-1]), _BRACKETS.sub("", content)
        text = bare if day and with_dates(bare, day) == content else content
        grounds = self._grounds.lent(all_of=[self._contents[target]]) if target in self._contents else self._grounds
        return bool(unsaid(text, grounds, *(message.text for message in sources)))

    def _was_said(self, content: str) -> bool:
        """Say whether the user said it: it has at least as many of their words as of the assistant's.

        What the assistant said and the user affirmed counts as the user's.
        Words of neither are a paraphrase, or another language, and count for nobody.
        """
        wanted = words(content)
        if normalize(content) in _EXAMPLE and not wanted <= self._said:
            return False  # small models repeat the prompt's example
        return len(wanted & (self._heard - self._said)) <= len(wanted & self._said)

    def _is_repeated(self, content: str) -> bool:
        """Say whether the user said or affirmed it again just now: models repeat what they were shown as known."""
        return bool(words(content) & self._just_said)

    def _learn(self, content: str, target: str | None, raw: Mapping[str, object]) -> None:
        """Refuse what is known, as a repetition that counts as a confirmation, and what this answer says twice."""
        said = normalize(content)
        known = self._known.get(said)
        if known is not None and known != target and self._is_repeated(content):
            self.changes.append(self._made(raw, Change(action="confirms", target=known)))
        if said in self._learned or (known is not None and known != target):
            raise RefusedChange("duplicate")
        self._learned.add(said)

    def _sources(self, raw: Mapping[str, object]) -> list[StoredMessage]:
        """Return the user's messages a fact was taken from.

        The one it cites; where it cites none, or one that is not there, the one that shares most words with it.
        """
        cited = self._cited(raw)
        wanted = words(_text(raw.get("content")))
        if cited or not wanted:
            return cited or self._new
        shared, at = max((len(wanted & own), -at) for at, own in enumerate(self._words_of_new))
        if shared >= _GROUNDED * len(wanted):
            return [self._new[-at]]
        if raw.get("message") is not None:
            raise RefusedChange("not_said")
        return self._new

    def _cited(self, raw: Mapping[str, object]) -> list[StoredMessage]:
        number = _number(raw.get("message"))
        return [message for n, message in enumerate(self._new, 1) if n == number]


def _ids(sources: Iterable[StoredMessage]) -> tuple[str, ...]:
    """Return the ids of messages, once for all pieces of one."""
    return tuple(dict.fromkeys(message.id for message in sources))


def _words(texts: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*map(words, texts))


def _text(value: object) -> str:
    return one_line(value) if isinstance(value, str) else ""


def _category(raw: Mapping[str, object]) -> Category | None:
    return next((category for category in CATEGORIES if raw.get("category") == category), None)


def _checked_category(raw: Mapping[str, object]) -> Category:
    category = _category(raw)
    if category is None:
        raise RefusedChange("unknown_category")
    return category


def _share(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None


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
