"""The conversations of a LangGraph server: its threads, read through its API."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from graphs.cli.client import bearer
from memory.backfill.conversation import Conversation, Flaw
from memory.backfill.exports import read_thread
from memory.backfill.files import Unreadable
from memory.turn import MODE_KEY, effective_mode, may_learn

_PAGE = 50
_CHECKPOINTS = 100


async def read_server(url: str, token: str) -> AsyncIterator[Conversation | Flaw]:
    """Yield the conversations of the threads that a token may see, and what of them cannot be read.

    Threads whose mode learns nothing are left out.

    Raises:
        Unreadable: If the server cannot be asked.
    """
    client = get_client(url=url, headers=bearer(token))
    offset = 0
    try:
        while page := await client.threads.search(limit=_PAGE, offset=offset, sort_by="created_at", sort_order="asc"):
            for thread in page:
                values, metadata = thread.get("values"), thread.get("metadata") or {}
                messages = values.get("messages") if isinstance(values, Mapping) else None
                if not isinstance(messages, list) or not may_learn(effective_mode(metadata.get(MODE_KEY))):
                    continue
                thread_id, created = str(thread["thread_id"]), str(thread["created_at"])
                try:
                    yield read_thread(thread_id, messages, await _times(client, thread_id), created)
                except (ValueError, KeyError, TypeError, NotImplementedError) as error:
                    yield Flaw(f"{url}, thread {thread_id}", f"its messages are none of a conversation ({error})")
            offset += len(page)
    except httpx.HTTPStatusError as error:
        said = error.response.status_code
        why = "give a token with --source-token" if said in (401, 403) else "is it a LangGraph server?"
        raise Unreadable(f"{url} answers with status {said}: {why}") from error
    except httpx.HTTPError as error:
        raise Unreadable(f"{url} cannot be asked ({type(error).__name__}): does it run?") from error


async def _times(client: LangGraphClient, thread_id: str) -> dict[str, str]:
    """Return when each message of a thread first stood in a checkpoint: messages have no times of their own."""
    found: dict[str, str] = {}
    before: Any = None
    while True:
        states = await client.threads.get_history(thread_id, limit=_CHECKPOINTS, before=before)
        for state in states:  # newest first, so the oldest is what stays
            values = state.get("values")
            messages = values.get("messages") if isinstance(values, Mapping) else None
            at = state.get("created_at")
            for message in messages if isinstance(messages, list) and at else ():
                if isinstance(message, Mapping) and isinstance(message.get("id"), str):
                    found[message["id"]] = str(at)
        if len(states) < _CHECKPOINTS:
            return found
        before = states[-1]["checkpoint"]
