"""How long a person waits with the local model: for the facts of a first conversation, and for first tokens meanwhile.

    make dev                            # in a fresh clone, on a machine that does nothing else
    python -m benchmarks.first_facts    # beside it: [--url http://127.0.0.1:2024] [--turns 4] [--meanwhile 5]

It says the first turns of a conversation in a new thread, and waits, as a person does who has read the answer, for
`--thinking` seconds between them. From the end of the last turn it measures how long it takes until the first fact is
known, and until everything is. Then it says them once more in another thread and, once the server works on these
updates, talks in a third one: these turns show the first token while updates run. In the end it erases its threads.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

PATIENCE_SECONDS = 900.0
_POLL_SECONDS = 0.25
_MEANWHILE = (
    "Hello! What is a good name for a sailing boat?",
    "And one for a rowing boat?",
    "Which of the two is easier to learn?",
    "What would one wear for it?",
    "Is it better in the morning or in the evening?",
    "How long does a first lesson take?",
    "Where could one find a teacher?",
    "What does a lesson cost?",
)


class Turn(NamedTuple):
    """How long one turn took, in seconds, and whether an update was under way when it began and when it ended."""

    first_token: float
    whole: float
    beside_updates: bool


async def under_way(client: LangGraphClient) -> list[dict[str, Any]]:
    """Return the pending updates."""
    return list((await client.http.get("/memory/updates"))["updates"])


async def facts(client: LangGraphClient) -> list[str]:
    """Return what is known."""
    return [fact["content"] for fact in (await client.http.get("/memory/facts"))["facts"]]


async def say(client: LangGraphClient, thread: str, text: str) -> Turn:
    """Say something and wait for the whole answer."""
    running_before = any(update["state"] == "running" for update in await under_way(client))
    begun, first = time.monotonic(), 0.0
    said: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
    stream = client.runs.stream(thread, "chat", input=said, stream_mode="messages-tuple")
    async for event, data, *_ in stream:
        if event == "error":
            raise SystemExit(f"the turn failed: {data}")
        if event != "messages" or first:
            continue
        message, metadata = data
        if metadata.get("langgraph_node") == "call_model" and message.get("content"):
            first = time.monotonic() - begun
    whole = time.monotonic() - begun
    running_after = any(update["state"] == "running" for update in await under_way(client))
    return Turn(first or whole, whole, running_before and running_after)


async def talk(client: LangGraphClient, turns: Sequence[str], thinking: float) -> tuple[str, list[Turn]]:
    """Say the turns in a new thread; return it, with how long each turn took."""
    thread = (await client.threads.create())["thread_id"]
    taken = []
    for at, text in enumerate(turns):
        await asyncio.sleep(thinking if at else 0.0)
        taken.append(await say(client, thread, text))
        print(
            f"  {taken[-1].first_token:5.1f} s to the first token, {taken[-1].whole:5.1f} s in all: {text}", flush=True
        )
    return thread, taken


async def learned(client: LangGraphClient, known: int) -> tuple[float, float]:
    """Wait until nothing is pending; return the seconds until the first new fact, and until all."""
    begun, first = time.monotonic(), 0.0
    while True:
        waited = time.monotonic() - begun
        if not first and len(await facts(client)) > known:
            first = waited
        pending = await under_way(client)
        if not pending:
            return first or waited, waited
        if waited > PATIENCE_SECONDS or any(update["state"] == "dead" for update in pending):
            raise SystemExit(f"memory was not updated after {waited:.0f} s: {json.dumps(pending)}")
        await asyncio.sleep(_POLL_SECONDS)


async def until_running(client: LangGraphClient) -> None:
    """Wait until the server works on an update."""
    begun = time.monotonic()
    while not any(update["state"] == "running" for update in await under_way(client)):
        if time.monotonic() - begun > PATIENCE_SECONDS:
            raise SystemExit("no update began")
        await asyncio.sleep(_POLL_SECONDS)


async def measure(chosen: argparse.Namespace) -> None:
    """Hold the conversations and print what they took."""
    turns = json.loads(chosen.path.read_text())["turns"][: chosen.turns]
    async with get_client(url=chosen.url, timeout=(10.0, PATIENCE_SECONDS, PATIENCE_SECONDS, 60.0)) as client:
        known, threads = len(await facts(client)), []
        print(f"load {os.getloadavg()[0]:.1f}; {known} facts are known; {len(turns)} turns")
        thread, _ = await talk(client, turns, chosen.thinking)
        threads.append(thread)
        first, everything = await learned(client, known)
        print("\n".join(f"  + {fact}" for fact in await facts(client)))
        print(f"first fact after {first:.0f} s, all of {len(turns)} turns after {everything:.0f} s (goal: 60)")

        # A message each, so that all of them are read again, as news of another thread.
        thread, _ = await talk(client, [f"As I said: {text}" for text in turns], 0.0)
        threads.append(thread)
        await until_running(client)
        thread, taken = await talk(client, _MEANWHILE[: chosen.meanwhile], 1.0)
        threads.append(thread)
        beside = [turn.first_token for turn in taken[1:] if turn.beside_updates]
        print(f"load {os.getloadavg()[0]:.1f}")
        if beside:
            print(f"first token beside updates, of {len(beside)} turns: {max(beside):.1f} s at most (goal: 2.0)")
        else:
            print("no later turn was answered while an update ran: try more --turns")
        await learned(client, 0)
        for each in threads:
            await client.http.post("/memory/erase/thread", json={"thread_id": each})


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, nargs="?", default=Path("examples/conversation.json"))
    parser.add_argument("--url", default="http://127.0.0.1:2024")
    parser.add_argument("--turns", type=int, default=4, help="turns of the first conversation")
    parser.add_argument("--thinking", type=float, default=5.0, help="seconds between two turns")
    parser.add_argument("--meanwhile", type=int, default=5, help="turns while updates run")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
