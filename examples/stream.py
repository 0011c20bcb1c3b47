"""A conversation in a terminal: tokens as they come, what memory does, and the checkpoint each step ends in.

palimpsest dev                                              # or: langgraph dev
python examples/stream.py                                   # type, one message a line
python examples/stream.py --say "I moved to Bergen." --say "Where do I live?"
python examples/stream.py --thread THREAD --from CHECKPOINT --say "No, to Oslo."
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from here import server_url
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from palimpsest import StreamEvent, stream_run_events


async def main(arguments: argparse.Namespace) -> None:
    """Hold the conversation."""
    async with get_client(url=arguments.url or server_url()) as client:
        thread_id = arguments.thread or (await client.threads.create())["thread_id"]
        print(f"thread {thread_id}")
        checkpoint_id = arguments.start
        for text in arguments.say or typed_lines():
            print(f"\n> {text}")
            await turn(client, thread_id, arguments.assistant, text, checkpoint_id)
            checkpoint_id = None


async def turn(client: LangGraphClient, thread_id: str, assistant: str, text: str, checkpoint_id: str | None) -> None:
    """Say one thing and print what comes back."""
    message = {"messages": [{"role": "user", "content": text}]}
    async for event in stream_run_events(
        client, thread_id, assistant, input=message, checkpoint_id=checkpoint_id, stream_mode=("messages", "values")
    ):
        if event["type"] == "on_custom_event":
            print(f"\n  {event['name']} {json.dumps(event['data'])}", end="", flush=True)
        elif event["type"] == "on_chain_stream" and not event["parent_ids"]:
            print_chunk(event)
    print()


def print_chunk(event: StreamEvent) -> None:
    """Print a token of the answer, or the checkpoint that a step ended in."""
    _, mode, chunk = event["data"]["chunk"]
    if mode == "messages" and chunk[0]["type"] == "AIMessageChunk":
        print(text_of(chunk[0]["content"]), end="", flush=True)
    elif mode == "values" and (checkpoint := event["checkpoint"]):
        print(f"\n  checkpoint {checkpoint['id']} step {checkpoint['step']} {checkpoint['source']}")


def text_of(content: str | list[Any]) -> str:
    """Return the text of a message's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


def typed_lines(source: Iterable[str] = sys.stdin) -> Iterator[str]:
    """Yield what is typed or piped, without empty lines."""
    return (line.strip() for line in source if line.strip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="where the server listens; else the one of this folder")
    parser.add_argument("--assistant", default="chat", help="graph or assistant to talk to")
    parser.add_argument("--thread", help="go on with this thread")
    parser.add_argument("--from", dest="start", help="fork from this checkpoint of the thread")
    parser.add_argument("--say", action="append", help="what to say, instead of typing; repeat it for more turns")
    asyncio.run(main(parser.parse_args()))
