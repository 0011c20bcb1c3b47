"""The facts of a document on their way onto a shelf: each checked as what a model extracted is. Pure."""

from collections.abc import Collection, Mapping

from memory.config import MemoryConfig
from memory.facts.changes import Reason
from memory.facts.deletions import moment
from memory.facts.fact import SOURCES, Fact, checked_category, checked_confidence, checked_content
from memory.facts.rules import FactSet, is_full, limit, place
from memory.screening.door import holds_secret, is_instruction_like
from memory.text import normalize, sanitize

Json = Mapping[str, object]


class Intake:
    """A document's facts on their way onto a shelf."""

    def __init__(
        self, fact_set: FactSet, *, epoch: str, now: str, config: MemoryConfig, fresh: Collection[str] = ()
    ) -> None:
        self._before = frozenset(fact_set.rows) - frozenset(fresh)  # of these keys are facts of the same document
        self._fact_set, self._epoch, self._now, self._config = fact_set, epoch, now, config
        self.created: list[Fact] = []
        self.places: list[int] = []
        self.refused: list[tuple[int, Reason]] = []
        self.known = 0
        self._said = {(fact.status, normalize(fact.content)) for fact in fact_set.rows.values()}

    def take(self, at: int, raw: object) -> None:
        """Take one fact, or note why not."""
        if not isinstance(raw, Mapping):
            self.refused.append((at, "malformed"))
            return
        try:
            draft = self._draft(raw)
        except ValueError as error:
            self.refused.append((at, _reason(str(error))))
            return
        if holds_secret(draft.content):
            self.refused.append((at, "secret"))
        elif (draft.status, normalize(draft.content)) in self._said:
            self.known += 1
        elif draft.status == "active" and is_full(self._fact_set, self._config):
            self.refused.append((at, "full"))
        else:
            self._fact_set, fact = place(self._fact_set, draft)
            self.created.append(fact)
            self.places.append(at)
            self._said.add((fact.status, normalize(fact.content)))

    def finished(self) -> FactSet:
        """Return the shelf with what was taken, within its limit."""
        return limit(self._fact_set, self._config, frozenset(self._fact_set.rows) - self._before)

    def _draft(self, raw: Json) -> Fact:
        content = checked_content(raw.get("content"))
        suspect = raw.get("status") == "quarantined" or is_instruction_like(content)
        return Fact(
            id="",
            content=content,
            category=checked_category(raw.get("category")),
            confidence=checked_confidence(raw.get("confidence")),
            created_at=_time(raw.get("createdAt"), self._now),
            updated_at=self._now,
            source=next((source for source in SOURCES if source == raw.get("source")), "api"),
            status="quarantined" if suspect else "active",
            pinned=raw.get("pinned") is True,
            epoch=self._epoch,
            thread_id=short_text(raw.get("thread_id")),
            message_ids=short_texts(raw.get("message_ids")),
            edited_at=_time(raw.get("editedAt"), ""),
        )


def _reason(message: str) -> Reason:
    if message.startswith("category"):
        return "unknown_category"
    if message.startswith("confidence"):
        return "bad_confidence"
    return "too_long" if "at most" in message else "empty"


def _time(value: object, now: str) -> str:
    return value if isinstance(value, str) and moment(value) is not None else now


def short_text(value: object) -> str:
    """Return an id or a name as a store takes it; empty for what is no text."""
    return sanitize(value, 200) if isinstance(value, str) else ""


def short_texts(value: object) -> tuple[str, ...]:
    """Return the ids of a list, at most 100."""
    return tuple(short_text(each) for each in value[:100] if isinstance(each, str)) if isinstance(value, list) else ()
