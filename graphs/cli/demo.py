"""`palimpsest demo`: replay a conversation against a running server and show what memory makes of it."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from graphs.cli.conversation import Conversation, read_conversation
from memory.namespaces import Owner

# Small enough that 30 turns of small talk are summarized more than once.
_CONTEXT = {"max_tokens": 1600, "reply_tokens": 160, "memory_tokens": 500, "max_summary_tokens": 200}
_SETTLE_SECONDS = 600


@click.command()
@click.option("--url", default="http://127.0.0.1:2024", show_default=True, help="The running server.")
@click.option("--conversation", "path", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True)
@click.option("--turns", default=30, show_default=True, help="How many of the user's turns to replay.")
@click.option("--user", default="demo", show_default=True, help="Whose memory to use (single-user mode only).")
def demo(url: str, path: Path, turns: int, user: str) -> None:
    """Replay a conversation, then ask about it in a new thread."""
    try:
        conversation = read_conversation(path, turns)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    try:
        asyncio.run(_Demo(get_client(url=url), conversation, user).run())
    except httpx.ConnectError as error:
        raise click.ClickException(f"no server answers at {url}: start one with `make dev`") from error


class _Demo:
    """One replay through the SDK."""

    def __init__(self, client: LangGraphClient, conversation: Conversation, user: str) -> None:
        self.client = client
        self.conversation = conversation
        self.user = user
        self.owner = Owner.of(user)

    async def run(self) -> None:
        said = self.conversation.turns
        thread = await self.client.threads.create()
        click.secho(f"{self.conversation.user}: {len(said)} turns in thread {thread['thread_id']}", bold=True)
        for number, text in enumerate(said, 1):
            await self._turn(thread["thread_id"], f"{number}/{len(said)}", text)
        await self._settle()
        await self._show_facts()
        fresh = await self.client.threads.create()
        click.secho(f"\nQuestions in a new thread {fresh['thread_id']}", bold=True)
        for question in self.conversation.questions:
            await self._turn(fresh["thread_id"], "?", question.text)
            click.echo(f"  expected  {question.answer}")

    async def _turn(self, thread_id: str, label: str, text: str) -> None:
        """Send one message and print what came back, what was sent, and what memory did."""
        started = time.monotonic()
        first_token: float | None = None
        events: dict[str, Any] = {}
        state: dict[str, Any] = {}
        stream = self.client.runs.stream(
            thread_id,
            "chat",
            input=_message(text),
            config={"configurable": {**_CONTEXT, "user_id": self.user}},
            stream_mode=["values", "messages-tuple", "custom"],
        )
        async for part in stream:
            if part.event == "error":
                raise click.ClickException(f"the run failed: {part.data}")
            if part.event == "values":
                state = part.data
            elif part.event == "custom":
                events[part.data["name"]] = part.data["payload"]
            elif part.event == "messages" and first_token is None:
                first_token = time.monotonic() - started
        click.secho(f"\n[{label}] {text}", fg="cyan")
        click.echo(f"  answer    {_text(state['messages'][-1])}")
        _print_memory(events, state)
        click.echo(
            f"  time      {first_token or 0:.1f} s to the first token, {time.monotonic() - started:.1f} s in all"
        )

    async def _settle(self) -> None:
        """Have the pending updates applied, as the server does by itself after a quiet time."""
        click.echo("\nUpdating memory ...")
        started = time.monotonic()
        thread = await self.client.threads.create()
        await self.client.runs.wait(thread["thread_id"], "memory", input={"drain": self.owner.due_key})
        while time.monotonic() - started < _SETTLE_SECONDS:
            found = await self.client.store.search_items(self.owner.namespace("outbox"), limit=1)
            if not found["items"]:
                break
            await asyncio.sleep(1)
        click.echo(f"  {time.monotonic() - started:.0f} s")

    async def _show_facts(self) -> None:
        found = await self.client.store.search_items(self.owner.namespace("facts"), limit=1000)
        click.secho(f"\n{len(found['items'])} facts", bold=True)
        for item in found["items"]:
            fact = item["value"]
            click.echo(f"  {fact['status']:<10} {fact['category']:<11} {fact['confidence']:.2f}  {fact['content']}")


def _print_memory(events: dict[str, Any], state: dict[str, Any]) -> None:
    if injected := events.get("memory.injected"):
        tokens = dict(injected["tokens"])
        budget = tokens.pop("budget")
        parts = ", ".join(f"{name} {count}" for name, count in tokens.items())
        click.echo(f"  sent      {sum(tokens.values())} of {budget} tokens ({parts})")
    if summarized := events.get("memory.summarized"):
        summary = (state.get("context") or {}).get("running_summary") or {}
        click.echo(f"  summary   {summarized['messages']} messages: {summary.get('summary', '')}")


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if isinstance(block, dict))


def _message(text: str) -> Mapping[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}
