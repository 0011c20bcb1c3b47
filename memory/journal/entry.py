"""One exchange of the journal: the value, its form as a store item, and how what is said again joins it. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, timedelta, tzinfo
from typing import Annotated, Final, Literal, Self

from pydantic import Field

from memory.config import Approval, Hold
from memory.message import StoredMessage, day_of, with_replies
from memory.namespaces import is_imported
from memory.screening.door import answers_with_secret, opening, secrecy, secret_parts
from memory.screening.values import NO_SECRETS, SecretValues
from memory.text import digest

_FREE: Final = frozenset[Hold]()
LineSource = Literal["turn", "cut"]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One exchange: what a user said and the replies to it, or replies that begin a thread.

    Attributes:
        day: The user's calendar day on which it began, ISO 8601.
        thread_id: The thread it was said in.
        messages: What was said, oldest first.
        model: Which model may read it, as `provider:model`; empty means the deployment's own.
        written: The user's day on which it was written down, or left the context by a summary, which may be long
            after; empty means the same day.
        source: `turn`: a turn that was learned. `cut`: a summary took it out of its thread, so that only the journal
            and its roll-up still tell of it.
        held: The messages that wait for the user's yes before anything tells of them, and why, by their ids. What facts
            and answers make of it tells `memory.recall.past`.
        harmless: The messages that a model read meanwhile, and marked so: they wait no longer to be asked about.
        place: The key under which it was read. It stays when an erase takes the message that it is made of.
    """

    day: str
    thread_id: str
    messages: Annotated[tuple[StoredMessage, ...], Field(min_length=1)]
    model: str = ""
    written: str = ""
    source: LineSource = "cut"
    held: Mapping[str, frozenset[Hold]] = field(default_factory=dict, hash=False)
    harmless: Annotated[frozenset[str], Field(exclude=True)] = field(default=frozenset(), compare=False)
    is_screened: bool = field(default=False, compare=False)
    place: Annotated[str, Field(exclude=True)] = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "written", self.written or self.day)

    @property
    def key(self) -> str:
        """The store key: the same however often, and on whatever day, the exchange is written down."""
        return self.place or entry_key(self.thread_id, self.messages[0].id)

    @property
    def size(self) -> int:
        """How many bytes its texts take."""
        return sum(len(message.text.encode("utf-8", "surrogatepass")) for message in self.messages)

    def without(self, ids: Collection[str]) -> Self | None:
        """Return the entry without these messages; `None` if nothing is left."""
        kept = tuple(message for message in self.messages if message.id not in ids)
        if not kept:
            return None
        return replace(self, messages=kept, held={each: said for each, said in self.held.items() if each not in ids})

    def screened(self, before: Sequence[str] = (), secrets: SecretValues = NO_SECRETS) -> Self:
        """Return the entry with all of its messages held if one may hold a secret: replies repeat it without its name.

        What is imported, or written by a hand, is judged when it is read; what is judged, by these secrets alone.
        """
        said = [one.text for one in self.messages]
        repeats = any(map(secrets.are_in, said))
        if self.is_screened and not repeats:
            return self
        # What stands in two messages, the name and the value, is one secret.
        held, near = dict(self.held), [*before, *said]
        is_answer = any(answers_with_secret(near[:at], near[at]) for at in range(len(before), len(near)))
        read = [opening(one.text) if one.role == "assistant" else one.text for one in self.messages]
        explained = (secret_parts(one.text, is_reply=True) for one in self.messages if one.role == "assistant")
        is_told = any(map(secrecy, (*read, ".\n".join(read)))) or any(explained)
        if repeats or is_answer or is_told:
            held = {one.id: held.get(one.id, _FREE) | {"secret"} for one in self.messages}
        return replace(self, held=held, is_screened=True)

    def joined(self, other: Self) -> Self:
        """Return this entry, which is in the journal, once the other tells the same exchange; of one id one message.

        A turn that was answered again has its new answer only. What a summary took away is added to what was there:
        nothing of it is in its thread any more. Words are those that were written down last.
        """
        mine, theirs = ({message.id: message for message in each.messages} for each in (self, other))
        is_newer, is_now_cut = other.messages[-1].time >= self.messages[-1].time, other.source != self.source == "turn"
        if is_newer and other.source == self.source == "turn":
            mine = {each: message for each, message in mine.items() if each in theirs}
        words = {**mine, **theirs} if is_newer else {**theirs, **mine}
        # As of when they were said first: what a summary takes away says them again.
        times = {each: min(told[each].time for told in (mine, theirs) if each in told) for each in {**mine, **theirs}}
        messages = tuple(replace(words[each], time=time) for each, time in times.items())
        # What is in use stays so, and what waits waits on: only other words, and what a model read meanwhile, are
        # judged anew.
        read = with_replies(messages, other.harmless)
        stays = {each for each in mine if each not in read and mine[each].text == words[each].text}
        # But for what is found to be an order, or a secret, only now.
        found = {each: why - {"approval"} for each, why in other.held.items()}
        held = {each: (self.held if each in stays else other.held).get(each, _FREE) for each in words}
        held = {each: why for each in words if (why := held[each] | found.get(each, _FREE))}
        joined = replace(self, messages=messages, held=held, is_screened=False).screened()
        return replace(joined, source="cut", written=other.written, model=other.model) if is_now_cut else joined


