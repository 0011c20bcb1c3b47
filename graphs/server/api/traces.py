"""Which conversations and crons of a user still hold words that memory has erased."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from langchain_core.messages import convert_to_messages

from graphs.identity import LOCAL_USER
from graphs.server.api.routing import Call
from memory.facts.chain import Chain
from memory.message import StoredMessage, find_gone, to_stored

Json = Mapping[str, object]

MAX_MESSAGES = 1_000
"""Of so many messages in conversations, the newest, it is noted that nothing is to be learned or told of them."""


@dataclass(frozen=True, slots=True)
class Traces:
    """What still holds the words.

    Attributes:
        threads: Ids of the conversations.
        crons: Ids of the crons.
        messages: Ids of the messages with the words, and of the replies to them, by thread.
    """

    threads: tuple[str, ...]
    crons: tuple[str, ...]
    messages: Mapping[str, frozenset[str]]


async def traces_of(call: Call, chain: Chain) -> Traces:
    """Look for the words of erased facts in all that the server holds of the user, whatever memory took from it.

    The newest state of each thread is read by the server's API, page by page, all other checkpoints
    where they are kept.
    """
    found, others, messages = set[str](), list[str](), list[tuple[str, str]]()
    async for thread_id, state in call.service.threads.states_of(call.user_id):
        # In a thread of its own: reading a long conversation takes long enough to keep others waiting.
        gone, is_there = await asyncio.to_thread(_look, chain, thread_id, state)
        messages += [(thread_id, message_id) for message_id in sorted(gone)]
        if is_there or thread_id in chain.sources:
            found.add(thread_id)
        else:
            others.append(thread_id)
    others += [each for each in await orphans_of(call) if each not in found]
    found.update(await call.service.checkpoints.holding(others, chain.is_told_in))
    crons = [
        cron_id
        async for cron_id, given in call.service.crons.all_of(call.user_id)
        if any(chain.wording.is_told_in(text) for text in _texts(given))
    ]
    newest = defaultdict[str, set[str]](set)
    for thread_id, message_id in messages[-MAX_MESSAGES:]:  # threads come oldest first
        newest[thread_id].add(message_id)
    return Traces(tuple(sorted(found)), tuple(crons), {each: frozenset(ids) for each, ids in newest.items()})


async def orphans_of(call: Call) -> list[str]:
    """Return threads of the user that have checkpoints, and may have no row any more."""
    # Where nobody logs in, the server writes down no user, or the local one.
    users = ["", LOCAL_USER] if call.service.settings.single_user else [call.user_id]
    return await call.service.checkpoints.threads_of(users)


def _look(chain: Chain, thread_id: str, state: Json) -> tuple[frozenset[str], bool]:
    """Return the ids of the messages of a state that go, and whether anything in it holds the words."""
    gone = find_gone([(thread_id, _messages(state))], chain.is_in).get(thread_id, frozenset())
    return gone, bool(gone) or any(chain.is_told_in(thread_id, text) for text in _texts(state))


def _messages(state: Json) -> tuple[StoredMessage, ...]:
    values = state.get("values")
    messages = values.get("messages") if isinstance(values, Mapping) else None
    try:
        return to_stored(convert_to_messages(messages if isinstance(messages, list) else []), "")
    except (ValueError, KeyError, TypeError, NotImplementedError):  # another graph's messages; their texts count
        return ()


def _texts(value: object) -> Iterator[str]:
    """Yield every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from itertools.chain.from_iterable(map(_texts, value.values()))
    elif isinstance(value, list):
        yield from itertools.chain.from_iterable(map(_texts, value))
