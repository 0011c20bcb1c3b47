"""`palimpsest demo`: replay a conversation against a running server and show what memory makes of it."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import httpx
import typer

from graphs.cli.asking import client_settings
from graphs.cli.client import NOT_HERE
from graphs.cli.output import counted
from graphs.cli.progress import estimate, in_words, progress, remaining
from graphs.cli.shell import Shell

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient
    from langgraph_sdk.errors import APIError

_EVIDENCE = re.compile(r"D:?(\d+):0*(\d+)")


@dataclass(frozen=True, slots=True)
class Question:
    """A question about what was said, and the answer that counts as right."""

    text: str
    answer: str


@dataclass(frozen=True, slots=True)
class ScriptedConversation:
    """What one user said, turn by turn, and questions whose answers were among it."""

    user: str
    turns: tuple[str, ...]
    questions: tuple[Question, ...]


def read_conversation(path: Path, turns: int, questions: int = 3) -> ScriptedConversation:
    """Read the first turns of a conversation.

    Args:
        path: A JSON file: `{"user", "turns": [text], "questions": [{"text", "answer", "after"}]}`, `after` being the
            turn that a question needs, or a conversation of the LoCoMo data set (Maharana et al., 2024), of which the
            first speaker is taken as the user.
        turns: How many of the user's turns to take at most.
        questions: How many questions to take at most, and only those whose evidence was replayed.

    Raises:
        ValueError: If the file is neither; the message names it.
    """
    try:
        value = json.loads(path.read_text())
        if "conversation" in value:
            return _from_locomo(value, turns, questions)
        replayed = [question for question in value["questions"] if question.get("after", 0) <= turns]
        asked = tuple(Question(question["text"], question["answer"]) for question in replayed[:questions])
        return ScriptedConversation(value["user"], tuple(value["turns"][:turns]), asked)
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no conversation: {error}") from error


def _from_locomo(value: Mapping[str, Any], turns: int, questions: int) -> ScriptedConversation:
    talk = value["conversation"]
    user = talk["speaker_a"]
    sessions = [f"session_{number}" for number in range(1, len(talk)) if f"session_{number}" in talk]
    spoken = [(talk[f"{session}_date_time"], turn) for session in sessions for turn in talk[session]]
    replayed = [(date, turn) for date, turn in spoken if turn["speaker"] == user][:turns]
    evidence = {turn["dia_id"] for _, turn in replayed}
    asked = [
        Question(entry["question"], str(entry["answer"]))
        for entry in value["qa"]
        if user in entry["question"] and "answer" in entry and _evidence(entry) and _evidence(entry) <= evidence
    ]
    said = tuple(f"({date}) {turn['text']}" for date, turn in replayed)
    return ScriptedConversation(user, said, tuple(asked[:questions]))


def _evidence(entry: Mapping[str, Any]) -> set[str]:
    """Return the turns an answer rests on; the data set writes some as "D8:6; D9:17" or "D30:05"."""
    found = _EVIDENCE.findall(" ".join(entry.get("evidence", [])))
    return {f"D{session}:{turn}" for session, turn in found}


# Small enough that 30 turns of small talk are summarized more than once; eight are not.
_CONTEXT = {"max_tokens": 1600, "reply_tokens": 160, "memory_tokens": 500, "max_summary_tokens": 200}
_POLL_SECONDS = 1.0
_NO_LOGIN = frozenset({401, 403})


def demo(
    path: Annotated[
        Path,
        typer.Option("--conversation", exists=True, dir_okay=False, help="What is said: a JSON file, see the README."),
    ],
    url: Annotated[str, typer.Option(help="The server. Default: PALIMPSEST_URL, or the one of this folder.")] = "",
    turns: Annotated[int, typer.Option(min=1, help="The user's turns to replay.")] = 8,
    patience: Annotated[
        float,
        typer.Option(min=0.001, help="Seconds to wait for a sign of the server, and for memory, before giving up."),
    ] = 600.0,
) -> None:
    """Replay a conversation, then ask about it in a new thread.

    It is learned as what you said yourself: `curl URL/memory/facts` shows the same facts.
    """
    # Only here, as most other commands do not need the SDK.
    from langgraph_sdk import get_client
    from langgraph_sdk.errors import APIError

    url = url or client_settings(Shell()).url
    if not url:
        raise click.ClickException(NOT_HERE)
    try:
        conversation = read_conversation(path, turns)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if not conversation.turns:
        raise click.ClickException(f"{path} has no turns to replay")

    async def run() -> None:
        async with get_client(url=url, timeout=(10.0, patience, patience, patience)) as client:
            await _Demo(client, url.rstrip("/"), conversation, patience).run()

    try:
        asyncio.run(run())
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise click.ClickException(f"no server answers at {url}: start one with `make dev`") from error
    except APIError as error:
        raise click.ClickException(_refused(url, error)) from error
    except httpx.TimeoutException as error:
        raise click.ClickException(_silent(patience)) from error
    except httpx.HTTPError as error:
        raise click.ClickException(
            f"the connection to {url} was lost ({type(error).__name__}): does it run?"
        ) from error


class _Demo:
    """One replay through the SDK."""

    def __init__(
        self, client: "LangGraphClient", url: str, conversation: ScriptedConversation, patience: float
    ) -> None:
        self.client = client
        self.url = url
        self.conversation = conversation
        self.patience = patience
        self.taken: list[float] = []

    async def run(self) -> None:
        said, questions = self.conversation.turns, self.conversation.questions
        begun = time.monotonic()
        learns = (await self.client.http.get("/memory/overview")).get("learning", True)
        thread = (await self.client.threads.create())["thread_id"]
        click.secho(f"{self.conversation.user} says {counted(len(said), 'thing')} in thread {thread}.", bold=True)
        click.echo(
            f"Then memory is updated, and {counted(len(questions), 'question')} asked in a new thread: with the local "
            f"model on two idle cores {in_words(estimate(len(said), len(questions)))}, with a provider sooner."
        )
        after = estimate(0, len(questions))
        for number, text in enumerate(said, 1):
            left = remaining(self.taken, len(said) - number + 1, after) if self.taken else None
            await self._turn(thread, f"{number}/{len(said)}", text, left)
        if learns:
            await self._wait_for_memory(thread)
        else:
            click.echo("\nLearning is paused (PUT /memory/learning): nothing of this is remembered.")
        await self._show_facts()
        fresh = (await self.client.threads.create())["thread_id"]
        click.secho(f"\nQuestions in a new thread {fresh}", bold=True)
        for question in questions:
            await self._turn(fresh, "?", question.text, None)
            click.echo(f"  expected  {question.answer}")
        click.echo(f"\nDone after {in_words(time.monotonic() - begun)}. To forget it again:")
        for each in (thread, fresh):
            body = json.dumps({"thread_id": each})
            click.echo(f"  curl {self.url}/memory/erase/thread -H 'Content-Type: application/json' -d '{body}'")

    async def _turn(self, thread_id: str, label: str, text: str, left: float | None) -> None:
        """Send one message; print the answer as it comes, then what was sent, and what memory did."""
        click.secho(f"\n[{label}] {text}", fg="cyan")
        waiting = "the model reads" + (f" ({in_words(left)} left in all)" if left is not None else "")
        events: dict[str, Any] = {}
        state: dict[str, Any] = {}
        first_token: float | None = None
        async with progress(waiting) as shown:
            async for event, data in self._parts(thread_id, text):
                if event == "values":
                    state = data
                elif event == "custom":
                    events[data["name"]] = data["payload"]
                elif token := _token(event, data):
                    if first_token is None:
                        first_token = shown.seconds
                        shown.stop()
                        click.echo("  answer    ", nl=False)
                    click.echo(token.replace("\n", "\n            "), nl=False)
            seconds = shown.seconds
        self.taken.append(seconds)
        click.echo("" if first_token is not None else f"  answer    {_text(state['messages'][-1])}")
        _print_memory(events, state)
        click.echo(f"  time      {first_token or seconds:.1f} s to the first token, {seconds:.1f} s in all")

    async def _parts(self, thread_id: str, text: str) -> AsyncIterator[tuple[str, Any]]:
        """Yield name and data of what a turn streams; give up, and end the run, when nothing comes any more."""
        said: Mapping[str, Any] = {"messages": [{"role": "user", "content": text}]}
        stream = self.client.runs.stream(
            thread_id,
            "chat",
            input=said,
            config={"configurable": _CONTEXT},
            stream_mode=["values", "messages-tuple", "custom"],
            on_disconnect="cancel",
        )
        parts = aiter(stream)
        failed = ""
        while True:
            try:
                async with asyncio.timeout(self.patience):
                    part = await anext(parts)
            except StopAsyncIteration:
                break
            except TimeoutError as error:
                raise click.ClickException(_silent(self.patience)) from error
            if part.event == "error":
                # Raised behind the stream's end, so that the connection closes in order.
                said = part.data
                failed = str(said.get("message") or said.get("error")) if isinstance(said, Mapping) else str(said)
            else:
                yield part.event, part.data
        if failed:
            raise click.ClickException(f"the run failed: {failed}")

    async def _wait_for_memory(self, thread_id: str) -> None:
        """Wait until the server has applied what the thread left pending, as it does by itself after a quiet time."""
        click.secho("\nMemory", bold=True)
        async with progress("the server waits for a quiet time, then reads what was said") as shown:
            query = {"thread": thread_id}
            while pending := (await self.client.http.get("/memory/updates", params=query))["updates"]:
                dead = [update for update in pending if update["state"] == "dead"]
                if dead or shown.seconds > self.patience:
                    shown.stop()
                    await self._show_facts()
                    update = (dead or pending)[0]
                    why = f", the last try failed with {update['error']}" if update["error"] else ""
                    raise click.ClickException(
                        f"memory was not updated after {shown.seconds:.0f} s: the update is {update['state']} after "
                        f"{update['attempts']} tries{why}. {self.url}/memory/updates shows it, the server's log says "
                        "more."
                    )
                failed = [update["error"] for update in pending if update["error"]]
                shown.what = (
                    f"an update failed ({failed[0]}) and is tried again"
                    if failed
                    else f"the server waits for a quiet time, then reads what was said (turns to go: {len(pending)})"
                )
                await asyncio.sleep(_POLL_SECONDS)
            seconds = shown.seconds
        click.echo(f"  updated   after {seconds:.0f} s")

    async def _show_facts(self) -> None:
        found = await self.client.http.get("/memory/facts")
        click.secho(f"\n{found['total']} facts (curl {self.url}/memory/facts)", bold=True)
        for fact in found["facts"]:
            click.echo(f"  {fact['category']:<11} {fact['confidence']:.2f}  {fact['content']}")


def _token(event: str, data: Any) -> str:
    """Return the piece of the answer in a part of the stream; empty for all else."""
    if not event.startswith("messages") or not isinstance(data, list):
        return ""
    message, metadata = data
    is_answer = metadata.get("langgraph_node") == "call_model" and str(message.get("type", "")).startswith("AI")
    return _text(message) if is_answer else ""


def _print_memory(events: dict[str, Any], state: dict[str, Any]) -> None:
    if injected := events.get("memory.injected"):
        tokens = dict(injected["tokens"])
        budget = tokens.pop("budget")
        parts = ", ".join(f"{name} {count}" for name, count in tokens.items())
        click.echo(f"  sent      {sum(tokens.values())} of {budget} tokens ({parts})")
    if summarized := events.get("memory.summarized"):
        summary = (state.get("context") or {}).get("running_summary") or {}
        click.echo(f"  summary   {summarized['messages']} messages: {summary.get('summary', '')}")


def _silent(patience: float) -> str:
    return (
        f"the server sent nothing for {patience:.0f} s: its model may hang, or be too slow (--patience waits longer); "
        "the server's log says more"
    )


def _refused(url: str, error: "APIError") -> str:
    status = error.response.status_code
    if status in _NO_LOGIN:
        return f"{url} asks for a login; the demo talks to the single-user server of `make dev`"
    if status == httpx.codes.NOT_FOUND:
        return f"{url} is another server, without the graph `chat` and its /memory: start one with `make dev`"
    return f"{url} refused a request with status {status}: {error.message}"


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if isinstance(block, dict))