def entry_key(thread_id: str, message_id: str) -> str:
    """Return the store key of the exchange that begins with a message."""
    return digest("journal", thread_id, message_id)[:32]


def line_id(thread_id: str, message_id: str) -> str:
    """Return what names a message among all lines of an owner: two threads may use one id."""
    return digest("line", thread_id, message_id)[:32]


def days_before(day: str, days: int) -> str:
    """Return the day so many days before another; the calendar's first where that was longer ago."""
    try:
        return (date.fromisoformat(day) - timedelta(days=days)).isoformat()
    except OverflowError:
        return date.min.isoformat()


def entries_of(
    draft: JournalEntry,
    exchanges: Iterable[Sequence[StoredMessage]],
    zone: tzinfo = UTC,
    cut: Collection[str] = (),
    approval: Approval = "off",
    harmless: Collection[str] = (),
    secrets: SecretValues = NO_SECRETS,
    orders: Collection[str] = (),
) -> list[JournalEntry]:
    """Return the journal entries for exchanges of one thread; each belongs to the day it began.

    Args:
        draft: What all of them share; its day is that of the writing.
        exchanges: What was said, each with at least one message.
        zone: The user's time zone.
        cut: Ids of the messages that a summary took away; an exchange without any is as the draft says.
        approval: What waits for the user's yes.
        harmless: Ids of the messages that a model marked so. One that no model has marked waits, and a reply waits with
            what it answers.
        secrets: What is known of the user's secrets.
        orders: Ids of the messages that a model read as orders: they wait with the replies to them.
    """
    made, before = list[JournalEntry](), list[str]()
    passing = frozenset(harmless) if approval == "sensitive" else frozenset()
    for exchange in exchanges:
        messages = tuple(replace(message, seen=False) for message in exchange)
        asked = {one.id for one in messages if one.role != "assistant"} or {one.id for one in messages}
        waits = with_replies(messages, asked - passing) if approval != "off" else ()
        held: dict[str, frozenset[Hold]] = dict.fromkeys(waits, frozenset({"approval"}))
        held |= {each: held.get(each, _FREE) | {"order"} for each in with_replies(messages, orders)}
        source: LineSource = "cut" if any(one.id in cut for one in messages) else draft.source
        day = day_of(exchange[0].time, zone)
        entry = replace(draft, day=day, messages=messages, source=source, held=held, harmless=passing)
        # What answers a question may be a secret by it.
        made.append(entry.screened(before, secrets))
        before = [message.text for message in messages]
    return made


def outdated(held: Mapping[str, JournalEntry], today: str, days: int, max_bytes: float) -> list[str]:
    """Return the keys of the entries that are kept no longer: too old, or the oldest where all together are too large.

    Args:
        held: The journal, by key.
        today: The user's day, ISO 8601.
        days: So many days after it was written down an entry goes.
        max_bytes: So many bytes the texts of all entries may take.
    """

    def age(key: str) -> tuple[str, str, str]:
        # Of imported ones what was said longest ago goes first: a large import would otherwise make all go that was
        # written down before it.
        entry = held[key]
        said = entry.messages[0].time
        return (said[:10] if is_imported(entry.thread_id) else entry.written, said, key)

    oldest = days_before(today, days)
    size, gone = sum(entry.size for entry in held.values()), []
    for key in sorted(held, key=age):
        if held[key].written < oldest or size > max_bytes:
            gone.append(key)
            size -= held[key].size
    return gone
