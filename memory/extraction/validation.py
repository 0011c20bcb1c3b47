"""Which facts of a model's answer hold: each is judged alone, so that a bad one costs no good one. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import Final

from memory import prompts
from memory.config import MemoryConfig
from memory.extraction.answer import Answer
from memory.extraction.dialogue import answers, day_of, line_before, new_messages
from memory.extraction.foreign_examples import FOREIGN_NOTES
from memory.extraction.form import MAX_FACTS_PER_ANSWER, FoundFact
from memory.extraction.grounding import has_blank, stands_in, unfounded
from memory.facts.changes import Change, Extraction, Reason, Refusal, Section
from memory.facts.fact import Fact, period_end
from memory.facts.profile import SECTIONS, Profile, base_of, bounded
from memory.facts.words import words
from memory.message import StoredMessage
from memory.screening.door import screened, secret_parts
from memory.text import normalize

# What cites no message of the user, or is a section of the profile, has at least this share of its words from the user.
_GROUNDED: Final = 0.5
_EXAMPLE: Final = frozenset(map(normalize, (*prompts.BRIEF_NOTES, *FOREIGN_NOTES)))
_EXAMPLE_WORDS: Final = words(prompts.EXTRACTION.partition("Example.")[2])
# A fact of so many words that all stand there, and of which the user said none, was copied from there.
_RETOLD: Final = 4


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
    for fact in map(FoundFact.of, answer.facts[:MAX_FACTS_PER_ANSWER]):
        reading.take(fact)
        reading.mark(fact)
    surplus = len(answer.facts) - MAX_FACTS_PER_ANSWER + answer.unread
    refused = [*reading.refused, *[Refusal(reason="too_many")] * max(0, surplus)]
    found = [reading.section(name, text) for name, text in answer.profile]
    return Extraction(
        changes=tuple(reading.changes),
        refused=(*refused, *(each for each in found if isinstance(each, Refusal))),
        profile=tuple(each for each in found if isinstance(each, Section)),
        harmless=reading.harmless(answer.sensitive) if not surplus > 0 else frozenset(),
    )


def is_quoted(fact: FoundFact, messages: Sequence[StoredMessage]) -> bool:
    """Say whether the words that a fact quotes stand in the message that it cites, or in the line before it."""
    new = new_messages(messages)
    cited = new[fact.message - 1 : fact.message] if fact.message and fact.message > 0 else new
    return any(stands_in(fact.quote or "", text) for each in cited for text in (each.text, line_before(each, messages)))


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
        self._messages, self._new = messages, new_messages(messages)
        self._shown, self._profile, self._config = shown, profile, config
        # A question that a few words answer tells what they mean.
        asked = {id(each): line for each in self._new if answers(each.text, line := line_before(each, messages))}
        spoken = [message.text for message in messages if message.role == "user"]
        self._user_text = " ".join((*spoken, *asked.values()))
        self._words_of_new = [words(f"{each.text} {asked.get(id(each), '')}") for each in self._new]
        self._just_said = frozenset[str]().union(*self._words_of_new)
        self._said = words(self._user_text)
        self._heard = _words(message.text for message in messages if message.role != "user")
        self._shown_text = " ".join((*(fact.content for fact in shown), *profile.values()))
        self._remembered = _words([*(fact.content for fact in existing), *profile.values()])
        # What else tells the words of a secret holds it, too, also where it names none.
        self._secret = _words(part for message in messages for part in secret_parts(message.text))
        self._contents = {fact.id: fact.content for fact in existing}
        self._revisions = {fact.id: fact.revision for fact in existing}
        self._ids = {normalize(fact.content): fact.id for fact in existing if fact.status == "active"}
        self._taken: set[str] = set()
        self._corrected: set[tuple[str, str | None]] = set()
        self._sensitive: set[str] = set()

    def take(self, fact: FoundFact) -> None:
        """Add the change of one fact, or its refusal."""
        try:
            self.changes.append(self._change(fact))
        except _Refused as refused:
            sources = self._cited(fact) or self._new
            self.refused.append(
                Refusal(
                    reason=refused.reason,
                    content="" if refused.reason == "secret" else (fact.content or "")[: self._config.max_fact_chars],
                    category=fact.category or "context",
                    confidence=fact.confidence or 0.0,
                    sources=_ids(sources),
                    said_at=sources[-1].time,
                )
            )

    def mark(self, fact: FoundFact) -> None:
        """Note what a fact says of the message that it rests on; of one that cites none, it says so of all."""
        if fact.topic != "none":
            self._sensitive.update(_ids(self._cited(fact) or self._new))

    def harmless(self, numbers: Iterable[object] | None) -> frozenset[str]:
        """Return the messages in which the answer found nothing sensitive; none where it does not say it of any."""
        if numbers is None:
            return frozenset()
        said = {str(number).removesuffix(".0") for number in numbers}
        marked = {message.id for at, message in enumerate(self._new, 1) if str(at) in said}
        return frozenset(_ids(self._new)) - self._sensitive - marked

    def section(self, name: str, text: str) -> Section | Refusal | None:
        """Return a section of the profile as it was rewritten, or why not; `None` if there is no such section."""
        full = next((each for each in SECTIONS if name in (each, each.partition(".")[2])), None)
        if full is None:
            return None
        reason = self._objection(text)
        if reason is None:
            told = len(words(text) & (self._said | self._remembered))
            # It is rewritten as a whole, so all that it was told of before may lend it numbers and dates.
            said = f"{self._user_text} {self._shown_text}"
            if told < _GROUNDED * len(words(text)) or unfounded(text, said, day_of(self._new[-1])):
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

    def _change(self, fact: FoundFact) -> Change:
        """Return what a fact changes; a correction of no fact that was shown is news."""
        action, known = fact.action, fact.known or 0
        target = self._shown[known - 1].id if 1 <= known <= len(self._shown) else None
        if action is None or (action == "ends" and target is None):
            raise _Refused("malformed")
        if target is None or action == "new":
            action, target = "new", None
        if fact.quote and not is_quoted(fact, self._messages):
            raise _Refused("not_said")
        if action == "confirms" and not fact.quote and not self._is_repeated(self._contents.get(target or "", "")):
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
        sources = self._sources(fact)
        self._check_said(content, target, sources, has_quote=bool(fact.quote))
        self._learn(content, target, fact)
        begin, end = _period(fact, day_of(sources[-1]))
        change = Change(
            action=action, content=content, category=fact.category, confidence=confidence, target=target,
            valid_from=begin, valid_to=end, topic=fact.topic or "",
        )  # fmt: skip
        return self._made(fact, change)

    def _made(self, fact: FoundFact, change: Change) -> Change:
        sources = self._sources(fact)
        return replace(
            change,
            sources=_ids(sources),
            said_at=sources[-1].time,
            said_after=sources[-1].edit,
            target_revision=self._revisions.get(change.target or "", 0),
        )

    def _content(self, fact: FoundFact) -> str:
        content = fact.content or ""
        if len(content) > self._config.max_fact_chars:
            raise _Refused("too_long")
        if not normalize(content):
            raise _Refused("empty")
        return content

    def _confidence(self, fact: FoundFact) -> float:
        if fact.confidence is None:
            raise _Refused("bad_confidence")
        if fact.confidence < self._config.confidence_threshold:
            raise _Refused("low_confidence")
        return fact.confidence

    def _objection(self, text: str) -> Reason | None:
        """Say why a text must not be kept, whoever said it."""
        return screened(text) or ("placeholder" if has_blank(text, self._user_text) else None)

    def _check_said(
        self, content: str, target: str | None, sources: Sequence[StoredMessage], *, has_quote: bool
    ) -> None:
        """Refuse what the user did not say; what has numbers that nobody said waits.

        Without a quote, a fact has at least as many of the user's words as of the assistant's. Words of neither are a
        paraphrase, or another language, and count for nobody.
        """
        wanted = words(content)
        is_retold = len(wanted) >= _RETOLD and wanted <= _EXAMPLE_WORDS and not wanted & self._said
        if is_retold or (normalize(content) in _EXAMPLE and not wanted <= self._said):
            raise _Refused("not_said")  # small models repeat the prompt's example
        if not has_quote and len(wanted & (self._heard - self._said)) > len(wanted & self._said):
            raise _Refused("not_said")
        lines = (line_before(each, self._messages) for each in sources) if has_quote else ()
        said = " ".join((self._user_text, *lines, self._contents.get(target or "", ""), *_stamps(sources)))
        if unfounded(content, said, day_of(sources[-1])):
            raise _Refused("unfounded")

    def _is_repeated(self, content: str) -> bool:
        """Say whether the user said or affirmed it again just now: models repeat what they were shown as known."""
        return bool(words(content) & self._just_said)

    def _learn(self, content: str, target: str | None, fact: FoundFact) -> None:
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

    def _sources(self, fact: FoundFact) -> list[StoredMessage]:
        """Return the user's messages a fact was taken from.

        The one it cites; where it cites none, or one that is not there, the one that shares most words with it.
        """
        cited, wanted = self._cited(fact), words(fact.content or "")
        if cited or not wanted:
            return cited or self._new
        if fact.quote and (quoted := [each for each in self._new if stands_in(fact.quote, each.text)]):
            return quoted[:1]
        shared, at = max((len(wanted & own), -at) for at, own in enumerate(self._words_of_new))
        if shared >= _GROUNDED * len(wanted):
            return [self._new[-at]]
        if fact.cites:
            raise _Refused("not_said")
        return self._new

    def _cited(self, fact: FoundFact) -> list[StoredMessage]:
        return [message for n, message in enumerate(self._new, 1) if n == fact.message]


def _period(fact: FoundFact, said: date | None) -> tuple[str, str]:
    """Return from when and until when a fact holds, as the model told it; empty where that cannot be.

    A fact that was over when it was said tells of the past, which stays true: it has no end.
    """
    begin, end = fact.valid_from or "", fact.valid_until or ""
    begin, last = begin if period_end(begin) else "", period_end(end)
    if last is None or said is None or last < said or (begin and begin[: len(end)] > end[: len(begin)]):
        end = ""
    return begin, end


def _stamps(sources: Sequence[StoredMessage]) -> Iterable[str]:
    """Return the days of messages: "on the 7th" may be said of this one."""
    return (day.isoformat() for each in sources if (day := day_of(each)))


def _ids(sources: Iterable[StoredMessage]) -> tuple[str, ...]:
    """Return the ids of messages, once for all pieces of one."""
    return tuple(dict.fromkeys(message.id for message in sources))


def _words(texts: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*map(words, texts))
