"""What of past messages nothing may tell: what deleted facts came from, and what waits for the user's yes.

A message waits by the rule of facts: what a model has not marked as harmless may be sensitive. It is told again once
facts in use that came from it say all of its words, or once the user says yes to the message itself. Answers stand
among the history, each under a digest of its message, without any text.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from memory.config import HOLDS, Hold
from memory.control import count_edit
from memory.door import transaction
from memory.effects import StoreEffects, delete, put
from memory.facts.chain import Chain, dormant
from memory.facts.deletions import message_key, text_key
from memory.facts.fact import HELD, may_be_used
from memory.facts.rows import ANSWER, read_fact_history
from memory.facts.rules import FactSet
from memory.facts.words import words
from memory.message import StoredMessage, find_gone, with_replies
from memory.namespaces import Owner
from memory.screening.door import secrecy
from memory.text import digest


class Exchange(NamedTuple):
    """What was said together, and why messages of it wait, by their ids."""

    thread_id: str
    messages: Sequence[StoredMessage]
    held: Mapping[str, tuple[Hold, ...]] = {}


class Waiting(NamedTuple):
    """What of an exchange nothing tells.

    Attributes:
        ids: The messages, and the replies to them.
        why: Why it waits.
        is_refused: Whether the user said no; otherwise nobody said anything yet.
        is_asked: Whether one of the messages is a person's: replies alone nobody is asked about.
    """

    ids: frozenset[str] = frozenset()
    why: tuple[Hold, ...] = ()
    is_refused: bool = False
    is_asked: bool = False


def read_untold(
    owner: Owner, exchanges: Sequence[Exchange]
) -> StoreEffects[tuple[Mapping[str, frozenset[str]], list[Waiting]]]:
    """Read what nothing may tell of exchanges, oldest first: which messages went with a fact, and what of each waits.

    A message went with a fact, and so did the replies to it, if a deleted fact came from it, or if it says what one
    says that a person may want back, or that waits for a yes. These are ids by thread.

    Args:
        owner: Whose memory.
        exchanges: What the journal holds.
    """
    facts = yield from read_fact_history(owner)
    untold = _untold(facts)

    def is_gone(thread_id: str, one: StoredMessage) -> bool:
        return message_key(thread_id, one.id) in facts.notes or (bool(untold.ids) and untold.is_in(thread_id, one))

    is_any = facts.notes or untold.ids
    gone = find_gone([(each.thread_id, each.messages) for each in exchanges] if is_any else [], is_gone)
    return gone, _waiting_in(facts, exchanges)


def _untold(facts: FactSet) -> Chain:
    """Return what nothing tells of, with its chains: deleted facts that a person may want back, and waiting ones."""
    # What waits for a yes must not be told by the message that it came from either.
    waiting = [fact for fact in facts.rows.values() if fact.status == "waiting"]
    deleted = [
        fact
        for fact in facts.past
        if fact.status == "ended" and facts.notes.get(text_key(fact.content), {}).get("fact_id") == fact.id
    ]
    ids = dormant(facts.every, {fact.id for fact in (*deleted, *waiting)})
    return facts.chain_of(fact for fact in (*facts.past, *waiting) if fact.id in ids)


def _waiting_in(facts: FactSet, exchanges: Sequence[Exchange]) -> list[Waiting]:
    """Return what of each exchange waits for the user's yes."""
    told: dict[tuple[str, str], set[str]] = {}
    released: set[tuple[str, str]] = set()
    waiting = {fact.id for fact in facts.rows.values() if fact.status in HELD}
    wanted = {(each.thread_id, one.id) for each in exchanges if each.held for one in each.messages}
    # What is history was in use once, but for older words of what still waits.
    for fact in facts.every if wanted else ():
        sources = facts.sources_of(fact) if fact.id not in waiting else []
        for source in wanted.intersection((thread_id, one) for thread_id, ids in sources for one in ids):
            told.setdefault(source, set()).update(words(fact.content))
            if fact.reviewed and may_be_used(fact) and secrecy(fact.content) is not None:
                released.add(source)  # a person has read a secret, and let it in
    return [_waiting(each, told, released, facts.notes) for each in exchanges]


def _waiting(
    exchange: Exchange,
    told: Mapping[tuple[str, str], set[str]],
    released: set[tuple[str, str]],
    notes: Mapping[str, Mapping[str, object]],
) -> Waiting:
    thread_id, messages, held = exchange
    if not held:
        return Waiting()
    places = {(thread_id, one.id) for one in messages}
    lifted = set[Hold](("secret",) if places & released else ())
    # A yes to what the user said is one to the reply, which says the same.
    if any(map(told.get, places)) and all(
        words(one.text) <= told.get((thread_id, one.id), set()) for one in messages if one.role != "assistant"
    ):
        lifted.add("approval")
    answers = {one: notes.get(_answer_key(thread_id, one), {}).get("yes") for one in held}
    left = {one: set(why) - lifted for one, why in held.items() if answers[one] is not True and set(why) - lifted}
    return Waiting(
        with_replies(messages, left.keys()),
        tuple(why for why in HOLDS if any(why in each for each in left.values())),
        is_refused=any(answers[one] is False for one in left),
        is_asked=any(one.role != "assistant" and one.id in left for one in messages),
    )


@transaction
def write_answer(
    owner: Owner, epoch: str, exchanges: Iterable[Exchange], *, yes: bool | None, now: str
) -> StoreEffects[None]:
    """Write what the user says about exchanges that wait: they may be told again, or not. The last answer counts.

    Args:
        owner: Whose memory.
        epoch: The user's current epoch.
        exchanges: Those that are answered.
        yes: Whether they may be told; `None` takes the answer back.
        now: ISO 8601.
    """
    history, value = owner.namespace("history"), {"yes": yes, "at": now, "epoch": epoch}
    keys = [_answer_key(each.thread_id, one) for each in exchanges for one in each.held]
    if keys:
        yield [delete(history, key) if yes is None else put(history, key, value) for key in keys]
        # Who read the journal before this has to read it again, and prompts that show the lines choose anew.
        yield from count_edit(owner)


def _answer_key(thread_id: str, message_id: str) -> str:
    return ANSWER + digest("answer", thread_id, message_id)
