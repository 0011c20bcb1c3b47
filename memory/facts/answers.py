"""Past messages that wait for the user's yes: which do, and what the user answered about them.

A message waits by the rule of facts: what a model has not marked as harmless may be sensitive. It is told again once
facts in use that came from it say all of its words, or once the user says yes to the message itself. Answers stand
among the history, each under a digest of its message, without any text.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from langgraph.store.base import Item

from memory.config import HOLDS, Hold
from memory.control import belongs, count_edit
from memory.door import transaction
from memory.effects import StoreEffects, delete, put
from memory.facts.chain import FactHistory, read_fact_history
from memory.facts.deletions import gone_in
from memory.facts.fact import HELD, Fact, may_be_used
from memory.facts.rows import ANSWER
from memory.facts.words import words
from memory.message import StoredMessage, with_replies
from memory.namespaces import Owner
from memory.screening.door import secrecy
from memory.text import digest


class Exchange(NamedTuple):
    """What was said together, and why messages of it wait, by their ids."""

    thread_id: str
    messages: Sequence[StoredMessage]
    held: Mapping[str, tuple[Hold, ...]]


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
    owner: Owner, epoch: str, exchanges: Sequence[Exchange]
) -> StoreEffects[tuple[Mapping[str, frozenset[str]], list[Waiting]]]:
    """Read what nothing may tell of exchanges: which messages went with a fact (`gone_in`), and what of each waits.

    Args:
        owner: Whose memory.
        epoch: The user's current epoch.
        exchanges: What the journal holds.
    """
    history = yield from read_fact_history(owner)
    conversations = [(each.thread_id, each.messages) for each in exchanges]
    return gone_in(history, epoch, conversations), _waiting_in(history, epoch, exchanges)


def _waiting_in(history: FactHistory, epoch: str, exchanges: Sequence[Exchange]) -> list[Waiting]:
    """Return what of each exchange waits for the user's yes; nothing of one of which no message was held back."""
    if not any(each.held for each in exchanges):
        return [Waiting() for _ in exchanges]
    waiting = {fact.id for fact in history.facts.rows.values() if fact.status in HELD}
    # What is history was in use once, but for older words of what still waits.
    used = [fact for fact in history.every if fact.id not in waiting]
    wanted = {(each.thread_id, one.id) for each in exchanges if each.held for one in each.messages}
    covered = _covered(used, history, wanted)
    answers = {item.key: item.value.get("yes") is True for item in history.items if _is_answer(item, epoch)}
    return [_waiting(each, covered, answers) for each in exchanges]


def _covered(
    facts: Iterable[Fact], history: FactHistory, wanted: set[tuple[str, str]]
) -> Mapping[tuple[str, str], tuple[set[str], bool]]:
    """Return the words of the facts in use that came from messages, or were said again by them (thread and id).

    The other value says whether a person has read a secret in one of them, and released it.
    """
    covered: dict[tuple[str, str], tuple[set[str], bool]] = {}
    for fact in facts:
        said = [(fact.thread_id, one) for one in fact.message_ids]
        said += [(each.thread_id, one) for each in history.said_again.get(fact.id, ()) for one in each.message_ids]
        for source in wanted.intersection(said):
            told, is_released = covered.get(source, (set(), False))
            is_secret = bool(fact.reviewed) and may_be_used(fact) and secrecy(fact.content) is not None
            covered[source] = (told | words(fact.content), is_released or is_secret)
    return covered


def _waiting(
    exchange: Exchange, covered: Mapping[tuple[str, str], tuple[set[str], bool]], answers: Mapping[str, bool]
) -> Waiting:
    thread_id, messages, held = exchange
    found = {one.id: covered.get((thread_id, one.id), (set[str](), False)) for one in messages}
    told = set[Hold](("secret",) if any(is_released for _, is_released in found.values()) else ())
    # A yes to what the user said is one to the reply, which says the same.
    if any(each for each, _ in found.values()) and all(
        words(one.text) <= found[one.id][0] for one in messages if one.role != "assistant"
    ):
        told.add("approval")
    left = {one: set(why) - told for one, why in held.items()}
    said = {one: answers.get(_answer_key(thread_id, one)) for one in held}
    ids = {one for one, why in left.items() if why and not said[one]}
    return Waiting(
        with_replies(messages, ids),
        tuple(why for why in HOLDS if any(why in left[one] for one in ids)),
        is_refused=any(said[one] is False for one in ids),
        is_asked=any(one.role != "assistant" and one.id in ids for one in messages),
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


def _is_answer(item: Item, epoch: str) -> bool:
    return item.key.startswith(ANSWER) and belongs(item.value, epoch)


def _answer_key(thread_id: str, message_id: str) -> str:
    return ANSWER + digest("answer", thread_id, message_id)
