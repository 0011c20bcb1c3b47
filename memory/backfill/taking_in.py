"""One imported conversation on its way into memory: first into the journal, as evidence, then to be learned.

What was said goes the way of a turn from there: the same outbox, the same extraction, the same screening. What is
noted of the conversation comes last, so that an import that was killed goes on where it was.
"""

from dataclasses import dataclass, replace
from datetime import UTC

from memory.backfill.conversation import PASTED, Conversation, short_id, to_portions
from memory.backfill.sources import ConversationProgress, ImportSource, noted, source_key, talk_key, thread_of
from memory.config import Approval, stricter
from memory.control import INITIAL_EDIT, read_control
from memory.door import StoreEffects, put, read_many, side_by_side, transaction
from memory.facts.fact import timestamp
from memory.facts.rows import forgotten_messages
from memory.forget.threads import read_thread_epoch
from memory.forms import plain
from memory.journal.entry import JournalEntry, day_of, entries_of
from memory.journal.journal import append
from memory.message import with_replies
from memory.namespaces import Owner
from memory.updates import outbox
from memory.updates.entry import Entry
from memory.updates.transcript import exchanges, strip_scheduled

# Entries are read in the order in which they were written down: within one request, this far apart.
_APART = 1e-4


class SourceGone(Exception):
    """The source is not there any more, or is another one of the same name: nothing of it may be taken in."""

    def __str__(self) -> str:
        return "this import is not under way, or was erased meanwhile: begin it anew"


class LearningPaused(Exception):
    """The user has learning paused: nothing new is written down."""

    def __str__(self) -> str:
        return "learning is paused: go on with it before you import"


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What taking in a conversation did.

    Attributes:
        told: How many messages came into the journal.
        queued: How many messages were written down to be learned.
        updates: In how many pending updates.
        known: How many had been taken in before, without the reply that only leads into a piece.
        elsewhere: Where it was left alone, the source that has it; else empty.
        thread_id: Under which id memory knows it.
    """

    told: int = 0
    queued: int = 0
    updates: int = 0
    known: int = 0
    elsewhere: str = ""
    thread_id: str = ""


@transaction
def take_talk_in(
    owner: Owner,
    source: ImportSource,
    conversation: Conversation,
    *,
    now: float,
    learn: bool,
    portion_messages: int,
    approval: Approval = "off",
) -> StoreEffects[TakenIn]:
    """Take in a conversation; twice is the same as once, also if two do it at the same time.

    Args:
        owner: Whose memory.
        source: What it belongs to.
        conversation: All of it, as it is known by now: of one that went on, what is new is taken in.
        now: Seconds since 1970.
        learn: Whether it is to be learned too; otherwise it is only written into the journal.
        portion_messages: So many messages one extraction reads.
        approval: What waits for a yes by the deployment's word; the user may have asked for more.

    Raises:
        SourceGone: If the source was erased meanwhile; nothing of the conversation is left then.
        LearningPaused: If the user has learning paused.
    """
    thread_id = thread_of(owner, source, conversation)
    thread_epoch, (source_item, talk_item), control = yield from side_by_side(
        read_thread_epoch(source.unit(owner)),
        read_many(owner.namespace("sources"), [source_key(source.name), talk_key(conversation)]),
        read_control(owner),
    )
    epoch, zone = control.epoch, control.zone or UTC
    current = noted(ImportSource, source_item, epoch)
    if current is None or current.token != source.token:
        raise SourceGone
    if not control.learning:
        raise LearningPaused
    talk = noted(ConversationProgress, talk_item, epoch) or ConversationProgress(source.name, thread_id, epoch)
    if talk.source != source.name:
        return TakenIn(known=len(conversation.messages), elsewhere=talk.source)
    held = strip_scheduled(conversation.messages)
    gone = yield from forgotten_messages(owner, epoch, thread_id, [one.id for one in held])
    dropped = with_replies(held, gone)
    # Whatever people changed by hand here, they changed after this was said.
    said = tuple(replace(one, edit=INITIAL_EDIT) for one in held if one.id not in dropped)
    whole = replace(conversation, messages=said)
    # What leads into a piece came with the piece before, or was erased since: it is not taken in here.
    lead = frozenset(short_id(one.id) for one in conversation.messages[: conversation.goes_on])
    ids = frozenset(short_id(one.id) for one in said) - lead
    untold = [each for each in exchanges(said) if any(short_id(one.id) in ids - talk.told for one in each)]
    if untold:
        draft = JournalEntry(day_of(timestamp(now), zone), thread_id, (), epoch, source="turn")
        yield from append(owner, entries_of(draft, untold, zone, approval=stricter(approval, control.approval)))
    # What somebody pasted tells nothing of them, nor does the answer to it alone.
    pasted = {short_id(one.id) for each in exchanges(said) if each[0].id.startswith(PASTED) for one in each}
    cut = to_portions(whole, talk.known | lead | pasted, portion_messages) if learn else []
    for number, portion in enumerate(cut):
        at = now + number * _APART
        entry = Entry(kind="turn", owner=owner, thread_id=thread_id, epoch=epoch, created=at, due=at, messages=portion)
        yield from outbox.record(entry, thread_epoch=thread_epoch)
    after = replace(talk, told=talk.told | ids, known=talk.known | ids if learn else talk.known)
    if after != talk:
        yield [put(owner.namespace("sources"), talk_key(conversation), plain(after))]
    return TakenIn(
        told=len(ids - talk.told),
        queued=sum(not one.seen for portion in cut for one in portion),
        updates=len(cut),
        known=len(ids & (talk.known if learn else talk.told)),
        thread_id=thread_id,
    )
