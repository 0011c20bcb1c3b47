"""A conversation with a server's chat graph: one turn after another, and what memory makes of them."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import httpx
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIError

from graphs.cli.client import LOGIN, MemoryClient
from graphs.cli.shell import Json, Refused
from memory.turn import MODE_KEY, MemoryMode

_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of one turn.

    Attributes:
        answer: The text.
        events: What memory reported, by the event's name.
        without_memory: Why the turn went on without memory; empty where it did not.
    """

    answer: str
    events: Mapping[str, Json]
    without_memory: str = ""


@dataclass(slots=True)
class ThreadClient:
    """One thread of a server.

    Attributes:
        client: Runs the turns.
        memory: Tells what was learned of them.
        assistant: Who answers: the name of a graph, or an assistant's id.
        context: What the runs are given beside the message.
        thread_id: The thread; empty until `begin`.
    """

    client: LangGraphClient
    memory: MemoryClient
    assistant: str
    context: dict[str, str] = field(default_factory=dict)
    thread_id: str = ""
    _told_until: str = ""

    async def begin(self, thread_id: str, mode: MemoryMode | None) -> None:
        """Go on with a thread, or begin one.

        Args:
            thread_id: The thread to go on with; empty begins a new one.
            mode: What memory may do. A new thread keeps it; in one that exists it holds for these turns.
        """
        with self._told():
            if thread_id:
                self.thread_id = (await self.client.threads.get(thread_id))["thread_id"]
                self.context |= {MODE_KEY: mode} if mode else {}
            else:
                metadata = {MODE_KEY: mode} if mode else {}
                self.thread_id = (await self.client.threads.create(metadata=metadata))["thread_id"]
        receipts = await self._receipts()
        self._told_until = str(receipts[-1]["time"]) if receipts else ""

    async def say(self, text: str, show: Callable[[str], None]) -> Answered:
        """Say one thing, show the answer piece by piece, and return what came of it.

        When it is cancelled, the server ends the run; what was said stays in the thread.
        """
        events: dict[str, Json] = {}
        state: Mapping[str, Any] = {}
        shown: list[str] = []
        spoken = ""
        failed: object = None
        with self._told():
            # The SDK's overloads know no stream of several modes at once.
            async for part in cast("Any", self.client.runs).stream(
                self.thread_id,
                self.assistant,
                input={"messages": [{"role": "user", "content": text}]},
                stream_mode=["values", "messages-tuple", "custom"],
                on_disconnect="cancel",
                **({"context": self.context} if self.context else {}),
            ):
                if part.event == "error":
                    failed = part.data
                elif part.event == "values":
                    state = part.data
                elif part.event == "custom" and isinstance(part.data, dict):
                    events[str(part.data.get("name"))] = part.data.get("payload")
                elif piece := _piece(part.event, part.data):
                    # With tools, the model speaks more than once.
                    message_id, words = piece
                    gap = "\n" if shown and message_id != spoken else ""
                    spoken = message_id
                    shown.append(gap + words)
                    show(gap + words)
        if failed is not None:
            raise Refused(f"the turn failed: {_reason(failed)}")
        if not shown and state.get("messages"):
            shown.append(_text(state["messages"][-1]))
            show(shown[0])
        receipt = (state.get("memory") or {}).get("receipt") or {}
        return Answered("".join(shown), events, str(receipt.get("without_memory") or ""))

    async def learned(self) -> list[Json]:
        """Return the facts that were learned from this thread since the last time, as they are now."""
        receipts = await self._receipts()
        if receipts:
            self._told_until = str(receipts[-1]["time"])
        found = []
        for fact_id in [each for receipt in receipts for each in receipt["created"]]:
            with suppress(Refused):  # it may be gone again
                found.append(await self.memory.get(f"/facts/{fact_id}"))
        return found

    async def _receipts(self) -> list[Json]:
        done = (await self.memory.get("/receipts", since=self._told_until))["receipts"]
        return [receipt for receipt in done if receipt["thread_id"] == self.thread_id]

    async def settled(self, seconds: float) -> None:
        """Wait until all that was said is learned.

        Raises:
            Refused: If that fails, or takes longer.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while updates := (await self.memory.get("/updates", thread=self.thread_id))["updates"]:
                    if dead := [each for each in updates if each["state"] == "dead"]:
                        raise Refused(
                            f"an update failed for good ({dead[0]['error']}): `palimpsest pending list --state dead`"
                        )
                    await asyncio.sleep(_POLL_SECONDS)
                return
        raise Refused(f"not all was learned within {seconds:.0f} s: `palimpsest pending list` shows what waits")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say in a sentence why the server cannot go on."""
        place = self.memory.place
        with self.memory.told():
            try:
                yield
            except APIError as error:
                status = error.response.status_code
                if status == httpx.codes.UNAUTHORIZED:
                    raise Refused(f"{place} asks for a login: {LOGIN}") from error
                raise Refused(f"{place} refuses with status {status}: {error.message}") from error


def _piece(event: str, data: Any) -> tuple[str, str] | None:
    """Return the message's id, and the words of the answer, in a part of the stream."""
    if not event.startswith("messages") or not isinstance(data, list):
        return None
    message, metadata = data
    if metadata.get("langgraph_node") != "call_model" or not str(message.get("type", "")).startswith("AI"):
        return None
    words = _text(message)
    return (str(message.get("id")), words) if words else None


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content", "")
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if isinstance(block, dict))


def _reason(failed: object) -> str:
    if isinstance(failed, Mapping):
        return str(failed.get("message") or failed.get("error"))
    return str(failed)
