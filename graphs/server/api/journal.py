"""The daily journal: what was said, by day."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Query
from pydantic import Field

from graphs.server.api.guard import RefusedRequest
from graphs.server.api.routing import AgentCall, ApiModel, Call, MemoryRouter, PageQuery, StrictModel
from memory.config import Hold
from memory.facts.fact import HELD, Fact
from memory.facts.fact_set import FactSet
from memory.facts.rows import read_fact_set
from memory.journal.entry import JournalEntry, LineSource, days_before
from memory.journal.journal import read_journal, read_journal_entries
from memory.message import Role, day_of, iso_time
from memory.recall.past import Untold, read_untold, untold_of, write_answer

router = MemoryRouter()

Day = Annotated[str, Field(pattern=r"^(\d{4}-\d{2}-\d{2})?$")]


class JournalMessage(ApiModel):
    """One message."""

    id: str
    role: Role
    """`user`: yours. `other`: another person's in the thread, of which no fact is made."""
    name: str
    """What the client called the person; empty if it did not."""
    text: str
    time: str


class JournalExchange(ApiModel):
    """What was said together."""

    key: str
    """What names it; the tools of memory call it its source."""
    day: str
    """The user's calendar day."""
    thread_id: str
    source: LineSource
    """`turn`: it was learned. `cut`: a summary took it out of its thread."""
    waits: list[Hold] = Field(default=[])
    """Why nothing tells what was said in it, until your yes. Empty: it is told."""
    refused: bool = False
    """You said no to it."""
    messages: list[JournalMessage]


class JournalPage(ApiModel):
    """A page of the journal, oldest first."""

    entries: list[JournalExchange]
    total: int


class JournalFilter(PageQuery):
    """Which entries to read."""

    since: Day = ""
    """From this day on (YYYY-MM-DD)."""
    until: Day = ""
    """Up to this day, included."""
    thread: str | None = Field(default=None, max_length=200)
    source: LineSource | None = None
    """Only what is marked so."""
    waits: bool = False
    """Only what waits for your yes, and for no fact's."""
    limit: int = Field(default=100, ge=1, le=1000)


@router.answers("GET /journal")
async def list_journal(call: AgentCall, asked: Annotated[JournalFilter, Query()]) -> JournalPage:
    """Read the journal."""
    found = [
        line
        for line in (await known_of(call)).lines(asked.since)
        if asked.thread in (None, line.entry.thread_id)
        and asked.source in (None, line.entry.source)
        and (not asked.until or line.entry.day <= asked.until)
        and (not asked.waits or line.is_asked)
    ]
    return JournalPage(entries=[line.view() for line in asked.cut(found)], total=len(found))


class RecallChoice(StrictModel):
    """Say whether what waits in an exchange may be told again."""

    recall: bool | None
    """`true`: yes; `false`: no; `null` takes back what you said."""


@router.answers("PUT /journal/{key}/recall", 404, 409)
async def put_recall(call: AgentCall, key: str, choice: RecallChoice) -> JournalExchange:
    """Answer for one exchange. A no deletes nothing: the journal keeps it, and nothing tells it."""
    (line,) = await answer(call, [key], choice.recall)
    return line.view()


@dataclass(frozen=True, slots=True)
class Line:
    """An exchange of the journal, and what of it waits for a yes."""

    entry: JournalEntry
    waits: Untold

    @property
    def is_asked(self) -> bool:
        """Whether the user is asked about it: one of their messages waits, and they said nothing yet."""
        return self.waits.is_asked and not self.waits.is_refused

    def view(self) -> JournalExchange:
        """Return it as the memory API shows it."""
        shown = JournalExchange.model_validate(self.entry)
        return shown.model_copy(update={"waits": list(self.waits.why), "refused": self.waits.is_refused})


@dataclass(frozen=True, slots=True)
class Known:
    """All facts of a user with what they said, and the journal, oldest first: read once for all that is shown."""

    facts: FactSet
    journal: list[JournalEntry]

    @property
    def held(self) -> list[Fact]:
        """The facts that wait for a person, the newest first."""
        held = [fact for fact in self.facts.rows.values() if fact.status in HELD]
        return sorted(held, key=lambda fact: (fact.updated_at, fact.id), reverse=True)

    def lines(self, since: str = "") -> list[Line]:
        """Return the journal from a day on, with what of it waits."""
        entries = [entry for entry in self.journal if entry.day >= since]
        return list(map(Line, entries, untold_of(self.facts, entries)))

    def asked_about(self, call: Call) -> list[Line]:
        """Return what the user is asked about, newest first: as long, and as many, as facts that wait at most.

        What is older, or more, goes on waiting; the journal shows it.
        """
        days = call.config.approval_days
        found = self.lines(days_before(day_of(iso_time(call.now)), days) if days else "")
        return [line for line in found[::-1] if line.is_asked][: call.config.max_waiting]


async def known_of(call: Call) -> Known:
    """Read all that a user has of facts and journal."""
    facts = await call.run(read_fact_set(call.owner))
    return Known(facts, await call.run(read_journal(call.owner)))


async def answer(call: Call, keys: list[str], yes: bool | None) -> list[Line]:
    """Write an answer about exchanges, and return them as they are then; 404 if one of them is not there."""
    entries = await call.run(read_journal_entries(call.owner, keys))
    if len(entries) < len(keys):
        raise RefusedRequest(404, "This exchange is not in the journal any more.")
    if not all(entry.screened().held for entry in entries):
        raise RefusedRequest(409, "Nothing in this exchange waits for a yes.")
    await call.run(write_answer(call.owner, entries, yes=yes, now=iso_time(call.now)))
    return list(map(Line, entries, await call.run(read_untold(call.owner, entries))))
